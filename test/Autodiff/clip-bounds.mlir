// Shows that a clip of a model is flat at its bounds, as PyTorch's are, and one
// that only keeps an argument in range passes gradients there.
// RUN: ckopt-opt --split-input-file --autodiff --canonicalize --cse %s | FileCheck %s

// CHECK-LABEL: func.func @step(
// CHECK-DAG: ckopt.compare {{ *}}gt %arg0
// CHECK-DAG: ckopt.compare {{ *}}lt %arg0
func.func @forward(%x: tensor<4xf32> {ckopt.name = "x", ckopt.role = "parameter"})
    -> (tensor<f32> {ckopt.name = "loss"}) {
  %c = ckopt.clip %x {min = -2.0 : f64, max = 2.0 : f64, ckopt.open_range} : (tensor<4xf32>) -> tensor<4xf32>
  %loss = ckopt.reduce sum %c {axes = array<i64: 0>, keepdims = false} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func.func @step(
// CHECK-DAG: ckopt.compare {{ *}}ge %arg0
// CHECK-DAG: ckopt.compare {{ *}}le %arg0
func.func @forward(%x: tensor<4xf32> {ckopt.name = "x", ckopt.role = "parameter"})
    -> (tensor<f32> {ckopt.name = "loss"}) {
  %c = ckopt.clip %x {min = -2.0 : f64, max = 2.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  %loss = ckopt.reduce sum %c {axes = array<i64: 0>, keepdims = false} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
