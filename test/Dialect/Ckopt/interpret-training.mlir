// What dropout, losses, state updates and kernel calls mean.
// RUN: ckopt-opt %s --split-input-file --test-reference -o /dev/null | FileCheck %s

// Dropout is Philox4x32-10 of (seed, element, step, site): numbers from an
// independent implementation. The same op in a kernel takes its site from the
// call's scalars.
func.func private @k(%x: tensor<8xf32>, %seed: tensor<i64>, %step: tensor<i64>) -> tensor<8xf32> {
  %0 = ckopt.dropout %x, %seed, %step {ratio = 0.25 : f64, site = 1 : i64} : (tensor<8xf32>, tensor<i64>, tensor<i64>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func @main() -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %x = ckopt.constant dense<3.0> : tensor<8xf32>
  %seed = ckopt.constant dense<21474836487> : tensor<i64>
  %step = ckopt.constant dense<2> : tensor<i64>
  %0 = ckopt.dropout %x, %seed, %step {ratio = 0.25 : f64, site = 3 : i64} : (tensor<8xf32>, tensor<i64>, tensor<i64>) -> tensor<8xf32>
  %1 = ckopt.dropout %x, %seed, %step {ratio = 0.25 : f64, site = 9 : i64} : (tensor<8xf32>, tensor<i64>, tensor<i64>) -> tensor<8xf32>
  %2 = ckopt.kernel_call @k(%x, %seed, %step) {scalars = array<i64: 0, 9>} : (tensor<8xf32>, tensor<i64>, tensor<i64>) -> tensor<8xf32>
  return %0, %1, %2 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
// CHECK:      result 0: tensor<8xf32> [4, 4, 4, 4, 4, 4, 0, 4]
// CHECK-NEXT: result 1: tensor<8xf32> [4, 4, 0, 4, 4, 4, 0, 4]
// CHECK-NEXT: result 2: tensor<8xf32> [4, 4, 0, 4, 4, 4, 0, 4]

// -----

// Cross entropy of {0, log 3} and its gradient; an ignored row gives 0; the
// classes may lie along any dimension.
func.func @main() -> (tensor<3xf32>, tensor<3xf32>, tensor<3x2xf32>, tensor<1x3xf32>) {
  %x = ckopt.constant dense<[[0.0, 1.09861231], [0.0, 1.09861231], [5.0, 5.0]]> : tensor<3x2xf32>
  %t = ckopt.constant dense<[0, 1, -100]> : tensor<3xi64>
  %g = ckopt.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %0:3 = ckopt.cross_entropy %x, %t {axis = 1 : i64} : (tensor<3x2xf32>, tensor<3xi64>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  %1 = ckopt.cross_entropy_grad %g, %x, %t, %0#1, %0#2 {axis = 1 : i64} : (tensor<3xf32>, tensor<3x2xf32>, tensor<3xi64>, tensor<3xf32>, tensor<3xf32>) -> tensor<3x2xf32>
  %y = ckopt.reshape %x : (tensor<3x2xf32>) -> tensor<1x2x3xf32>
  %u = ckopt.constant dense<[[0, 0, 1]]> : tensor<1x3xi64>
  %2:3 = ckopt.cross_entropy %y, %u {axis = 1 : i64} : (tensor<1x2x3xf32>, tensor<1x3xi64>) -> (tensor<1x3xf32>, tensor<1x3xf32>, tensor<1x3xf32>)
  return %0#0, %0#1, %1, %2#0 : tensor<3xf32>, tensor<3xf32>, tensor<3x2xf32>, tensor<1x3xf32>
}
// CHECK:      result 0: tensor<3xf32> [1.38629436, 0.287682056, 0]
// CHECK-NEXT: result 1: tensor<3xf32> [1.38629436, 1.38629436, 5.69314718]
// (what rounding to f32 took from it, the gradient reads, too)
// CHECK-NEXT: result 2: tensor<3x2xf32> [-0.75, 0.75, 0.5, -0.5, 0, 0]
// The columns are {0, log 3}, {log 3, 5} and {0, 5}.
// CHECK-NEXT: result 3: tensor<1x3xf32> [1.38629436, 3.92139983, 0.00671534846]

// -----

// What lies behind the classes is padding, whatever it is: the row is {0, log 3}, and padding gets
// no gradient.
func.func @main() -> (tensor<2xf32>, tensor<2x4xf32>) {
  %x = ckopt.constant dense<[[0.0, 1.09861231, 9.0, 0x7FC00000], [0.0, 1.09861231, 0x7F800000, 1.0]]> : tensor<2x4xf32>
  %t = ckopt.constant dense<[0, 1]> : tensor<2xi64>
  %g = ckopt.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0:3 = ckopt.cross_entropy %x, %t {axis = 1 : i64, classes = 2 : i64} : (tensor<2x4xf32>, tensor<2xi64>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
  %1 = ckopt.cross_entropy_grad %g, %x, %t, %0#1, %0#2 {axis = 1 : i64, classes = 2 : i64} : (tensor<2xf32>, tensor<2x4xf32>, tensor<2xi64>, tensor<2xf32>, tensor<2xf32>) -> tensor<2x4xf32>
  return %0#0, %1 : tensor<2xf32>, tensor<2x4xf32>
}
// CHECK:      result 0: tensor<2xf32> [1.38629436, 0.287682056]
// CHECK-NEXT: result 1: tensor<2x4xf32> [-0.75, 0.75, 0, 0, 0.5, -0.5, 0, 0]

// -----

// The loss of {0, log 3} as a product of one input, with a bias that makes no
// difference, and its gradients; an ignored row gives 0 to all of them.
func.func @main() -> (tensor<2xf32>, tensor<2xf32>, tensor<2x1xf32>, tensor<1x2xf32>, tensor<2xf32>) {
  %x = ckopt.constant dense<[[1.0], [9.0]]> : tensor<2x1xf32>
  %w = ckopt.constant dense<[[0.0, 1.09861231]]> : tensor<1x2xf32>
  %b = ckopt.constant dense<5.0> : tensor<2xf32>
  %t = ckopt.constant dense<[0, -100]> : tensor<2xi64>
  %g = ckopt.constant dense<[2.0, 3.0]> : tensor<2xf32>
  %0 = ckopt.linear_cross_entropy %x, %w, %t {rows = 1 : i64} : (tensor<2x1xf32>, tensor<1x2xf32>, tensor<2xi64>) -> tensor<2xf32>
  %1:4 = ckopt.linear_cross_entropy_grad %g, %x, %w, %t bias %b {rows = 1 : i64} : (tensor<2xf32>, tensor<2x1xf32>, tensor<1x2xf32>, tensor<2xi64>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2x1xf32>, tensor<1x2xf32>, tensor<2xf32>)
  return %0, %1#0, %1#1, %1#2, %1#3 : tensor<2xf32>, tensor<2xf32>, tensor<2x1xf32>, tensor<1x2xf32>, tensor<2xf32>
}
// CHECK:      result 0: tensor<2xf32> [1.38629436, 0]
// CHECK-NEXT: result 1: tensor<2xf32> [1.38629436, 0]
// CHECK-NEXT: result 2: tensor<2x1xf32> [1.64791846, 0]
// CHECK-NEXT: result 3: tensor<1x2xf32> [-1.5, 1.5]
// CHECK-NEXT: result 4: tensor<2xf32> [-1.5, 1.5]

// -----

// Moving average, SGD plain, with momentum in the first and a later step, and
// with Nesterov momentum and weight decay.
func.func @main() -> (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) {
  %p = ckopt.constant dense<1.0> : tensor<1xf32>
  %g = ckopt.constant dense<0.5> : tensor<1xf32>
  %v = ckopt.constant dense<2.0> : tensor<1xf32>
  %lr = ckopt.constant dense<0.25> : tensor<f32>
  %one = ckopt.constant dense<1> : tensor<i64>
  %two = ckopt.constant dense<2> : tensor<i64>
  %0 = ckopt.moving_average %p, %v {momentum = 0.75 : f64} : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  %1 = ckopt.accumulate %p, %v : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  %2 = ckopt.sgd %p, %g, %lr, %one {momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<1xf32>, tensor<1xf32>, tensor<f32>, tensor<i64>) -> tensor<1xf32>
  %3:2 = ckopt.sgd %p, %g, %lr, %one velocity %v {momentum = 0.5 : f64, dampening = 0.5 : f64, weight_decay = 0.0 : f64} : (tensor<1xf32>, tensor<1xf32>, tensor<f32>, tensor<i64>, tensor<1xf32>) -> (tensor<1xf32>, tensor<1xf32>)
  %4:2 = ckopt.sgd %p, %g, %lr, %two velocity %v {momentum = 0.5 : f64, dampening = 0.5 : f64, weight_decay = 0.0 : f64} : (tensor<1xf32>, tensor<1xf32>, tensor<f32>, tensor<i64>, tensor<1xf32>) -> (tensor<1xf32>, tensor<1xf32>)
  %5:2 = ckopt.sgd %p, %g, %lr, %two velocity %v {nesterov, momentum = 0.5 : f64, dampening = 0.0 : f64, weight_decay = 0.5 : f64} : (tensor<1xf32>, tensor<1xf32>, tensor<f32>, tensor<i64>, tensor<1xf32>) -> (tensor<1xf32>, tensor<1xf32>)
  return %0, %1, %2, %3#0, %3#1, %4#0, %5#0, %5#1 : tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>
}
// CHECK:      result 0: tensor<1xf32> [1.25]
// CHECK-NEXT: result 1: tensor<1xf32> [3]
// CHECK-NEXT: result 2: tensor<1xf32> [0.875]
// CHECK-NEXT: result 3: tensor<1xf32> [0.875]
// CHECK-NEXT: result 4: tensor<1xf32> [0.5]
// CHECK-NEXT: result 5: tensor<1xf32> [0.6875]
// CHECK-NEXT: result 6: tensor<1xf32> [0.5]
// CHECK-NEXT: result 7: tensor<1xf32> [2]

// -----

// AdamW and Adam, against PyTorch's formulas worked out on the side.
func.func @main() -> (tensor<1xf64>, tensor<1xf64>, tensor<1xf64>, tensor<1xf64>, tensor<1xf64>, tensor<1xf64>) {
  %p = ckopt.constant dense<1.0> : tensor<1xf64>
  %g = ckopt.constant dense<0.5> : tensor<1xf64>
  %m = ckopt.constant dense<0.25> : tensor<1xf64>
  %v = ckopt.constant dense<0.5> : tensor<1xf64>
  %lr = ckopt.constant dense<0.125> : tensor<f64>
  %step = ckopt.constant dense<3> : tensor<i64>
  %0:3 = ckopt.adam %p, %g, %m, %v, %lr, %step {decoupled, beta1 = 0.5 : f64, beta2 = 0.75 : f64, epsilon = 0.001 : f64, weight_decay = 0.5 : f64} : (tensor<1xf64>, tensor<1xf64>, tensor<1xf64>, tensor<1xf64>, tensor<f64>, tensor<i64>) -> (tensor<1xf64>, tensor<1xf64>, tensor<1xf64>)
  %1:3 = ckopt.adam %p, %g, %m, %v, %lr, %step {beta1 = 0.5 : f64, beta2 = 0.75 : f64, epsilon = 0.001 : f64, weight_decay = 0.5 : f64} : (tensor<1xf64>, tensor<1xf64>, tensor<1xf64>, tensor<1xf64>, tensor<f64>, tensor<i64>) -> (tensor<1xf64>, tensor<1xf64>, tensor<1xf64>)
  return %0#0, %0#1, %0#2, %1#0, %1#1, %1#2 : tensor<1xf64>, tensor<1xf64>, tensor<1xf64>, tensor<1xf64>, tensor<1xf64>, tensor<1xf64>
}
// CHECK:      result 0: tensor<1xf64> [0.875988527]
// CHECK-NEXT: result 1: tensor<1xf64> [0.375]
// CHECK-NEXT: result 2: tensor<1xf64> [0.4375]
// CHECK-NEXT: result 3: tensor<1xf64> [0.91421026]
// CHECK-NEXT: result 4: tensor<1xf64> [0.625]
// CHECK-NEXT: result 5: tensor<1xf64> [0.625]
