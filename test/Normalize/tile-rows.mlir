// A region around a product that makes more columns than it takes is written for each
// block of rows; narrow values alone enter and leave.
// RUN: ckopt-opt %s --split-input-file --tile-rows=rows=4 --canonicalize --cse --verify-diagnostics | FileCheck %s
// RUN: ckopt-opt %s --split-input-file --tile-rows=rows=off | FileCheck %s --check-prefix=OFF
// RUN: ckopt-opt %s --split-input-file --tile-rows | FileCheck %s --check-prefix=OFF
// RUN: ckopt-opt %s --split-input-file --tile-rows='rows=4 draws=false' | FileCheck %s --check-prefix=RANKS
// RUN: not ckopt-opt %s --split-input-file --tile-rows=rows=0 2>&1 | FileCheck %s --check-prefix=BAD
// OFF-NOT: ckopt.concat
// BAD: tile-rows: '0' is not auto, off, or a positive number of rows

// The last block has the rest of the rows; a bias is read whole.
// CHECK-LABEL: func.func @mlp(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<10x2xf32>, %[[W1:[^:]*]]: tensor<2x8xf32>, %[[B:[^:]*]]: tensor<8xf32>, %[[W2:[^:]*]]: tensor<8x2xf32>
// CHECK:         %[[X0:.*]] = ckopt.slice %[[X]] {sizes = array<i64: 4, 2>, starts = array<i64: 0, 0>
// CHECK:         %[[H0:.*]] = ckopt.matmul %[[X0]], %[[W1]] : (tensor<4x2xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
// CHECK:         %[[S0:.*]] = ckopt.add %[[H0]], %[[B]]
// CHECK:         %[[A0:.*]] = ckopt.relu %[[S0]]
// CHECK:         %[[Y0:.*]] = ckopt.matmul %[[A0]], %[[W2]] : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
// CHECK:         ckopt.slice %[[X]] {sizes = array<i64: 4, 2>, starts = array<i64: 4, 0>
// CHECK:         %[[X2:.*]] = ckopt.slice %[[X]] {sizes = array<i64: 2, 2>, starts = array<i64: 8, 0>
// CHECK:         %[[Y2:.*]] = ckopt.matmul {{.*}} -> tensor<2x2xf32>
// CHECK:         %[[Y:.*]] = ckopt.concat %[[Y0]], %{{.*}}, %[[Y2]] {axis = 0 : i64}
// CHECK:         ckopt.add %[[X]], %[[Y]]
func.func @mlp(%x: tensor<10x2xf32>, %w1: tensor<2x8xf32>, %b: tensor<8xf32>, %w2: tensor<8x2xf32>) -> tensor<10x2xf32> {
  %0 = ckopt.matmul %x, %w1 : (tensor<10x2xf32>, tensor<2x8xf32>) -> tensor<10x8xf32>
  %1 = ckopt.add %0, %b : (tensor<10x8xf32>, tensor<8xf32>) -> tensor<10x8xf32>
  %2 = ckopt.relu %1 : (tensor<10x8xf32>) -> tensor<10x8xf32>
  // expected-remark @+1 {{rows in tiles: 4 ops of 10 rows in blocks of 4 rows: their largest value takes 128 B instead of 320 B (--tile-rows)}}
  %3 = ckopt.matmul %2, %w2 : (tensor<10x8xf32>, tensor<8x2xf32>) -> tensor<10x2xf32>
  %4 = ckopt.add %x, %3 : (tensor<10x2xf32>, tensor<10x2xf32>) -> tensor<10x2xf32>
  return %4 : tensor<10x2xf32>
}

// -----

