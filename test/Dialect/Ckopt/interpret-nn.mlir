// What contractions, windows and normalizations mean, on numbers small enough
// to check by hand.
// RUN: ckopt-opt %s --split-input-file --test-reference -o /dev/null | FileCheck %s

// Batched product with broadcast and both transposes: A = [1 2; 3 4].
func.func @main() -> (tensor<2x2x1xf32>, tensor<2x2xf32>, tensor<2x2xf32>) {
  %a = ckopt.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %b = ckopt.constant dense<[[[1.0], [10.0]], [[100.0], [1000.0]]]> : tensor<2x2x1xf32>
  %0 = ckopt.matmul %a, %b : (tensor<2x2xf32>, tensor<2x2x1xf32>) -> tensor<2x2x1xf32>
  %1 = ckopt.matmul %a, %a {transpose_lhs} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %2 = ckopt.matmul %a, %a {transpose_rhs} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0, %1, %2 : tensor<2x2x1xf32>, tensor<2x2xf32>, tensor<2x2xf32>
}
// CHECK:      result 0: tensor<2x2x1xf32> [21, 43, 2100, 4300]
// CHECK-NEXT: result 1: tensor<2x2xf32> [10, 14, 14, 20]
// CHECK-NEXT: result 2: tensor<2x2xf32> [5, 11, 11, 25]

// -----

// A product that is added to a matrix, by both transposes: A = [1 2; 3 4].
func.func @main() -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) {
  %a = ckopt.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %c = ckopt.constant dense<[[100.0, 200.0], [300.0, 400.0]]> : tensor<2x2xf32>
  %0 = ckopt.matmul_add %a, %a, %c {transpose_lhs} : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = ckopt.matmul_add %a, %a, %c {transpose_rhs} : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %d = ckopt.constant dense<[1000.0, 2000.0]> : tensor<2xf32>
  %2 = ckopt.matmul_add %a, %a, %c bias %d {transpose_rhs} : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
  return %0, %1, %2 : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>
}
// CHECK:      result 0: tensor<2x2xf32> [110, 214, 314, 420]
// CHECK-NEXT: result 1: tensor<2x2xf32> [105, 211, 311, 425]
// CHECK-NEXT: result 2: tensor<2x2xf32> [1105, 2211, 1311, 2425]

// -----

// A strided, padded, dilated, grouped convolution and its two gradients:
// output o of channel c is x[2o - 1] + 10 x[2o + 1].
func.func @main() -> (tensor<1x2x2xf32>, tensor<1x2x4xf32>, tensor<2x1x2xf32>) {
  %x = ckopt.constant dense<[[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]]> : tensor<1x2x4xf32>
  %w = ckopt.constant dense<[[[1.0, 10.0]], [[1.0, 10.0]]]> : tensor<2x1x2xf32>
  %y = ckopt.conv %x, %w {strides = array<i64: 2>, pads_low = array<i64: 1>, pads_high = array<i64: 0>, dilations = array<i64: 2>, groups = 2 : i64} : (tensor<1x2x4xf32>, tensor<2x1x2xf32>) -> tensor<1x2x2xf32>
  %dx = ckopt.conv_input_grad %y, %w {strides = array<i64: 2>, pads_low = array<i64: 1>, pads_high = array<i64: 0>, dilations = array<i64: 2>, groups = 2 : i64} : (tensor<1x2x2xf32>, tensor<2x1x2xf32>) -> tensor<1x2x4xf32>
  %dw = ckopt.conv_weight_grad %y, %x {strides = array<i64: 2>, pads_low = array<i64: 1>, pads_high = array<i64: 0>, dilations = array<i64: 2>, groups = 2 : i64} : (tensor<1x2x2xf32>, tensor<1x2x4xf32>) -> tensor<2x1x2xf32>
  return %y, %dx, %dw : tensor<1x2x2xf32>, tensor<1x2x4xf32>, tensor<2x1x2xf32>
}
// CHECK:      result 0: tensor<1x2x2xf32> [20, 42, 60, 86]
// CHECK-NEXT: result 1: tensor<1x2x4xf32> [0, 242, 0, 420, 0, 686, 0, 860]
// CHECK-NEXT: result 2: tensor<2x1x2xf32> [84, 208, 516, 1048]

