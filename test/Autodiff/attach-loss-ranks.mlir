// A loss that the model computes becomes a rank's share of the whole batch's, where it is made of sums and means over samples.
// RUN: ckopt-opt %s --split-input-file --verify-diagnostics "--attach-loss=loss=output ranks=2" | FileCheck %s

// What is the same on all ranks counts half on each.
// CHECK-LABEL: func.func @forward(
// CHECK:         %[[HALF:.*]] = ckopt.constant dense<5.000000e-01>
// CHECK:         %[[SHARE:.*]] = ckopt.mul %{{.*}}, %[[HALF]]
// CHECK:         return %[[SHARE]]
func.func @forward(%p: tensor<f32> {ckopt.name = "p", ckopt.role = "parameter"})
    -> (tensor<f32> {ckopt.name = "l"}) {
  return %p : tensor<f32>
}

// -----

// The largest number of a rank's samples says nothing about those of others.
func.func @forward(%x: tensor<4xf32> {ckopt.name = "x", ckopt.role = "input"}, %p: tensor<f32> {ckopt.name = "p", ckopt.role = "parameter"})
    -> (tensor<f32> {ckopt.name = "l"}) {
  // expected-error @+1 {{ckopt.reduce combines samples, so that the model computes the loss 'l' itself, in another way than by sums and means over samples}}
  %m = ckopt.reduce max %x {axes = array<i64: 0>, keepdims = false} : (tensor<4xf32>) -> tensor<f32>
  %l = ckopt.mul %m, %p : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %l : tensor<f32>
}
