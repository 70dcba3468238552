// Shows how chunks of a loss get rows of logits that kernels load at once: the weight and the bias
// are padded with zeros once, the losses know how many classes there are, and the gradients lose
// what was added.
// RUN: ckopt-opt %s --decompose=class-group=8 --canonicalize --cse | FileCheck %s
// RUN: ckopt-opt %s --decompose --canonicalize --cse | FileCheck %s --check-prefix=NONE
// NONE-NOT: ckopt.pad
// NONE-NOT: classes

// CHECK-LABEL: func.func @step(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<3x4xf32>, %[[W:[^:]*]]: tensor<13x4xf32>, %[[T:[^:]*]]: tensor<3xi64>, %[[B:[^:]*]]: tensor<13xf32>, %[[G:[^:]*]]: tensor<3xf32>
// CHECK-DAG:     %[[WIDE:.*]] = ckopt.pad %[[W]] {high = array<i64: 3, 0>{{.*}} -> tensor<16x4xf32>
// CHECK-DAG:     %[[BIAS:.*]] = ckopt.pad %[[B]] {high = array<i64: 3>{{.*}} -> tensor<16xf32>
// CHECK:         %[[P0:.*]] = ckopt.matmul %{{.*}}, %[[WIDE]] {transpose_rhs} : {{.*}} -> tensor<2x16xf32>
// CHECK:         %[[Z0:.*]] = ckopt.add %[[P0]], %[[BIAS]]
// CHECK:         ckopt.cross_entropy %[[Z0]], %{{.*}} {axis = 1 : i64, classes = 13 : i64, ignore_index = 5 : i64}
// CHECK:         %[[G0:.*]] = ckopt.cross_entropy_grad {{.*}} {axis = 1 : i64, classes = 13 : i64, ignore_index = 5 : i64}
// CHECK:         ckopt.matmul %[[G0]], %[[WIDE]] : {{.*}} -> tensor<2x4xf32>
// CHECK:         %[[DW0:.*]] = ckopt.matmul %[[G0]], %{{.*}} {transpose_lhs} : {{.*}} -> tensor<16x4xf32>
// CHECK-NOT:     ckopt.pad
// CHECK:         %[[DW1:.*]] = ckopt.matmul_add %{{.*}}, %[[DW0]] {transpose_lhs}
// CHECK:         %[[DB:.*]] = ckopt.add {{.*}} -> tensor<16xf32>
// CHECK:         ckopt.slice %[[DW1]] {sizes = array<i64: 13, 4>, starts = array<i64: 0, 0>
// CHECK:         ckopt.slice %[[DB]] {sizes = array<i64: 13>, starts = array<i64: 0>
func.func @step(%x: tensor<3x4xf32>, %w: tensor<13x4xf32>, %t: tensor<3xi64>, %b: tensor<13xf32>, %g: tensor<3xf32>) -> (tensor<3xf32>, tensor<3x4xf32>, tensor<13x4xf32>, tensor<13xf32>) {
  %loss, %dx, %dw, %db = ckopt.linear_cross_entropy_grad %g, %x, %w, %t bias %b {ignore_index = 5 : i64, rows = 2 : i64, transpose_weight} : (tensor<3xf32>, tensor<3x4xf32>, tensor<13x4xf32>, tensor<3xi64>, tensor<13xf32>) -> (tensor<3xf32>, tensor<3x4xf32>, tensor<13x4xf32>, tensor<13xf32>)
  return %loss, %dx, %dw, %db : tensor<3xf32>, tensor<3x4xf32>, tensor<13x4xf32>, tensor<13xf32>
}

// The loss alone, of a weight that is not transposed.
// CHECK-LABEL: func.func @loss(
// CHECK:         %[[WIDE:.*]] = ckopt.pad %{{.*}} {high = array<i64: 0, 3>{{.*}} -> tensor<4x16xf32>
// CHECK:         ckopt.matmul %{{.*}}, %[[WIDE]] : {{.*}} -> tensor<2x16xf32>
// CHECK:         ckopt.cross_entropy {{.*}} classes = 13
// CHECK:         ckopt.cross_entropy {{.*}} classes = 13
func.func @loss(%x: tensor<4x4xf32>, %w: tensor<4x13xf32>, %t: tensor<4xi64>) -> tensor<4xf32> {
  %loss = ckopt.linear_cross_entropy %x, %w, %t {rows = 2 : i64} : (tensor<4x4xf32>, tensor<4x13xf32>, tensor<4xi64>) -> tensor<4xf32>
  return %loss : tensor<4xf32>
}

// The gradient of an embedding that is the head's weight, too, is added before the padding goes.
// Negative indices count from the end of what exists.
// CHECK-LABEL: func.func @tied(
// CHECK-SAME:    %[[I:[^:]*]]: tensor<5xi64>
// CHECK:         %[[DW:.*]] = ckopt.matmul_add {{.*}} -> tensor<16x4xf32>
// CHECK-DAG:     %[[NEGATIVE:.*]] = ckopt.compare lt %[[I]], %{{.*}}
// CHECK-DAG:     %[[END:.*]] = ckopt.add %[[I]], %{{.*}}
// CHECK:         %[[AT:.*]] = ckopt.select %[[NEGATIVE]], %[[END]], %[[I]]
// CHECK:         %[[LEAST:.*]] = ckopt.maximum %[[AT]],
// CHECK:         %[[ROW:.*]] = ckopt.minimum %[[LEAST]],
// CHECK:         %[[SUM:.*]] = ckopt.scatter_add %[[DW]], %[[ROW]], {{.*}} -> tensor<16x4xf32>
// CHECK:         %[[REST:.*]] = ckopt.slice %[[SUM]] {sizes = array<i64: 13, 4>
// CHECK:         return %[[REST]]
func.func @tied(%i: tensor<5xi64>, %u: tensor<5x4xf32>, %x: tensor<3x4xf32>, %w: tensor<13x4xf32>, %t: tensor<3xi64>, %g: tensor<3xf32>) -> tensor<13x4xf32> {
  %loss, %dx, %dw = ckopt.linear_cross_entropy_grad %g, %x, %w, %t {rows = 2 : i64, transpose_weight} : (tensor<3xf32>, tensor<3x4xf32>, tensor<13x4xf32>, tensor<3xi64>) -> (tensor<3xf32>, tensor<3x4xf32>, tensor<13x4xf32>)
  %sum = ckopt.scatter_add %dw, %i, %u {axis = 0 : i64} : (tensor<13x4xf32>, tensor<5xi64>, tensor<5x4xf32>) -> tensor<13x4xf32>
  return %sum : tensor<13x4xf32>
}

// Eight classes are a multiple, five would be more than a third more.
// CHECK-LABEL: func.func @others(
// CHECK-NOT:     ckopt.pad
// CHECK-NOT:     classes
func.func @others(%x: tensor<4x4xf32>, %w: tensor<4x8xf32>, %v: tensor<4x5xf32>, %t: tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = ckopt.linear_cross_entropy %x, %w, %t {rows = 2 : i64} : (tensor<4x4xf32>, tensor<4x8xf32>, tensor<4xi64>) -> tensor<4xf32>
  %1 = ckopt.linear_cross_entropy %x, %v, %t {rows = 2 : i64} : (tensor<4x4xf32>, tensor<4x5xf32>, tensor<4xi64>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
