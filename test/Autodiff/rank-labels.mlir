// Shows what an evaluation returns in place of large scores: at each place the
// loss of the label, and how many classes come before it.
// RUN: ckopt-opt %s --rank-labels | FileCheck %s
// RUN: ckopt-opt %s --rank-labels=least-bytes=97 | FileCheck %s --check-prefix=SMALL
// RUN: not ckopt-opt %s --rank-labels=loss=mse 2>&1 | FileCheck %s --check-prefix=MSE

// CHECK: func.func @eval(%[[X:.*]]: tensor<2x3x4xf32>, %[[L:.*]]: tensor<2x3xi64> {ckopt.classes = 4 : i64, ckopt.ignore_index = -100 : i64, ckopt.name = "target", ckopt.role = "target", ckopt.target_of = "logits"})
// CHECK-SAME: -> (tensor<2x3xf32> {ckopt.name = "ckopt.label_losses"}, tensor<2x1xf32> {ckopt.name = "other"}, tensor<2x3xf32> {ckopt.name = "ckopt.label_ranks"})
// CHECK: %[[LABEL:.*]] = ckopt.minimum
// CHECK: %[[OWN:.*]] = ckopt.gather_elements %[[X]], %[[LABEL]] {axis = 2 : i64}
// CHECK: %[[EQ:.*]] = ckopt.compare{{ *}} eq %[[X]], %[[OWN]]
// CHECK-NEXT: %[[LT:.*]] = ckopt.compare{{ *}} lt
// CHECK: ckopt.and %[[EQ]], %[[LT]]
// SMALL: -> (tensor<2x3x4xf32> {ckopt.name = "logits"}, tensor<2x1xf32>
// MSE: error: rank-labels needs one cross_entropy, got 'mse:logits'
func.func @eval(%x: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32> {ckopt.name = "logits"}, tensor<2x1xf32> {ckopt.name = "other"}) {
  %y = ckopt.slice %x {starts = array<i64: 0, 0, 0>, sizes = array<i64: 2, 1, 1>, steps = array<i64: 1, 1, 1>} : (tensor<2x3x4xf32>) -> tensor<2x1x1xf32>
  %z = ckopt.reshape %y : (tensor<2x1x1xf32>) -> tensor<2x1xf32>
  return %x, %z : tensor<2x3x4xf32>, tensor<2x1xf32>
}