// -----

// Max pooling: the first of equals wins, NaN wins over all, padding never.
func.func @main() -> (tensor<1x1x4xf32>, tensor<1x1x4xi8>, tensor<1x1x6xf32>) {
  %x = ckopt.constant dense<[[[-1.0, 3.0, 3.0, 0x7FC00000, 5.0, 2.0]]]> : tensor<1x1x6xf32>
  %y, %i = ckopt.max_pool %x {kernel = array<i64: 2>, strides = array<i64: 2>, pads_low = array<i64: 1>, pads_high = array<i64: 1>, dilations = array<i64: 1>} : (tensor<1x1x6xf32>) -> (tensor<1x1x4xf32>, tensor<1x1x4xi8>)
  %g = ckopt.constant dense<[[[1.0, 2.0, 4.0, 8.0]]]> : tensor<1x1x4xf32>
  %dx = ckopt.max_pool_grad %g, %i {kernel = array<i64: 2>, strides = array<i64: 2>, pads_low = array<i64: 1>, pads_high = array<i64: 1>, dilations = array<i64: 1>} : (tensor<1x1x4xf32>, tensor<1x1x4xi8>) -> tensor<1x1x6xf32>
  return %y, %i, %dx : tensor<1x1x4xf32>, tensor<1x1x4xi8>, tensor<1x1x6xf32>
}
// CHECK:      result 0: tensor<1x1x4xf32> [-1, 3, nan, 2]
// CHECK-NEXT: result 1: tensor<1x1x4xi8> [1, 0, 0, 0]
// CHECK-NEXT: result 2: tensor<1x1x6xf32> [1, 2, 0, 4, 0, 8]

// -----

// Average pooling: padded points count only with count_include_pad.
func.func @main() -> (tensor<1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x3xf32>) {
  %x = ckopt.constant dense<[[[2.0, 4.0, 8.0]]]> : tensor<1x1x3xf32>
  %0 = ckopt.avg_pool %x {kernel = array<i64: 2>, strides = array<i64: 2>, pads_low = array<i64: 1>, pads_high = array<i64: 0>, dilations = array<i64: 1>} : (tensor<1x1x3xf32>) -> tensor<1x1x2xf32>
  %1 = ckopt.avg_pool %x {count_include_pad, kernel = array<i64: 2>, strides = array<i64: 2>, pads_low = array<i64: 1>, pads_high = array<i64: 0>, dilations = array<i64: 1>} : (tensor<1x1x3xf32>) -> tensor<1x1x2xf32>
  %2 = ckopt.avg_pool_grad %0 {kernel = array<i64: 2>, strides = array<i64: 2>, pads_low = array<i64: 1>, pads_high = array<i64: 0>, dilations = array<i64: 1>} : (tensor<1x1x2xf32>) -> tensor<1x1x3xf32>
  return %0, %1, %2 : tensor<1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x3xf32>
}
// CHECK:      result 0: tensor<1x1x2xf32> [2, 6]
// CHECK-NEXT: result 1: tensor<1x1x2xf32> [1, 6]
// CHECK-NEXT: result 2: tensor<1x1x3xf32> [2, 3, 3]

// -----

