// Contractions, windows, normalizations and reductions survive printing, the
// generic form and bytecode.
// RUN: ckopt-opt %s | ckopt-opt | FileCheck %s
// RUN: ckopt-opt %s --mlir-print-op-generic | ckopt-opt | FileCheck %s
// RUN: ckopt-opt %s --emit-bytecode | ckopt-opt | FileCheck %s

// CHECK-LABEL: func @matmul
func.func @matmul(%a: tensor<5x1x2x3xf32>, %b: tensor<4x7x3xf32>) -> tensor<5x4x2x7xf32> {
  // CHECK: ckopt.matmul %{{.*}}, %{{.*}} {transpose_rhs} : (tensor<5x1x2x3xf32>, tensor<4x7x3xf32>) -> tensor<5x4x2x7xf32>
  %0 = ckopt.matmul %a, %b {transpose_rhs} : (tensor<5x1x2x3xf32>, tensor<4x7x3xf32>) -> tensor<5x4x2x7xf32>
  return %0 : tensor<5x4x2x7xf32>
}

// CHECK-LABEL: func @matmul_add
func.func @matmul_add(%a: tensor<4x2xbf16>, %b: tensor<4x7xbf16>, %c: tensor<2x7xf32>) -> tensor<2x7xf32> {
  // CHECK: ckopt.matmul_add %{{.*}}, %{{.*}}, %{{.*}} {transpose_lhs} : (tensor<4x2xbf16>, tensor<4x7xbf16>, tensor<2x7xf32>) -> tensor<2x7xf32>
  %0 = ckopt.matmul_add %a, %b, %c {transpose_lhs} : (tensor<4x2xbf16>, tensor<4x7xbf16>, tensor<2x7xf32>) -> tensor<2x7xf32>
  return %0 : tensor<2x7xf32>
}

// CHECK-LABEL: func @matmul_add_bias
func.func @matmul_add_bias(%a: tensor<2x4xbf16>, %b: tensor<7x4xbf16>, %c: tensor<2x7xf32>, %d: tensor<7xf32>) -> tensor<2x7xf32> {
  // CHECK: ckopt.matmul_add %{{.*}}, %{{.*}}, %{{.*}} bias %{{.*}} {transpose_rhs} : (tensor<2x4xbf16>, tensor<7x4xbf16>, tensor<2x7xf32>, tensor<7xf32>) -> tensor<2x7xf32>
  %0 = ckopt.matmul_add %a, %b, %c bias %d {transpose_rhs} : (tensor<2x4xbf16>, tensor<7x4xbf16>, tensor<2x7xf32>, tensor<7xf32>) -> tensor<2x7xf32>
  return %0 : tensor<2x7xf32>
}

// CHECK-LABEL: func @conv
func.func @conv(%x: tensor<2x4x9xf32>, %w: tensor<6x2x3xf32>) {
  // CHECK: ckopt.conv %{{.*}}, %{{.*}} {dilations = array<i64: 2>, groups = 2 : i64, pads_high = array<i64: 0>, pads_low = array<i64: 1>, strides = array<i64: 2>} : (tensor<2x4x9xf32>, tensor<6x2x3xf32>) -> tensor<2x6x3xf32>
  %y = ckopt.conv %x, %w {strides = array<i64: 2>, pads_low = array<i64: 1>, pads_high = array<i64: 0>, dilations = array<i64: 2>, groups = 2 : i64} : (tensor<2x4x9xf32>, tensor<6x2x3xf32>) -> tensor<2x6x3xf32>
  // CHECK: ckopt.conv_input_grad %{{.*}} : (tensor<2x6x3xf32>, tensor<6x2x3xf32>) -> tensor<2x4x9xf32>
  %0 = ckopt.conv_input_grad %y, %w {strides = array<i64: 2>, pads_low = array<i64: 1>, pads_high = array<i64: 0>, dilations = array<i64: 2>, groups = 2 : i64} : (tensor<2x6x3xf32>, tensor<6x2x3xf32>) -> tensor<2x4x9xf32>
  // CHECK: ckopt.conv_weight_grad %{{.*}} : (tensor<2x6x3xf32>, tensor<2x4x9xf32>) -> tensor<6x2x3xf32>
  %1 = ckopt.conv_weight_grad %y, %x {strides = array<i64: 2>, pads_low = array<i64: 1>, pads_high = array<i64: 0>, dilations = array<i64: 2>, groups = 2 : i64} : (tensor<2x6x3xf32>, tensor<2x4x9xf32>) -> tensor<6x2x3xf32>
  return
}

