// The gradient of a tied embedding is one table: the lookups' part is added
// into the output layer's by the scatter itself.
// RUN: ckopt-opt %s --attach-loss --autodiff --canonicalize --cse | FileCheck %s

// CHECK-LABEL: func.func @step(
func.func @forward(
    %ids: tensor<2x3xi64> {ckopt.name = "ids", ckopt.role = "input"},
    %table: tensor<11x4xf32> {ckopt.name = "table", ckopt.role = "parameter"})
    -> tensor<2x3x11xf32> {
  // CHECK: %[[G:.*]] = ckopt.cross_entropy_grad
  // The weight's gradient is a 2-D product, although the logits are 3-D.
  // CHECK: %[[FLAT:.*]] = ckopt.reshape %[[G]] : (tensor<2x3x11xf32>) -> tensor<6x11xf32>
  // CHECK: %[[FULL:.*]] = ckopt.matmul %[[FLAT]], {{.*}} -> tensor<11x4xf32>
  // CHECK: %[[SUM:.*]] = ckopt.scatter_add %[[FULL]],
  // CHECK-NOT: ckopt.add
  // CHECK: return %{{.*}}, %[[SUM]]
  %e = ckopt.gather %table, %ids {axis = 0 : i64} : (tensor<11x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
  %h = ckopt.tanh %e : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %y = ckopt.matmul %h, %table {transpose_rhs} : (tensor<2x3x4xf32>, tensor<11x4xf32>) -> tensor<2x3x11xf32>
  return %y : tensor<2x3x11xf32>
}
