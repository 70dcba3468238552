// Attention between transposes to [tokens, samples, columns] and back takes samples as they
// lie: the transposes go, and products have their rows in the order of samples.
// RUN: ckopt-opt %s --split-input-file --sample-order --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @exported(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<2x5x8xf32>
// CHECK-NOT:     permutation = array<i64: 1, 0, 2>
// CHECK:         %[[ROWS:.*]] = ckopt.reshape %[[X]] : (tensor<2x5x8xf32>) -> tensor<10x8xf32>
// CHECK:         ckopt.matmul %[[ROWS]], %{{.*}} {transpose_rhs}
// CHECK:         ckopt.attention {{.*}}(tensor<2x4x5x2xf32>, tensor<2x4x5x2xf32>, tensor<2x4x5x2xf32>)
// CHECK-NOT:     permutation = array<i64: 1, 0, 2>
// CHECK:         return %{{.*}} : tensor<2x5x8xf32>
func.func @exported(%x: tensor<2x5x8xf32>, %w: tensor<24x8xf32>, %b: tensor<24xf32>, %u: tensor<8x8xf32>, %c: tensor<8xf32>) -> tensor<2x5x8xf32> {
  %0 = ckopt.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<2x5x8xf32>) -> tensor<5x2x8xf32>
  %1 = ckopt.reshape %0 : (tensor<5x2x8xf32>) -> tensor<10x8xf32>
  %2 = ckopt.matmul %1, %w {transpose_rhs} : (tensor<10x8xf32>, tensor<24x8xf32>) -> tensor<10x24xf32>
  %3 = ckopt.reshape %2 : (tensor<10x24xf32>) -> tensor<5x2x24xf32>
  %4 = ckopt.add %b, %3 : (tensor<24xf32>, tensor<5x2x24xf32>) -> tensor<5x2x24xf32>
  %q0 = ckopt.slice %4 {sizes = array<i64: 5, 2, 8>, starts = array<i64: 0, 0, 0>, steps = array<i64: 1, 1, 1>} : (tensor<5x2x24xf32>) -> tensor<5x2x8xf32>
  %k0 = ckopt.slice %4 {sizes = array<i64: 5, 2, 8>, starts = array<i64: 0, 0, 8>, steps = array<i64: 1, 1, 1>} : (tensor<5x2x24xf32>) -> tensor<5x2x8xf32>
  %v0 = ckopt.slice %4 {sizes = array<i64: 5, 2, 8>, starts = array<i64: 0, 0, 16>, steps = array<i64: 1, 1, 1>} : (tensor<5x2x24xf32>) -> tensor<5x2x8xf32>
  %q1 = ckopt.reshape %q0 : (tensor<5x2x8xf32>) -> tensor<5x8x2xf32>
  %k1 = ckopt.reshape %k0 : (tensor<5x2x8xf32>) -> tensor<5x8x2xf32>
  %v1 = ckopt.reshape %v0 : (tensor<5x2x8xf32>) -> tensor<5x8x2xf32>
  %q = ckopt.transpose %q1 {permutation = array<i64: 1, 0, 2>} : (tensor<5x8x2xf32>) -> tensor<8x5x2xf32>
  %k = ckopt.transpose %k1 {permutation = array<i64: 1, 0, 2>} : (tensor<5x8x2xf32>) -> tensor<8x5x2xf32>
  %v = ckopt.transpose %v1 {permutation = array<i64: 1, 0, 2>} : (tensor<5x8x2xf32>) -> tensor<8x5x2xf32>
  %o, %lse = ckopt.attention %q, %k, %v {scale = 0.5 : f64} : (tensor<8x5x2xf32>, tensor<8x5x2xf32>, tensor<8x5x2xf32>) -> (tensor<8x5x2xf32>, tensor<8x5x2xf32>)
  %5 = ckopt.transpose %o {permutation = array<i64: 1, 0, 2>} : (tensor<8x5x2xf32>) -> tensor<5x8x2xf32>
  %6 = ckopt.reshape %5 : (tensor<5x8x2xf32>) -> tensor<10x8xf32>
  %7 = ckopt.matmul %6, %u {transpose_rhs} : (tensor<10x8xf32>, tensor<8x8xf32>) -> tensor<10x8xf32>
  %8 = ckopt.add %7, %c : (tensor<10x8xf32>, tensor<8xf32>) -> tensor<10x8xf32>
  %9 = ckopt.reshape %8 : (tensor<10x8xf32>) -> tensor<5x2x8xf32>
  %10 = ckopt.transpose %9 {permutation = array<i64: 1, 0, 2>} : (tensor<5x2x8xf32>) -> tensor<2x5x8xf32>
  return %10 : tensor<2x5x8xf32>
}

// -----

// A model that has tokens first everywhere stays as it is.
// CHECK-LABEL: func.func @tokens_first(
// CHECK:         ckopt.attention {{.*}}(tensor<8x5x2xf32>, tensor<8x5x2xf32>, tensor<8x5x2xf32>)
func.func @tokens_first(%x: tensor<5x2x8xf32>) -> tensor<5x2x8xf32> {
  %0 = ckopt.reshape %x : (tensor<5x2x8xf32>) -> tensor<5x8x2xf32>
  %1 = ckopt.transpose %0 {permutation = array<i64: 1, 0, 2>} : (tensor<5x8x2xf32>) -> tensor<8x5x2xf32>
  %o, %lse = ckopt.attention %1, %1, %1 {scale = 0.5 : f64} : (tensor<8x5x2xf32>, tensor<8x5x2xf32>, tensor<8x5x2xf32>) -> (tensor<8x5x2xf32>, tensor<8x5x2xf32>)
  %2 = ckopt.transpose %o {permutation = array<i64: 1, 0, 2>} : (tensor<8x5x2xf32>) -> tensor<5x8x2xf32>
  %3 = ckopt.reshape %2 : (tensor<5x8x2xf32>) -> tensor<5x2x8xf32>
  return %3 : tensor<5x2x8xf32>
}
