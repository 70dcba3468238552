// Identities that keep every bit are removed, views and transposes merge, and
// what would change a bit stays.
// RUN: ckopt-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: func @arithmetic
// CHECK-SAME: %[[X:.*]]: tensor<2xf32>, %[[I:.*]]: tensor<2xi64>
func.func @arithmetic(%x: tensor<2xf32>, %i: tensor<2xi64>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xi64>) {
  %zero = ckopt.constant dense<0.0> : tensor<f32>
  %one = ckopt.constant dense<1.0> : tensor<f32>
  %izero = ckopt.constant dense<0> : tensor<i64>
  %0 = ckopt.mul %one, %x : (tensor<f32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = ckopt.div %0, %one : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %2 = ckopt.sub %1, %zero : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %3 = ckopt.neg %2 : (tensor<2xf32>) -> tensor<2xf32>
  %4 = ckopt.neg %3 : (tensor<2xf32>) -> tensor<2xf32>
  %5 = ckopt.add %i, %izero : (tensor<2xi64>, tensor<i64>) -> tensor<2xi64>
  // -0 + 0 is +0: an addition of 0 to floats stays.
  // CHECK: %[[ADD:.*]] = ckopt.add %[[X]], %{{.*}} : (tensor<2xf32>, tensor<f32>)
  %6 = ckopt.add %x, %zero : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  // CHECK: return %[[X]], %[[X]], %[[X]], %[[ADD]], %[[I]]
  return %1, %2, %4, %6, %5 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xi64>
}

// CHECK-LABEL: func @broadcast_is_no_identity
func.func @broadcast_is_no_identity(%x: tensor<1xf32>) -> tensor<2xf32> {
  %one = ckopt.constant dense<1.0> : tensor<2xf32>
  // CHECK: ckopt.mul
  %0 = ckopt.mul %x, %one : (tensor<1xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// CHECK-LABEL: func @powers
// CHECK-SAME: %[[X:.*]]: tensor<2xf32>
func.func @powers(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %half = ckopt.constant dense<0.5> : tensor<f32>
  %one = ckopt.constant dense<1.0> : tensor<f32>
  %two = ckopt.constant dense<2.0> : tensor<f32>
  %three = ckopt.constant dense<3.0> : tensor<f32>
  // CHECK-DAG: %[[SQRT:.*]] = ckopt.sqrt %[[X]]
  // CHECK-DAG: %[[SQUARE:.*]] = ckopt.mul %[[X]], %[[X]]
  // CHECK-DAG: %[[POW:.*]] = ckopt.pow %[[X]]
  %0 = ckopt.pow %x, %half : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %1 = ckopt.pow %x, %one : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %2 = ckopt.pow %x, %two : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %3 = ckopt.pow %x, %three : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  // CHECK: return %[[SQRT]], %[[X]], %[[SQUARE]], %[[POW]]
  return %0, %1, %2, %3 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// CHECK-LABEL: func @casts
// CHECK-SAME: %[[F:.*]]: tensor<2xf32>, %[[I:.*]]: tensor<2xi32>, %[[B:.*]]: tensor<2xi1>
func.func @casts(%f: tensor<2xf32>, %i: tensor<2xi32>, %b: tensor<2xi1>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xi1>, tensor<2xi16>, tensor<2xf32>, tensor<2xi32>) {
  %0 = ckopt.cast %f : (tensor<2xf32>) -> tensor<2xf32>
  %1 = ckopt.cast %f : (tensor<2xf32>) -> tensor<2xf64>
  %2 = ckopt.cast %1 : (tensor<2xf64>) -> tensor<2xf32>
  %3 = ckopt.cast %b : (tensor<2xi1>) -> tensor<2xf32>
  %4 = ckopt.cast %3 : (tensor<2xf32>) -> tensor<2xi1>
  // CHECK-DAG: %[[SHORT:.*]] = ckopt.cast %[[I]] : (tensor<2xi32>) -> tensor<2xi16>
  %5 = ckopt.cast %i : (tensor<2xi32>) -> tensor<2xi64>
  %6 = ckopt.cast %5 : (tensor<2xi64>) -> tensor<2xi16>
  // Not where the stop on the way rounds.
  // CHECK-DAG: %[[HALF:.*]] = ckopt.cast %[[F]] : (tensor<2xf32>) -> tensor<2xbf16>
  // CHECK-DAG: %[[BACK:.*]] = ckopt.cast %[[HALF]] : (tensor<2xbf16>) -> tensor<2xf32>
  %7 = ckopt.cast %f : (tensor<2xf32>) -> tensor<2xbf16>
  %8 = ckopt.cast %7 : (tensor<2xbf16>) -> tensor<2xf32>
  // CHECK-DAG: %[[FLOAT:.*]] = ckopt.cast %[[I]] : (tensor<2xi32>) -> tensor<2xf32>
  // CHECK-DAG: %[[INT:.*]] = ckopt.cast %[[FLOAT]] : (tensor<2xf32>) -> tensor<2xi32>
  %9 = ckopt.cast %i : (tensor<2xi32>) -> tensor<2xf32>
  %10 = ckopt.cast %9 : (tensor<2xf32>) -> tensor<2xi32>
  // CHECK: return %[[F]], %[[F]], %[[B]], %[[SHORT]], %[[BACK]], %[[INT]]
  return %0, %2, %4, %6, %8, %10 : tensor<2xf32>, tensor<2xf32>, tensor<2xi1>, tensor<2xi16>, tensor<2xf32>, tensor<2xi32>
}

// CHECK-LABEL: func @views
// CHECK-SAME: %[[X:.*]]: tensor<2x3x1xf32>
func.func @views(%x: tensor<2x3x1xf32>) -> (tensor<6xf32>, tensor<2x3x1xf32>, tensor<1x2x3xf32>, tensor<3x2x1xf32>) {
  // CHECK-DAG: %[[FLAT:.*]] = ckopt.reshape %[[X]] : (tensor<2x3x1xf32>) -> tensor<6xf32>
  %0 = ckopt.reshape %x : (tensor<2x3x1xf32>) -> tensor<3x2xf32>
  %1 = ckopt.reshape %0 : (tensor<3x2xf32>) -> tensor<6xf32>
  %2 = ckopt.reshape %1 : (tensor<6xf32>) -> tensor<2x3x1xf32>
  // Moving a dimension of size 1 is a reshape.
  // CHECK-DAG: %[[UNIT:.*]] = ckopt.reshape %[[X]] : (tensor<2x3x1xf32>) -> tensor<1x2x3xf32>
  %3 = ckopt.transpose %x {permutation = array<i64: 2, 0, 1>} : (tensor<2x3x1xf32>) -> tensor<1x2x3xf32>
  // CHECK-DAG: %[[SWAP:.*]] = ckopt.transpose %[[X]] {permutation = array<i64: 1, 0, 2>}
  %4 = ckopt.transpose %x {permutation = array<i64: 1, 2, 0>} : (tensor<2x3x1xf32>) -> tensor<3x1x2xf32>
  %5 = ckopt.transpose %4 {permutation = array<i64: 0, 2, 1>} : (tensor<3x1x2xf32>) -> tensor<3x2x1xf32>
  // CHECK: return %[[FLAT]], %[[X]], %[[UNIT]], %[[SWAP]]
  return %1, %2, %3, %5 : tensor<6xf32>, tensor<2x3x1xf32>, tensor<1x2x3xf32>, tensor<3x2x1xf32>
}

// CHECK-LABEL: func @matmul
// CHECK-SAME: %[[A:.*]]: tensor<2x3xf32>, %[[B:.*]]: tensor<2x3xf32>
func.func @matmul(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) -> tensor<2x2xf32> {
  %0 = ckopt.transpose %b {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  // CHECK-NEXT: ckopt.matmul %[[A]], %[[B]] {transpose_rhs}
  %1 = ckopt.matmul %a, %0 : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  return %1 : tensor<2x2xf32>
}

// CHECK-LABEL: func @data_movement
// CHECK-SAME: %[[X:.*]]: tensor<2x3xf32>, %[[Y:.*]]: tensor<2x4xf32>
func.func @data_movement(%x: tensor<2x3xf32>, %y: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x2xf32>) {
  %0 = ckopt.concat %x, %y {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x7xf32>
  %1 = ckopt.slice %0 {starts = array<i64: 0, 3>, sizes = array<i64: 2, 4>, steps = array<i64: 1, 1>} : (tensor<2x7xf32>) -> tensor<2x4xf32>
  %2 = ckopt.concat %x {axis = 0 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %3 = ckopt.pad %2 {low = array<i64: 0, 0>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = ckopt.expand %3 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // A slice across the seam needs both parts.
  // CHECK: %[[SEAM:.*]] = ckopt.slice %{{.*}} {{.*}} : (tensor<2x7xf32>) -> tensor<2x2xf32>
  %5 = ckopt.slice %0 {starts = array<i64: 0, 2>, sizes = array<i64: 2, 2>, steps = array<i64: 1, 1>} : (tensor<2x7xf32>) -> tensor<2x2xf32>
  // CHECK: return %[[Y]], %[[X]], %[[X]], %[[X]], %[[SEAM]]
  return %1, %2, %3, %4, %5 : tensor<2x4xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x2xf32>
}

// CHECK-LABEL: func @relayouts
// CHECK-SAME: %[[X:.*]]: tensor<2x3xf32>
func.func @relayouts(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = ckopt.relayout %x : (tensor<2x3xf32>) -> tensor<2x3xf32, #ckopt.layout<[1, 0]>>
  %1 = ckopt.relayout %0 : (tensor<2x3xf32, #ckopt.layout<[1, 0]>>) -> tensor<2x3xf32>
  // A barrier keeps a recomputed clone apart: nothing folds it.
  // CHECK: %[[CLONE:.*]] = ckopt.barrier %[[X]] {clone = 1 : i64}
  %2 = ckopt.barrier %x {clone = 1 : i64} : tensor<2x3xf32>
  // CHECK: return %[[X]], %[[CLONE]]
  return %1, %2 : tensor<2x3xf32>, tensor<2x3xf32>
}

// CHECK-LABEL: func @slices
// CHECK-SAME: %[[X:.*]]: tensor<10x8xf32>
func.func @slices(%x: tensor<10x8xf32>) -> tensor<2x1xf32> {
  // Rows 9, 6, 3, 0, of them the last and the one before; column 5.
  // CHECK-NEXT: %[[S:.*]] = ckopt.slice %[[X]] {sizes = array<i64: 2, 1>, starts = array<i64: 0, 5>, steps = array<i64: 3, 1>} : (tensor<10x8xf32>) -> tensor<2x1xf32>
  // CHECK-NEXT: return %[[S]]
  %0 = ckopt.slice %x {starts = array<i64: 9, 1>, sizes = array<i64: 4, 4>, steps = array<i64: -3, 2>} : (tensor<10x8xf32>) -> tensor<4x4xf32>
  %1 = ckopt.slice %0 {starts = array<i64: 3, 2>, sizes = array<i64: 2, 1>, steps = array<i64: -1, 7>} : (tensor<4x4xf32>) -> tensor<2x1xf32>
  return %1 : tensor<2x1xf32>
}
