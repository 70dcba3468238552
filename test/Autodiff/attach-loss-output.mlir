// A scalar output of the model's own is a loss: the one named 'loss', the one
// that a loss operator made, or the only one; several add up with weights, and
// mix with attached ones, whose targets are then named after their outputs.
// RUN: ckopt-opt %s --split-input-file --attach-loss=loss=output | FileCheck %s
// RUN: not ckopt-opt %s --split-input-file --attach-loss="loss='output:kl*0.5+mse:y*1e-3+l1:y'" 2>/dev/null | FileCheck %s --check-prefix=SUM

// CHECK:      func.func @forward(%[[Y:[^:]*]]: {{.*}}, %[[KL:[^:]*]]: tensor<f32>, %[[L:[^:]*]]: tensor<1xf32>)
// CHECK-SAME: -> (tensor<f32> {ckopt.name = "loss", ckopt.role = "loss"}, tensor<4x2xf32> {ckopt.name = "y"}, tensor<f32> {ckopt.name = "kl"})
// CHECK:      %[[R:.*]] = ckopt.reshape %[[L]]
// CHECK:      return %[[R]], %[[Y]], %[[KL]]

// SUM:        func.func @forward(
// SUM-SAME:   %[[T:[^:]*]]: tensor<4x2xf32> {ckopt.name = "target.y", ckopt.role = "target", ckopt.target_of = "y"}
// SUM-SAME:   %[[U:[^:]*]]: tensor<4x2xf32> {ckopt.name = "target.y.2", ckopt.role = "target", ckopt.target_of = "y"}
// SUM-SAME:   -> (tensor<f32> {ckopt.name = "loss", ckopt.role = "loss"}, tensor<4x2xf32> {ckopt.name = "y"}, tensor<f32> {ckopt.name = "kl"}, tensor<1xf32> {ckopt.name = "loss.output"})
// SUM:        dense<5.000000e-01>
// SUM:        %[[A:.*]] = ckopt.mul %arg1,
// SUM:        ckopt.reduce{{ *}} mean
// SUM:        dense<1.000000e-03>
// SUM:        ckopt.add %[[A]],
// SUM:        ckopt.abs
func.func @forward(%y: tensor<4x2xf32> {ckopt.name = "y", ckopt.role = "input"}, %kl: tensor<f32>, %l: tensor<1xf32>)
    -> (tensor<4x2xf32> {ckopt.name = "y"}, tensor<f32> {ckopt.name = "kl"}, tensor<1xf32> {ckopt.name = "loss"}) {
  return %y, %kl, %l : tensor<4x2xf32>, tensor<f32>, tensor<1xf32>
}

// -----

// An operator's loss comes before other scalars.
// CHECK:      func.func @forward(%[[A:[^:]*]]: tensor<f32>, %[[B:[^:]*]]: tensor<f32>)
// CHECK:      return %[[B]], %[[A]]
func.func @forward(%a: tensor<f32>, %b: tensor<f32>)
    -> (tensor<f32> {ckopt.name = "a"}, tensor<f32> {ckopt.name = "b", ckopt.role = "loss"}) {
  return %a, %b : tensor<f32>, tensor<f32>
}
