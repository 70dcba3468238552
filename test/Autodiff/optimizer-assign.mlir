// Optimizers that are written in elementwise ops end in assignments, which fusion
// makes one kernel for each parameter: every operand is read once. A group's
// settings come from the parameter's attribute; an average is one more state.
// RUN: ckopt-opt %s --optimizer="type=rmsprop momentum=0.5 ema=0.9" | FileCheck %s
// RUN: ckopt-opt %s --optimizer="type=rmsprop momentum=0.5 ema=0.9" --canonicalize --cse --fuse | FileCheck %s --check-prefix=FUSED
// RUN: ckopt-opt %s --optimizer="type=adamw ema=0.9" --canonicalize --cse --fuse | FileCheck %s --check-prefix=ADAM

// CHECK-LABEL: func.func @step(
// CHECK-SAME:    tensor<3000xf32> {ckopt.name = "a/v", ckopt.role = "optimizer_state"}
// CHECK-SAME:    tensor<3000xf32> {ckopt.name = "a/velocity", ckopt.role = "optimizer_state"}
// CHECK-SAME:    tensor<3000xf32> {ckopt.name = "a/ema", ckopt.role = "optimizer_state"}
// CHECK-SAME:    tensor<7000xf32> {ckopt.name = "b/v"
// CHECK-SAME:    tensor<7000xf32> {ckopt.name = "b/velocity"
// CHECK-SAME:    tensor<7000xf32> {ckopt.name = "b/ema"
// CHECK-DAG:     ckopt.constant dense<2.500000e-01> : tensor<f64>
// CHECK:         ckopt.sqrt {{.*}} : (tensor<3000xf32>)
// CHECK-COUNT-4: ckopt.assign {{.*}} : (tensor<3000xf32>, tensor<3000xf32>)
// CHECK:         ckopt.sqrt {{.*}} : (tensor<7000xf32>)
// CHECK-COUNT-4: ckopt.assign {{.*}} : (tensor<7000xf32>, tensor<7000xf32>)

// FUSED-LABEL: func.func @step(
// FUSED:       ckopt.kernel_call @[[A:[a-z0-9_]+]]({{.*}} -> (tensor<3000xf32>, tensor<3000xf32>, tensor<3000xf32>, tensor<3000xf32>)
// FUSED:       ckopt.kernel_call @[[B:[a-z0-9_]+]]({{.*}} -> (tensor<7000xf32>, tensor<7000xf32>, tensor<7000xf32>, tensor<7000xf32>)
// FUSED-NOT:   kernel_call
// FUSED:       return
// FUSED:       func.func private @[[A]](
// FUSED-COUNT-1: ckopt.sqrt
// FUSED-NOT:   ckopt.sqrt
// FUSED:       func.func private @[[B]](

// ADAM-LABEL: func.func @step(
// ADAM:       ckopt.kernel_call {{.*}} -> (tensor<3000xf32>, tensor<3000xf32>, tensor<3000xf32>, tensor<3000xf32>)
func.func @step(
    %a: tensor<3000xf32> {ckopt.name = "a", ckopt.role = "parameter"},
    %b: tensor<7000xf32> {ckopt.name = "b", ckopt.role = "parameter", ckopt.optimizer = {weight_decay = 0.125, lr_scale = 0.25}},
    %ga: tensor<3000xf32>, %gb: tensor<7000xf32>)
    -> (tensor<f32> {ckopt.name = "loss"},
        tensor<3000xf32> {ckopt.gradient = 0 : i64},
        tensor<7000xf32> {ckopt.gradient = 1 : i64}) {
  %loss = ckopt.constant dense<0.0> : tensor<f32>
  return %loss, %ga, %gb : tensor<f32>, tensor<3000xf32>, tensor<7000xf32>
}
