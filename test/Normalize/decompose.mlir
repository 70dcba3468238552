// Batch norm and its gradient share the reciprocal deviation; the gradient's two
// sums read the same operands, so that they become one kernel.
// RUN: ckopt-opt %s --decompose --canonicalize --cse | FileCheck %s

// CHECK-LABEL: func.func @step(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<2x3x4x4xf32>, %[[S:[^:]*]]: tensor<3xf32>, %[[B:[^:]*]]: tensor<3xf32>, %[[G:[^:]*]]: tensor<2x3x4x4xf32>
// CHECK:         %[[MEAN:.*]], %[[VAR:.*]] = ckopt.moments %[[X]] {axes = array<i64: 0, 2, 3>}
// CHECK:         %[[RSTD:.*]] = ckopt.rsqrt %{{.*}} : (tensor<3xf32>) -> tensor<3xf32>
// CHECK:         %[[K:.*]] = ckopt.mul %[[S]], %[[RSTD]]
// CHECK:         %[[M4:.*]] = ckopt.reshape %[[MEAN]] : (tensor<3xf32>) -> tensor<1x3x1x1xf32>
// CHECK:         %[[C:.*]] = ckopt.sub %[[X]], %[[M4]]
// CHECK:         %[[SUM:.*]] = ckopt.reduce{{ *}} sum %[[G]] {axes = array<i64: 0, 2, 3>
// CHECK:         %[[GC:.*]] = ckopt.mul %[[G]], %[[C]]
// CHECK:         %[[MOMENT:.*]] = ckopt.reduce{{ *}} sum %[[GC]] {axes = array<i64: 0, 2, 3>
// CHECK:         %[[DSCALE:.*]] = ckopt.mul %[[MOMENT]], %[[RSTD]]
// CHECK-NOT:     ckopt.rsqrt
// CHECK:         return %{{.*}}, %{{.*}}, %[[DSCALE]], %[[SUM]]
func.func @step(%x: tensor<2x3x4x4xf32>, %s: tensor<3xf32>, %b: tensor<3xf32>, %g: tensor<2x3x4x4xf32>)
    -> (tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>) {
  %y, %m, %v = ckopt.batch_norm %x, %s, %b {epsilon = 1.0e-5}
    : (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>)
  %dx, %ds, %db = ckopt.batch_norm_grad %g, %x, %s, %m, %v {epsilon = 1.0e-5}
    : (tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
    -> (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>)
  return %y, %dx, %ds, %db : tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>
}
