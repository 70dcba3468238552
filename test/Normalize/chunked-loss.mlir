// A loss and its gradient become one pass over chunks of rows: three products each,
// none of them twice, and a weight's gradient that grows in one order.
// RUN: ckopt-opt %s --decompose --canonicalize --cse | FileCheck %s

// CHECK-LABEL: func.func @step(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<5x4xf32>, %[[W:[^:]*]]: tensor<6x4xf32>, %[[T:[^:]*]]: tensor<5xi64>, %[[G:[^:]*]]: tensor<5xf32>
// CHECK:         %[[X0:.*]] = ckopt.slice %[[X]] {sizes = array<i64: 3, 4>, starts = array<i64: 0, 0>
// CHECK:         %[[T0:.*]] = ckopt.slice %[[T]] {sizes = array<i64: 3>, starts = array<i64: 0>
// CHECK:         %[[Z0:.*]] = ckopt.matmul %[[X0]], %[[W]] {transpose_rhs} : {{.*}} -> tensor<3x6xf32>
// CHECK:         %[[L0:[^,]*]], %[[S0:[^,]*]], %[[S0LOST:.*]] = ckopt.cross_entropy %[[Z0]], %[[T0]] {axis = 1 : i64}
// CHECK:         %[[D0:.*]] = ckopt.slice %[[G]]
// CHECK:         %[[G0:.*]] = ckopt.cross_entropy_grad %[[D0]], %[[Z0]], %[[T0]], %[[S0]], %[[S0LOST]]
// CHECK:         %[[DX0:.*]] = ckopt.matmul %[[G0]], %[[W]] : {{.*}} -> tensor<3x4xf32>
// CHECK:         %[[DW0:.*]] = ckopt.matmul %[[G0]], %[[X0]] {transpose_lhs} : {{.*}} -> tensor<6x4xf32>
// CHECK:         %[[X1:.*]] = ckopt.slice %[[X]] {sizes = array<i64: 2, 4>, starts = array<i64: 3, 0>
// CHECK:         %[[Z1:.*]] = ckopt.matmul %[[X1]], %[[W]] {transpose_rhs} : {{.*}} -> tensor<2x6xf32>
// CHECK:         %[[L1:[^,]*]], %{{.*}} = ckopt.cross_entropy %[[Z1]]
// CHECK:         %[[G1:.*]] = ckopt.cross_entropy_grad
// CHECK:         %[[DX1:.*]] = ckopt.matmul %[[G1]], %[[W]]
// CHECK:         %[[DW1:.*]] = ckopt.matmul_add %[[G1]], %[[X1]], %[[DW0]] {transpose_lhs}
// CHECK:         %[[L:.*]] = ckopt.concat %[[L0]], %[[L1]]
// CHECK:         %[[DX:.*]] = ckopt.concat %[[DX0]], %[[DX1]]
// CHECK-NOT:     ckopt.matmul
// CHECK:         %[[SUM:.*]] = ckopt.reduce{{ *}} sum %[[L]]
// CHECK:         return %[[SUM]], %[[DX]], %[[DW1]]
func.func @step(%x: tensor<5x4xf32>, %w: tensor<6x4xf32>, %t: tensor<5xi64>, %g: tensor<5xf32>) -> (tensor<f32>, tensor<5x4xf32>, tensor<6x4xf32>) {
  %loss = ckopt.linear_cross_entropy %x, %w, %t {rows = 3 : i64, transpose_weight} : (tensor<5x4xf32>, tensor<6x4xf32>, tensor<5xi64>) -> tensor<5xf32>
  %sum = ckopt.reduce sum %loss {axes = array<i64: 0>, keepdims = false} : (tensor<5xf32>) -> tensor<f32>
  %again, %dx, %dw = ckopt.linear_cross_entropy_grad %g, %x, %w, %t {rows = 3 : i64, transpose_weight} : (tensor<5xf32>, tensor<5x4xf32>, tensor<6x4xf32>, tensor<5xi64>) -> (tensor<5xf32>, tensor<5x4xf32>, tensor<6x4xf32>)
  return %sum, %dx, %dw : tensor<f32>, tensor<5x4xf32>, tensor<6x4xf32>
}

// A gradient that depends on the loss cannot make it: the loss comes first, and cse lets
// the gradient read its logits. Nobody asks for the gradient of the frozen weight; that of
// the bias adds up.
// CHECK-LABEL: func.func @depends(
// CHECK:         ckopt.matmul {{.*}} -> tensor<2x6xf32>
// CHECK:         %[[Z0:.*]] = ckopt.add {{.*}} -> tensor<2x6xf32>
// CHECK:         ckopt.matmul {{.*}} -> tensor<2x6xf32>
// CHECK:         %[[Z1:.*]] = ckopt.add {{.*}} -> tensor<2x6xf32>
// CHECK:         ckopt.exp
// CHECK:         ckopt.cross_entropy_grad %{{.*}}, %[[Z0]],
// CHECK:         %[[B0:.*]] = ckopt.reduce{{ *}} sum %{{.*}} {axes = array<i64: 0>
// CHECK:         ckopt.cross_entropy_grad %{{.*}}, %[[Z1]],
// CHECK:         %[[B1:.*]] = ckopt.reduce{{ *}} sum %{{.*}} {axes = array<i64: 0>
// CHECK:         %[[BIAS:.*]] = ckopt.add %[[B0]], %[[B1]]
// CHECK-NOT:     -> tensor<4x6xf32>
// CHECK:         return %{{.*}}, %{{.*}}, %[[BIAS]]
func.func @depends(%x: tensor<4x4xf32>, %w: tensor<4x6xf32>, %t: tensor<4xi64>, %b: tensor<6xf32>) -> (tensor<4xf32>, tensor<4x4xf32>, tensor<6xf32>) {
  %loss = ckopt.linear_cross_entropy %x, %w, %t bias %b {rows = 2 : i64} : (tensor<4x4xf32>, tensor<4x6xf32>, tensor<4xi64>, tensor<6xf32>) -> tensor<4xf32>
  %g = ckopt.exp %loss : (tensor<4xf32>) -> tensor<4xf32>
  %again, %dx, %dw, %db = ckopt.linear_cross_entropy_grad %g, %x, %w, %t bias %b {rows = 2 : i64} : (tensor<4xf32>, tensor<4x4xf32>, tensor<4x6xf32>, tensor<4xi64>, tensor<6xf32>) -> (tensor<4xf32>, tensor<4x4xf32>, tensor<4x6xf32>, tensor<6xf32>)
  return %g, %dx, %db : tensor<4xf32>, tensor<4x4xf32>, tensor<6xf32>
}
