// A linear layer on [B, T, K] is one 2-D product; a true batch of products and
// one with a transposed left side stay; rows are moved as wholes.
// RUN: ckopt-opt %s --normalize | FileCheck %s

// CHECK-LABEL: func.func @linear(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<2x3x4xf32>, %[[W:[^:]*]]: tensor<5x4xf32>
// CHECK:         %[[FLAT:.*]] = ckopt.reshape %[[X]] : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
// CHECK:         %[[P:.*]] = ckopt.matmul %[[FLAT]], %[[W]] {transpose_rhs} : (tensor<6x4xf32>, tensor<5x4xf32>) -> tensor<6x5xf32>
// CHECK:         ckopt.reshape %[[P]] : (tensor<6x5xf32>) -> tensor<2x3x5xf32>
func.func @linear(%x: tensor<2x3x4xf32>, %w: tensor<5x4xf32>) -> tensor<2x3x5xf32> {
  %y = ckopt.matmul %x, %w {transpose_rhs} : (tensor<2x3x4xf32>, tensor<5x4xf32>) -> tensor<2x3x5xf32>
  return %y : tensor<2x3x5xf32>
}

// CHECK-LABEL: func.func @batch(
// CHECK-NEXT:    ckopt.matmul
// CHECK-NEXT:    return
func.func @batch(%x: tensor<2x3x4xf32>, %y: tensor<2x4x5xf32>) -> tensor<2x3x5xf32> {
  %z = ckopt.matmul %x, %y : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  return %z : tensor<2x3x5xf32>
}

// CHECK-LABEL: func.func @left_transposed(
// CHECK-NEXT:    ckopt.matmul
// CHECK-NEXT:    return
func.func @left_transposed(%x: tensor<2x4x3xf32>, %y: tensor<4x5xf32>) -> tensor<2x3x5xf32> {
  %z = ckopt.matmul %x, %y {transpose_lhs} : (tensor<2x4x3xf32>, tensor<4x5xf32>) -> tensor<2x3x5xf32>
  return %z : tensor<2x3x5xf32>
}

// Keys of attention: the transpose keeps the innermost dimension, the product
// reads it transposed.
// CHECK-LABEL: func.func @keys(
// CHECK:         %[[K:.*]] = ckopt.transpose %{{.*}} {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x8x3x4xf32>) -> tensor<2x3x8x4xf32>
// CHECK:         ckopt.matmul %{{.*}}, %[[K]] {transpose_rhs} : (tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x8xf32>
func.func @keys(%q: tensor<2x3x8x4xf32>, %k: tensor<2x8x3x4xf32>) -> tensor<2x3x8x8xf32> {
  %t = ckopt.transpose %k {permutation = array<i64: 0, 2, 3, 1>} : (tensor<2x8x3x4xf32>) -> tensor<2x3x4x8xf32>
  %s = ckopt.matmul %q, %t : (tensor<2x3x8x4xf32>, tensor<2x3x4x8xf32>) -> tensor<2x3x8x8xf32>
  return %s : tensor<2x3x8x8xf32>
}

// A bias that is added to all rows at once (Gemm) is added behind the split
// into samples, as that of other layers, so that it joins its readers' kernel.
// CHECK-LABEL: func.func @gemm(
// CHECK-SAME:    %{{[^:]*}}: tensor<6x4xf32>, %{{[^:]*}}: tensor<5x4xf32>, %[[BIAS:[^:]*]]: tensor<5xf32>, %[[X:[^:]*]]:
// CHECK:         %[[P:.*]] = ckopt.matmul
// CHECK:         %[[ROWS:.*]] = ckopt.reshape %[[P]] : (tensor<6x5xf32>) -> tensor<2x3x5xf32>
// CHECK:         %[[SUM:.*]] = ckopt.add %[[ROWS]], %[[BIAS]] : (tensor<2x3x5xf32>, tensor<5xf32>) -> tensor<2x3x5xf32>
// CHECK:         ckopt.add %[[SUM]], %[[X]]
func.func @gemm(%a: tensor<6x4xf32>, %w: tensor<5x4xf32>, %bias: tensor<5xf32>, %x: tensor<2x3x5xf32>) -> tensor<2x3x5xf32> {
  %p = ckopt.matmul %a, %w {transpose_rhs} : (tensor<6x4xf32>, tensor<5x4xf32>) -> tensor<6x5xf32>
  %s = ckopt.add %p, %bias : (tensor<6x5xf32>, tensor<5xf32>) -> tensor<6x5xf32>
  %r = ckopt.reshape %s : (tensor<6x5xf32>) -> tensor<2x3x5xf32>
  %y = ckopt.add %r, %x : (tensor<2x3x5xf32>, tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  return %y : tensor<2x3x5xf32>
}

// Not so where the reshape splits columns, the vector is no bias, or the sum or
// the product has other readers.
// CHECK-LABEL: func.func @not_rows(
// CHECK-NEXT:    ckopt.matmul
// CHECK-NEXT:    ckopt.add
// CHECK-NEXT:    ckopt.reshape
// CHECK-NEXT:    return
func.func @not_rows(%a: tensor<6x4xf32>, %w: tensor<4x8xf32>, %bias: tensor<8xf32>) -> tensor<6x2x4xf32> {
  %p = ckopt.matmul %a, %w : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %s = ckopt.add %bias, %p : (tensor<8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  %r = ckopt.reshape %s : (tensor<6x8xf32>) -> tensor<6x2x4xf32>
  return %r : tensor<6x2x4xf32>
}
// CHECK-LABEL: func.func @of_rows(
// CHECK-NEXT:    ckopt.matmul
// CHECK-NEXT:    ckopt.add
// CHECK-NEXT:    ckopt.reshape
func.func @of_rows(%a: tensor<6x4xf32>, %w: tensor<4x5xf32>, %column: tensor<6x1xf32>) -> tensor<2x3x5xf32> {
  %p = ckopt.matmul %a, %w : (tensor<6x4xf32>, tensor<4x5xf32>) -> tensor<6x5xf32>
  %s = ckopt.add %p, %column : (tensor<6x5xf32>, tensor<6x1xf32>) -> tensor<6x5xf32>
  %r = ckopt.reshape %s : (tensor<6x5xf32>) -> tensor<2x3x5xf32>
  return %r : tensor<2x3x5xf32>
}
// CHECK-LABEL: func.func @read_twice(
// CHECK-NEXT:    ckopt.matmul
// CHECK-NEXT:    ckopt.add
// CHECK-NEXT:    ckopt.reshape
func.func @read_twice(%a: tensor<6x4xf32>, %w: tensor<4x5xf32>, %bias: tensor<5xf32>) -> (tensor<2x3x5xf32>, tensor<6x5xf32>) {
  %p = ckopt.matmul %a, %w : (tensor<6x4xf32>, tensor<4x5xf32>) -> tensor<6x5xf32>
  %s = ckopt.add %p, %bias : (tensor<6x5xf32>, tensor<5xf32>) -> tensor<6x5xf32>
  %r = ckopt.reshape %s : (tensor<6x5xf32>) -> tensor<2x3x5xf32>
  return %r, %s : tensor<2x3x5xf32>, tensor<6x5xf32>
}