// Batch norm: channel 0 is {1, 3, 5, 7} (mean 4, variance 5), channel 1 constant.
func.func @main() -> (tensor<2x2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2x2x2xf32>) {
  %x = ckopt.constant dense<[[[1.0, 3.0], [2.0, 2.0]], [[5.0, 7.0], [2.0, 2.0]]]> : tensor<2x2x2xf32>
  %s = ckopt.constant dense<[3.0, 1.0]> : tensor<2xf32>
  %b = ckopt.constant dense<[10.0, 0.5]> : tensor<2xf32>
  %y, %m, %v = ckopt.batch_norm %x, %s, %b {epsilon = 4.0 : f64} : (tensor<2x2x2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2x2x2xf32>, tensor<2xf32>, tensor<2xf32>)
  %z = ckopt.batch_norm_inference %x, %s, %b, %m, %v {epsilon = 4.0 : f64} : (tensor<2x2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2x2x2xf32>
  return %y, %m, %v, %z : tensor<2x2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2x2x2xf32>
}
// CHECK:      result 0: tensor<2x2x2xf32> [7, 9, 0.5, 0.5, 11, 13, 0.5, 0.5]
// CHECK-NEXT: result 1: tensor<2xf32> [4, 2]
// CHECK-NEXT: result 2: tensor<2xf32> [5, 0]
// CHECK-NEXT: result 3: tensor<2x2x2xf32> [7, 9, 0.5, 0.5, 11, 13, 0.5, 0.5]

// -----

// Reductions, keepdims, integers; NaN in a maximum; moments.
func.func @main() -> (tensor<2xf32>, tensor<1x3xf32>, tensor<f32>, tensor<2xf32>, tensor<3xi64>, tensor<2xf32>, tensor<2xf32>) {
  %x = ckopt.constant dense<[[1.0, 2.0, 6.0], [4.0, 4.0, 4.0]]> : tensor<2x3xf32>
  %n = ckopt.constant dense<[[1.0, 0x7FC00000, 3.0], [-4.0, -5.0, -6.0]]> : tensor<2x3xf32>
  %i = ckopt.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi64>
  %0 = ckopt.reduce sum %x {axes = array<i64: 1>, keepdims = false} : (tensor<2x3xf32>) -> tensor<2xf32>
  %1 = ckopt.reduce mean %x {axes = array<i64: 0>, keepdims = true} : (tensor<2x3xf32>) -> tensor<1x3xf32>
  %2 = ckopt.reduce prod %x {axes = array<i64: 0, 1>, keepdims = false} : (tensor<2x3xf32>) -> tensor<f32>
  %3 = ckopt.reduce max %n {axes = array<i64: 1>, keepdims = false} : (tensor<2x3xf32>) -> tensor<2xf32>
  %4 = ckopt.reduce min %i {axes = array<i64: 0>, keepdims = false} : (tensor<2x3xi64>) -> tensor<3xi64>
  %5:2 = ckopt.moments %x {axes = array<i64: 1>} : (tensor<2x3xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  return %0, %1, %2, %3, %4, %5#0, %5#1 : tensor<2xf32>, tensor<1x3xf32>, tensor<f32>, tensor<2xf32>, tensor<3xi64>, tensor<2xf32>, tensor<2xf32>
}
// CHECK:      result 0: tensor<2xf32> [9, 12]
// CHECK-NEXT: result 1: tensor<1x3xf32> [2.5, 3, 5]
// CHECK-NEXT: result 2: tensor<f32> [768]
// CHECK-NEXT: result 3: tensor<2xf32> [nan, -4]
// CHECK-NEXT: result 4: tensor<3xi64> [1, 2, 3]
// CHECK-NEXT: result 5: tensor<2xf32> [3, 4]
// CHECK-NEXT: result 6: tensor<2xf32> [4.66666651, 0]

// -----

// RMS norm: the root of the mean of 1 and 49 is 5. The gradient of {1, 1} is that of scales {5, 10}
// less what changes the root: {1, 7} / 5 times a mean of 7.5.
func.func @main() -> (tensor<1x2xf32>, tensor<1xf32>, tensor<1x2xf32>) {
  %x = ckopt.constant dense<[[1.0, 7.0]]> : tensor<1x2xf32>
  %s = ckopt.constant dense<[5.0, 10.0]> : tensor<2xf32>
  %g = ckopt.constant dense<1.0> : tensor<1x2xf32>
  %0:2 = ckopt.rms_norm %x scale %s {axis = 1 : i64, epsilon = 0.0 : f64} : (tensor<1x2xf32>, tensor<2xf32>) -> (tensor<1x2xf32>, tensor<1xf32>)
  %1 = ckopt.rms_norm_grad %g, %x, %0#1 scale %s {axis = 1 : i64} : (tensor<1x2xf32>, tensor<1x2xf32>, tensor<1xf32>, tensor<2xf32>) -> tensor<1x2xf32>
  return %0#0, %0#1, %1 : tensor<1x2xf32>, tensor<1xf32>, tensor<1x2xf32>
}
// CHECK:      result 0: tensor<1x2xf32> [1, 14]
// CHECK-NEXT: result 1: tensor<1xf32> [0.2
// CHECK-NEXT: result 2: tensor<1x2xf32> [0.699999988, -0.1

// -----

// Row ops: softmax of {0, log 3}, layer norm with a scale that broadcasts.
func.func @main() -> (tensor<1x2xf32>, tensor<2x1xf32>, tensor<1x2xf32>, tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %x = ckopt.constant dense<[[0.0, 1.09861231]]> : tensor<1x2xf32>
  %0 = ckopt.softmax %x {axis = 1 : i64} : (tensor<1x2xf32>) -> tensor<1x2xf32>
  %t = ckopt.reshape %x : (tensor<1x2xf32>) -> tensor<2x1xf32>
  %1 = ckopt.softmax %t {axis = 0 : i64} : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %2 = ckopt.log_softmax %x {axis = 1 : i64} : (tensor<1x2xf32>) -> tensor<1x2xf32>
  %y = ckopt.constant dense<[[1.0, 5.0], [3.0, 3.0]]> : tensor<2x2xf32>
  %s = ckopt.constant dense<[2.0]> : tensor<1xf32>
  %b = ckopt.constant dense<[0.0, 1.0]> : tensor<2xf32>
  %3:3 = ckopt.layer_norm %y scale %s bias %b {axis = 1 : i64, epsilon = 12.0 : f64} : (tensor<2x2xf32>, tensor<1xf32>, tensor<2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>)
  return %0, %1, %2, %3#0, %3#1, %3#2 : tensor<1x2xf32>, tensor<2x1xf32>, tensor<1x2xf32>, tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>
}
// CHECK:      result 0: tensor<1x2xf32> [0.25, 0.75]
// CHECK-NEXT: result 1: tensor<2x1xf32> [0.25, 0.75]
// CHECK-NEXT: result 2: tensor<1x2xf32> [-1.38629436, -0.287682056]
// CHECK-NEXT: result 3: tensor<2x2xf32> [-1, 2, 0, 1]
// CHECK-NEXT: result 4: tensor<2xf32> [3, 3]
// CHECK-NEXT: result 5: tensor<2xf32> [0.25, 0.288675129]

// -----

// Equal scores share evenly over the keys that causality allows; a row without
// any gives zeros.
func.func @main() -> (tensor<1x3x1xf32>, tensor<1x3x2xf32>, tensor<1x3x1xf32>) {
  %q = ckopt.constant dense<0.0> : tensor<1x3x1xf32>
  %k = ckopt.constant dense<1.0> : tensor<1x3x1xf32>
  %v = ckopt.constant dense<[[[2.0], [4.0], [9.0]]]> : tensor<1x3x1xf32>
  %o, %l = ckopt.attention %q, %k, %v {scale = 1.0 : f64, causal = -1 : i64, zero_empty_rows} : (tensor<1x3x1xf32>, tensor<1x3x1xf32>, tensor<1x3x1xf32>) -> (tensor<1x3x1xf32>, tensor<1x3x2xf32>)
  %dq, %dk, %dv = ckopt.attention_grad %q, %k, %v of %o, %l by %k {scale = 1.0 : f64, causal = -1 : i64, zero_empty_rows} : (tensor<1x3x1xf32>, tensor<1x3x1xf32>, tensor<1x3x1xf32>, tensor<1x3x1xf32>, tensor<1x3x2xf32>, tensor<1x3x1xf32>) -> (tensor<1x3x1xf32>, tensor<1x3x1xf32>, tensor<1x3x1xf32>)
  return %o, %l, %dv : tensor<1x3x1xf32>, tensor<1x3x2xf32>, tensor<1x3x1xf32>
}
// CHECK:      result 0: tensor<1x3x1xf32> [0, 2, 3]
// CHECK-NEXT: result 1: tensor<1x3x2xf32> [-inf, 0, 0, 0, 0.6931
// CHECK-NEXT: result 2: tensor<1x3x1xf32> [1.5, 0.5, 0]