// Gated, in one product whose columns are cut; samples and their tokens are rows; statistics of
// wide rows lie between; a low rank product reads what is wide, too, and is made whole.
// CHECK-LABEL: func.func @gated(
// CHECK-COUNT-2: ckopt.slice {{.*}} {sizes = array<i64: 1, 4, 6>, starts = array<i64: 0, 0, 6>
// CHECK-DAG:     %[[LOW:.*]] = ckopt.concat {{.*}} -> tensor<8x1xf32>
// CHECK-DAG:     %[[HIGH:.*]] = ckopt.concat {{.*}} -> tensor<8x2xf32>
// CHECK:         ckopt.matmul %[[LOW]]
func.func @gated(%x: tensor<2x4x2xf32>, %w1: tensor<2x12xf32>, %w2: tensor<6x2xf32>, %a: tensor<6x1xf32>, %b: tensor<1x2xf32>) -> tensor<8x2xf32> {
  %r = ckopt.reshape %x : (tensor<2x4x2xf32>) -> tensor<8x2xf32>
  %0 = ckopt.matmul %r, %w1 : (tensor<8x2xf32>, tensor<2x12xf32>) -> tensor<8x12xf32>
  %1 = ckopt.reshape %0 : (tensor<8x12xf32>) -> tensor<2x4x12xf32>
  %2 = ckopt.slice %1 {starts = array<i64: 0, 0, 0>, sizes = array<i64: 2, 4, 6>, steps = array<i64: 1, 1, 1>} : (tensor<2x4x12xf32>) -> tensor<2x4x6xf32>
  %3 = ckopt.slice %1 {starts = array<i64: 0, 0, 6>, sizes = array<i64: 2, 4, 6>, steps = array<i64: 1, 1, 1>} : (tensor<2x4x12xf32>) -> tensor<2x4x6xf32>
  %4 = ckopt.mul %2, %3 : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %5 = ckopt.reduce max %4 {axes = array<i64: 2>, keepdims = true} : (tensor<2x4x6xf32>) -> tensor<2x4x1xf32>
  %6 = ckopt.exp %5 : (tensor<2x4x1xf32>) -> tensor<2x4x1xf32>
  %7 = ckopt.div %4, %6 : (tensor<2x4x6xf32>, tensor<2x4x1xf32>) -> tensor<2x4x6xf32>
  %8 = ckopt.reshape %7 : (tensor<2x4x6xf32>) -> tensor<8x6xf32>
  %9 = ckopt.matmul %8, %w2 : (tensor<8x6xf32>, tensor<6x2xf32>) -> tensor<8x2xf32>
  // expected-remark @+1 {{rows in tiles: 11 ops of 8 rows in blocks of 4 rows}}
  %10 = ckopt.matmul %8, %a : (tensor<8x6xf32>, tensor<6x1xf32>) -> tensor<8x1xf32>
  %11 = ckopt.matmul %10, %b : (tensor<8x1xf32>, tensor<1x2xf32>) -> tensor<8x2xf32>
  %12 = ckopt.add %9, %11 : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  return %12 : tensor<8x2xf32>
}

// -----

// A dropout of a block draws the numbers that it draws in the whole; ranks need the step for
// theirs.
// CHECK-LABEL: func.func @dropout(
// CHECK-SAME:    %[[SEED:[^:]*]]: tensor<i64>, %[[STEP:[^:]*]]: tensor<i64>
// CHECK:         %[[NEXT:.*]] = ckopt.constant dense<4294967296> : tensor<i64>
// CHECK:         ckopt.dropout %{{.*}}, %[[SEED]], %[[STEP]] {
// CHECK:         %[[SUM:.*]] = ckopt.add %[[STEP]], %[[NEXT]]
// CHECK:         ckopt.dropout %{{.*}}, %[[SEED]], %[[SUM]] {ratio = 1.000000e-01 : f64, site = 3 : i64} : (tensor<4x8xf32>
// RANKS-LABEL: func.func @dropout(
// RANKS-NOT:   array<i64: 4, 0>
func.func @dropout(%x: tensor<8x2xf32>, %w1: tensor<2x8xf32>, %w2: tensor<8x2xf32>, %seed: tensor<i64>, %step: tensor<i64>) -> tensor<8x2xf32> {
  %0 = ckopt.matmul %x, %w1 : (tensor<8x2xf32>, tensor<2x8xf32>) -> tensor<8x8xf32>
  %1 = ckopt.dropout %0, %seed, %step {ratio = 1.000000e-01 : f64, site = 3 : i64} : (tensor<8x8xf32>, tensor<i64>, tensor<i64>) -> tensor<8x8xf32>
  // expected-remark @+1 {{rows in tiles: 3 ops of 8 rows in blocks of 4 rows}}
  %2 = ckopt.matmul %1, %w2 : (tensor<8x8xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  return %2 : tensor<8x2xf32>
}

// -----

// Rows mix between two wide values: the region stays whole.
// CHECK-LABEL: func.func @mixed(
// CHECK-NOT:     ckopt.slice
func.func @mixed(%x: tensor<8x2xf32>, %w1: tensor<2x8xf32>, %w2: tensor<8x2xf32>) -> tensor<8x2xf32> {
  %0 = ckopt.matmul %x, %w1 : (tensor<8x2xf32>, tensor<2x8xf32>) -> tensor<8x8xf32>
  %1 = ckopt.softmax %0 {axis = 0 : i64} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = ckopt.matmul %1, %w2 : (tensor<8x8xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  return %2 : tensor<8x2xf32>
}

// -----

// What leaves is as large as what lies inside: nothing would be gained.
// CHECK-LABEL: func.func @split(
// CHECK-NOT:     starts = array<i64: 4, 0>
func.func @split(%x: tensor<8x2xf32>, %w: tensor<2x6xf32>) -> (tensor<8x3xf32>, tensor<8x3xf32>) {
  %0 = ckopt.matmul %x, %w : (tensor<8x2xf32>, tensor<2x6xf32>) -> tensor<8x6xf32>
  %1 = ckopt.slice %0 {starts = array<i64: 0, 0>, sizes = array<i64: 8, 3>, steps = array<i64: 1, 1>} : (tensor<8x6xf32>) -> tensor<8x3xf32>
  %2 = ckopt.slice %0 {starts = array<i64: 0, 3>, sizes = array<i64: 8, 3>, steps = array<i64: 1, 1>} : (tensor<8x6xf32>) -> tensor<8x3xf32>
  return %1, %2 : tensor<8x3xf32>, tensor<8x3xf32>
}
