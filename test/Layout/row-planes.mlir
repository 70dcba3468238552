// What attention keeps of rows for its gradient alone lies in two planes.
// RUN: ckopt-opt %s --layout=planes | FileCheck %s
// RUN: ckopt-opt %s --layout="planes layout=none" | FileCheck %s
// RUN: ckopt-opt %s --layout | FileCheck %s --check-prefix=PAIRS

// CHECK-LABEL: func.func @both
// CHECK: ckopt.attention {{.*}}tensor<2x4x3x2xf32, #ckopt.layout<[3, 0, 1, 2]>>)
// CHECK: ckopt.attention_grad {{.*}}tensor<2x4x3x2xf32, #ckopt.layout<[3, 0, 1, 2]>>
// PAIRS-NOT: tensor<{{[^>]*}}x2xf32, #ckopt.layout
func.func @both(%q: tensor<2x4x3x8xf32>) -> (tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>) {
  %o, %lse = ckopt.attention %q, %q, %q {scale = 0.5 : f64} : (tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>) -> (tensor<2x4x3x8xf32>, tensor<2x4x3x2xf32>)
  %g:3 = ckopt.attention_grad %q, %q, %q of %o, %lse by %q {scale = 0.5 : f64} : (tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>, tensor<2x4x3x2xf32>, tensor<2x4x3x8xf32>) -> (tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>)
  return %g#0, %g#1 : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>
}

// Of a head without samples, too.
// CHECK-LABEL: func.func @heads
// CHECK: ckopt.attention {{.*}}tensor<4x3x2xf32, #ckopt.layout<[2, 0, 1]>>)
func.func @heads(%q: tensor<4x3x8xf32>) -> tensor<4x3x8xf32> {
  %o, %lse = ckopt.attention %q, %q, %q {scale = 0.5 : f64} : (tensor<4x3x8xf32>, tensor<4x3x8xf32>, tensor<4x3x8xf32>) -> (tensor<4x3x8xf32>, tensor<4x3x2xf32>)
  return %o : tensor<4x3x8xf32>
}

// What something else reads stays as it is.
// CHECK-LABEL: func.func @read
// CHECK: ckopt.attention {{.*}}tensor<4x3x2xf32>)
func.func @read(%q: tensor<4x3x8xf32>) -> tensor<4x3x2xf32> {
  %o, %lse = ckopt.attention %q, %q, %q {scale = 0.5 : f64} : (tensor<4x3x8xf32>, tensor<4x3x8xf32>, tensor<4x3x8xf32>) -> (tensor<4x3x8xf32>, tensor<4x3x2xf32>)
  return %lse : tensor<4x3x2xf32>
}

// So they do beside a convolution, for whose sake other values change layouts.
// CHECK-LABEL: func.func @beside
// CHECK-NOT: ckopt.relayout {{.*}}tensor<1x2x3x2xf32
// CHECK: ckopt.attention_grad {{.*}}tensor<1x2x3x2xf32, #ckopt.layout<[3, 0, 1, 2]>>
func.func @beside(%x: tensor<1x2x5x8xf32>, %w: tensor<2x2x3x1xf32>, %q: tensor<1x2x3x8xf32>) -> (tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>) {
  %k = ckopt.conv %x, %w {dilations = array<i64: 1, 1>, groups = 1 : i64, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, strides = array<i64: 1, 1>} : (tensor<1x2x5x8xf32>, tensor<2x2x3x1xf32>) -> tensor<1x2x3x8xf32>
  %o, %lse = ckopt.attention %q, %k, %k {scale = 0.5 : f64} : (tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>) -> (tensor<1x2x3x8xf32>, tensor<1x2x3x2xf32>)
  %g:3 = ckopt.attention_grad %q, %k, %k of %o, %lse by %q {scale = 0.5 : f64} : (tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x2xf32>, tensor<1x2x3x8xf32>) -> (tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>)
  return %g#0, %g#1 : tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>
}