// CHECK-LABEL: func @pool
func.func @pool(%x: tensor<1x2x4x4xf32>) {
  // CHECK: %[[MAX:.*]], %[[INDEX:.*]] = ckopt.max_pool %{{.*}} {{{.*}}} : (tensor<1x2x4x4xf32>) -> (tensor<1x2x2x2xf32>, tensor<1x2x2x2xi8>)
  %y, %i = ckopt.max_pool %x {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x2x4x4xf32>) -> (tensor<1x2x2x2xf32>, tensor<1x2x2x2xi8>)
  // CHECK: ckopt.max_pool_grad %[[MAX]], %[[INDEX]]
  %0 = ckopt.max_pool_grad %y, %i {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x2x2x2xf32>, tensor<1x2x2x2xi8>) -> tensor<1x2x4x4xf32>
  // CHECK: ckopt.avg_pool %{{.*}} {count_include_pad, {{.*}}} : (tensor<1x2x4x4xf32>) -> tensor<1x2x2x2xf32>
  %1 = ckopt.avg_pool %x {count_include_pad, kernel = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x2x4x4xf32>) -> tensor<1x2x2x2xf32>
  // CHECK: ckopt.avg_pool_grad %{{.*}} {{{.*}}} : (tensor<1x2x2x2xf32>) -> tensor<1x2x4x4xf32>
  %2 = ckopt.avg_pool_grad %1 {kernel = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x2x2x2xf32>) -> tensor<1x2x4x4xf32>
  return
}

// CHECK-LABEL: func @batch_norm
func.func @batch_norm(%x: tensor<2x3x4xf32>, %c: tensor<3xf32>) {
  // CHECK: ckopt.batch_norm %{{.*}} {epsilon = 1.000000e-05 : f64} : (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>)
  %y, %m, %v = ckopt.batch_norm %x, %c, %c {epsilon = 1.0e-5 : f64} : (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>)
  // CHECK: ckopt.batch_norm_grad
  %0:3 = ckopt.batch_norm_grad %y, %x, %c, %m, %v {epsilon = 1.0e-5 : f64} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>)
  // CHECK: ckopt.batch_norm_inference
  %1 = ckopt.batch_norm_inference %x, %c, %c, %m, %v {epsilon = 1.0e-5 : f64} : (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x4xf32>
  return
}

// CHECK-LABEL: func @reductions
func.func @reductions(%x: tensor<2x3x4xf32>) {
  // CHECK: ckopt.reduce mean %{{.*}} {axes = array<i64: 0, 2>, keepdims = true} : (tensor<2x3x4xf32>) -> tensor<1x3x1xf32>
  %0 = ckopt.reduce mean %x {axes = array<i64: 0, 2>, keepdims = true} : (tensor<2x3x4xf32>) -> tensor<1x3x1xf32>
  // CHECK: ckopt.reduce max %{{.*}} {axes = array<i64: 1>, keepdims = false} : (tensor<2x3x4xf32>) -> tensor<2x4xf32>
  %1 = ckopt.reduce max %x {axes = array<i64: 1>, keepdims = false} : (tensor<2x3x4xf32>) -> tensor<2x4xf32>
  // CHECK: ckopt.moments %{{.*}} {axes = array<i64: 0, 2>} : (tensor<2x3x4xf32>) -> (tensor<3xf32>, tensor<3xf32>)
  %m, %v = ckopt.moments %x {axes = array<i64: 0, 2>} : (tensor<2x3x4xf32>) -> (tensor<3xf32>, tensor<3xf32>)
  return
}

