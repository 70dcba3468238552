// Shows that the gradient passes through a rounding that is marked as part of
// fake quantization, within the range of the clip alone.
// RUN: ckopt-opt --split-input-file --autodiff --canonicalize --cse %s | FileCheck %s

// CHECK-LABEL: func.func @step(
// CHECK: %[[ROUND:.*]] = ckopt.round %{{.*}} {ckopt.straight_through}
// CHECK: ckopt.clip %[[ROUND]]
// CHECK-DAG: ckopt.compare {{ *}}ge %[[ROUND]]
// CHECK-DAG: ckopt.compare {{ *}}le %[[ROUND]]
// CHECK: %[[G:.*]] = ckopt.select
// CHECK: return %{{.*}}, %[[G]]
func.func @forward(%x: tensor<4xf32> {ckopt.name = "x", ckopt.role = "parameter"})
    -> (tensor<f32> {ckopt.name = "loss"}) {
  %r = ckopt.round %x {ckopt.straight_through} : (tensor<4xf32>) -> tensor<4xf32>
  %c = ckopt.clip %r {min = -2.0 : f64, max = 2.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  %m = ckopt.mul %c, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %loss = ckopt.reduce sum %m {axes = array<i64: 0>, keepdims = false} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Without the mark the derivative of rounding is zero: there is no gradient.
// CHECK-LABEL: func.func @step(
// CHECK: %[[LOSS:.*]] = ckopt.reduce sum
// CHECK-NEXT: return %[[LOSS]] : tensor<f32>
func.func @forward(%x: tensor<4xf32> {ckopt.name = "x", ckopt.role = "parameter"})
    -> (tensor<f32> {ckopt.name = "loss"}) {
  %r = ckopt.round %x : (tensor<4xf32>) -> tensor<4xf32>
  %m = ckopt.mul %r, %r : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %loss = ckopt.reduce sum %m {axes = array<i64: 0>, keepdims = false} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
