// Micro-batches: `accumulate` only adds to the sums; the step adds its own part,
// updates, and clears the sums. Both have the same arguments, and the step number
// that dropout reads is the optimizer's.
// RUN: ckopt-opt %s --optimizer="type=sgd accumulate=4" | FileCheck %s

// CHECK-LABEL: func.func @accumulate(
// CHECK-SAME:    %{{[^:]*}}: tensor<3xf32> {ckopt.name = "a"
// CHECK-SAME:    %[[G:[^:]*]]: tensor<3xf32>,
// CHECK-SAME:    %{{[^:]*}}: tensor<i64> {ckopt.name = "step", ckopt.role = "step"}
// CHECK-SAME:    %[[SUM:[^:]*]]: tensor<3xf32> {ckopt.name = "a/grad_sum", ckopt.role = "optimizer_state"}
// CHECK-SAME:    "learning_rate"
// CHECK-SAME:    -> (tensor<f32> {ckopt.name = "loss"}, tensor<3xf32> {ckopt.name = "a/grad_sum", ckopt.updates = 3 : i64})
// CHECK:         %[[PART:.*]] = ckopt.mul %[[G]],
// CHECK:         ckopt.accumulate %[[SUM]], %[[PART]]
// CHECK-NOT:     ckopt.sgd

// CHECK-LABEL: func.func @step(
// CHECK-SAME:    %[[A:[^:]*]]: tensor<3xf32> {ckopt.name = "a"
// CHECK-SAME:    %[[STEP:[^:]*]]: tensor<i64> {ckopt.name = "step", ckopt.role = "step"}
// CHECK-SAME:    %[[SUM:[^:]*]]: tensor<3xf32> {ckopt.name = "a/grad_sum"
// CHECK:         %[[PART:.*]] = ckopt.mul
// CHECK:         %[[TOTAL:.*]] = ckopt.add %[[SUM]], %[[PART]]
// CHECK:         %[[MINUS:.*]] = ckopt.neg %[[SUM]]
// CHECK:         ckopt.accumulate %[[SUM]], %[[MINUS]]
// CHECK:         ckopt.sgd %[[A]], %[[TOTAL]], %{{.*}}, %[[STEP]]
func.func @step(
    %a: tensor<3xf32> {ckopt.name = "a", ckopt.role = "parameter"},
    %ga: tensor<3xf32>,
    %step: tensor<i64> {ckopt.name = "step", ckopt.role = "step"})
    -> (tensor<f32> {ckopt.name = "loss"}, tensor<3xf32> {ckopt.gradient = 0 : i64}) {
  %loss = ckopt.constant dense<0.0> : tensor<f32>
  return %loss, %ga : tensor<f32>, tensor<3xf32>
}