// CHECK-LABEL: func @rows
func.func @rows(%x: tensor<2x3x4xf32>, %s: tensor<4xf32>) {
  // CHECK: ckopt.softmax %{{.*}} {axis = 1 : i64}
  %0 = ckopt.softmax %x {axis = 1 : i64} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  // CHECK: ckopt.log_softmax
  %1 = ckopt.log_softmax %x {axis = 2 : i64} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  // CHECK: ckopt.softmax_grad
  %2 = ckopt.softmax_grad %x, %0 {axis = 1 : i64} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  // CHECK: ckopt.log_softmax_grad
  %3 = ckopt.log_softmax_grad %x, %1 {axis = 2 : i64} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  // CHECK: ckopt.layer_norm %{{[a-z0-9]*}} scale %{{.*}} bias %{{[a-z0-9]*}} {{{.*}}} : (tensor<2x3x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  %y, %m, %r = ckopt.layer_norm %x scale %s bias %s {axis = 2 : i64, epsilon = 1.0e-5 : f64} : (tensor<2x3x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  // CHECK: ckopt.layer_norm %{{[a-z0-9]*}} bias %{{[a-z0-9]*}} {{{.*}}} : (tensor<2x3x4xf32>, tensor<4xf32>)
  %4:3 = ckopt.layer_norm %x bias %s {axis = 2 : i64, epsilon = 1.0e-5 : f64} : (tensor<2x3x4xf32>, tensor<4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  // CHECK: ckopt.layer_norm %{{[a-z0-9]*}} {axis = 1 : i64
  %5:3 = ckopt.layer_norm %x {axis = 1 : i64, epsilon = 1.0e-5 : f64} : (tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2xf32>, tensor<2xf32>)
  // CHECK: ckopt.rms_norm %{{[a-z0-9]*}} scale %{{[a-z0-9]*}} {{{.*}}} : (tensor<2x3x4xf32>, tensor<4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3xf32>)
  %rms:2 = ckopt.rms_norm %x scale %s {axis = 2 : i64, epsilon = 1.0e-5 : f64} : (tensor<2x3x4xf32>, tensor<4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3xf32>)
  // CHECK: ckopt.rms_norm_grad %{{.*}}, %{{.*}}, %{{[a-z0-9#]*}} {axis = 2 : i64}
  %rmsg = ckopt.rms_norm_grad %x, %x, %r {axis = 2 : i64} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3xf32>) -> tensor<2x3x4xf32>
  // CHECK: ckopt.layer_norm_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{[a-z0-9#]*}} scale %{{.*}} {axis = 2 : i64}
  %6 = ckopt.layer_norm_grad %x, %x, %m, %r scale %s {axis = 2 : i64} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<4xf32>) -> tensor<2x3x4xf32>
  // CHECK: ckopt.layer_norm_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{[a-z0-9#]*}} {axis = 2 : i64}
  %7 = ckopt.layer_norm_grad %x, %x, %m, %r {axis = 2 : i64} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3x4xf32>
  return
}

