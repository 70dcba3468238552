// Gradients become updates in place; state, learning rate and step number
// become arguments; clipping sums the squares in argument order.
// RUN: ckopt-opt %s --optimizer="type=adamw" | FileCheck %s --check-prefix=ADAMW
// RUN: ckopt-opt %s --optimizer="type=sgd" | FileCheck %s --check-prefix=SGD
// RUN: ckopt-opt %s --optimizer="type=sgd momentum=0.9 nesterov=true weight-decay=0.25 clip-norm=2" | FileCheck %s --check-prefix=CLIP

// ADAMW-LABEL: func.func @step(
// ADAMW-SAME:    %[[A:[^:]*]]: tensor<3xf32> {ckopt.name = "a", ckopt.role = "parameter"}
// ADAMW-SAME:    %[[M:[^:]*]]: tensor<3xf32> {ckopt.name = "a/m", ckopt.role = "optimizer_state"}
// ADAMW-SAME:    %[[V:[^:]*]]: tensor<3xf32> {ckopt.name = "a/v", ckopt.role = "optimizer_state"}
// ADAMW-SAME:    %[[LR:[^:]*]]: tensor<f32> {ckopt.name = "learning_rate", ckopt.role = "learning_rate"}
// ADAMW-SAME:    %[[STEP:[^:]*]]: tensor<i64> {ckopt.name = "step", ckopt.role = "step"}
// ADAMW-SAME:    -> (tensor<f32> {ckopt.name = "loss"}
// ADAMW-SAME:        tensor<3xf32> {ckopt.name = "a", ckopt.updates = 0 : i64}
// ADAMW-SAME:        tensor<3xf32> {ckopt.name = "a/m", ckopt.updates = 4 : i64}
// ADAMW:         ckopt.adam %[[A]], %{{.*}}, %[[M]], %[[V]], %[[LR]], %[[STEP]]
// ADAMW-SAME:      decoupled
// ADAMW-SAME:      weight_decay = 1.000000e-02 : f64

// SGD:     ckopt.sgd
// SGD-NOT: velocity
// SGD:     return

// CLIP:      %[[SA:.*]] = ckopt.reduce{{ *}} sum %{{.*}} : (tensor<3xf32>) -> tensor<f32>
// CLIP:      %[[SB:.*]] = ckopt.reduce{{ *}} sum %{{.*}} : (tensor<2xf32>) -> tensor<f32>
// CLIP:      %[[S:.*]] = ckopt.add %[[SA]], %[[SB]]
// CLIP:      ckopt.sqrt %[[S]]
// CLIP:      ckopt.minimum
// CLIP:      ckopt.sgd {{.*}} velocity %{{.*}} nesterov, weight_decay = 2.500000e-01 : f64
func.func @step(
    %a: tensor<3xf32> {ckopt.name = "a", ckopt.role = "parameter"},
    %b: tensor<2xf32> {ckopt.name = "b", ckopt.role = "parameter"},
    %ga: tensor<3xf32>, %gb: tensor<2xf32>)
    -> (tensor<f32> {ckopt.name = "loss"},
        tensor<3xf32> {ckopt.gradient = 0 : i64},
        tensor<2xf32> {ckopt.gradient = 1 : i64}) {
  %loss = ckopt.constant dense<0.0> : tensor<f32>
  return %loss, %ga, %gb : tensor<f32>, tensor<3xf32>, tensor<2xf32>
}