// CHECK-LABEL: func @attention
func.func @attention(%q: tensor<2x4x5x3xf32>, %k: tensor<2x2x6x3xf32>, %v: tensor<2x2x6x7xf32>, %b: tensor<4x1x6xf32>, %m: tensor<5x6xi1>, %i: tensor<i64>, %h: tensor<2x4x5x3xbf16>) {
  // CHECK: %[[O:.*]], %[[L:.*]] = ckopt.attention %{{.*}}, %{{.*}}, %{{.*}} bias %{{.*}} mask %{{.*}} {causal = 1 : i64, scale = 5.000000e-01 : f64, zero_empty_rows} : {{.*}} -> (tensor<2x4x5x7xf32>, tensor<2x4x5x2xf32>)
  %o, %l = ckopt.attention %q, %k, %v bias %b mask %m {scale = 0.5 : f64, causal = 1 : i64, zero_empty_rows} : (tensor<2x4x5x3xf32>, tensor<2x2x6x3xf32>, tensor<2x2x6x7xf32>, tensor<4x1x6xf32>, tensor<5x6xi1>) -> (tensor<2x4x5x7xf32>, tensor<2x4x5x2xf32>)
  // CHECK: ckopt.attention_grad %{{.*}}, %{{.*}}, %{{.*}} mask %{{.*}} of %[[O]], %[[L]] by %[[O]] {fill = -1.000000e+00 : f64, scale = 5.000000e-01 : f64}
  %dq, %dk, %dv = ckopt.attention_grad %q, %k, %v mask %m of %o, %l by %o {scale = 0.5 : f64, fill = -1.0 : f64} : (tensor<2x4x5x3xf32>, tensor<2x2x6x3xf32>, tensor<2x2x6x7xf32>, tensor<5x6xi1>, tensor<2x4x5x7xf32>, tensor<2x4x5x2xf32>, tensor<2x4x5x7xf32>) -> (tensor<2x4x5x3xf32>, tensor<2x2x6x3xf32>, tensor<2x2x6x7xf32>)
  // CHECK: ckopt.attention %{{.*}}, %{{.*}}, %{{.*}} bias %{{.*}} dropout %[[I:.*]], %[[I]] {ratio = 1.000000e-01 : f64, scale = 5.000000e-01 : f64, site = 2 : i64}
  %o1, %l1 = ckopt.attention %q, %k, %v bias %b dropout %i, %i {scale = 0.5 : f64, ratio = 0.1 : f64, site = 2 : i64} : (tensor<2x4x5x3xf32>, tensor<2x2x6x3xf32>, tensor<2x2x6x7xf32>, tensor<4x1x6xf32>, tensor<i64>, tensor<i64>) -> (tensor<2x4x5x7xf32>, tensor<2x4x5x2xf32>)
  // CHECK: ckopt.attention %{{.*}}, %{{.*}}, %{{.*}} segments %[[S:[^ ]*]] {causal = 0 : i64, scale = 5.000000e-01 : f64, window = 3 : i64}
  %s = ckopt.constant dense<[[1, 1, 2, 2, 0]]> : tensor<1x5xi64>
  %o3, %l3 = ckopt.attention %q, %q, %q segments %s {scale = 0.5 : f64, causal = 0 : i64, window = 3 : i64} : (tensor<2x4x5x3xf32>, tensor<2x4x5x3xf32>, tensor<2x4x5x3xf32>, tensor<1x5xi64>) -> (tensor<2x4x5x3xf32>, tensor<2x4x5x2xf32>)
  // CHECK: ckopt.attention_grad %{{.*}}, %{{.*}}, %{{.*}} segments %[[S]] of
  %dq3, %dk3, %dv3 = ckopt.attention_grad %q, %q, %q segments %s of %o3, %l3 by %o3 {scale = 0.5 : f64} : (tensor<2x4x5x3xf32>, tensor<2x4x5x3xf32>, tensor<2x4x5x3xf32>, tensor<1x5xi64>, tensor<2x4x5x3xf32>, tensor<2x4x5x2xf32>, tensor<2x4x5x3xf32>) -> (tensor<2x4x5x3xf32>, tensor<2x4x5x3xf32>, tensor<2x4x5x3xf32>)
  // lse of halves is f32.
  // CHECK: ckopt.attention %{{.*}}, %{{.*}}, %{{.*}} {scale = 5.000000e-01 : f64, softcap = 5.000000e+01 : f64}
  %o4, %l4 = ckopt.attention %q, %q, %q {scale = 0.5 : f64, softcap = 50.0 : f64} : (tensor<2x4x5x3xf32>, tensor<2x4x5x3xf32>, tensor<2x4x5x3xf32>) -> (tensor<2x4x5x3xf32>, tensor<2x4x5x2xf32>)
  // CHECK: ckopt.attention_grad {{.*}} softcap = 5.000000e+01 : f64}
  %dq4, %dk4, %dv4 = ckopt.attention_grad %q, %q, %q of %o4, %l4 by %o4 {scale = 0.5 : f64, softcap = 50.0 : f64} : (tensor<2x4x5x3xf32>, tensor<2x4x5x3xf32>, tensor<2x4x5x3xf32>, tensor<2x4x5x3xf32>, tensor<2x4x5x2xf32>, tensor<2x4x5x3xf32>) -> (tensor<2x4x5x3xf32>, tensor<2x4x5x3xf32>, tensor<2x4x5x3xf32>)
  // CHECK: ckopt.attention {{.*}} -> (tensor<2x4x5x3xbf16>, tensor<2x4x5x2xf32>)
  %o2, %l2 = ckopt.attention %h, %h, %h {scale = 0.5 : f64} : (tensor<2x4x5x3xbf16>, tensor<2x4x5x3xbf16>, tensor<2x4x5x3xbf16>) -> (tensor<2x4x5x3xbf16>, tensor<2x4x5x2xf32>)
  return
}
