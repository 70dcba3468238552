// Destination-passing style: a result takes the bytes of a destination that is not read again,
// tensor.empty costs nothing and stands before each op that writes to it, slices are views.
// RUN: ckopt-opt %s --remat --split-input-file | FileCheck %s
// RUN: ckopt-opt %s --remat=budget=min --split-input-file | FileCheck %s --check-prefix=MIN

// Arguments 2 x 16 KiB and one result in the bytes that fill wrote: 48 KiB.
// CHECK-LABEL: func.func @inplace
// CHECK-SAME: full_arena = 49152 : i64
func.func @inplace(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %z = linalg.fill ins(%c : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<64x64xf32>, tensor<64x64xf32>) outs(%z : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

// -----

// One zero for two products: under the least budget it is filled again rather than kept.
// CHECK-LABEL: func.func @shared
// MIN-LABEL: func.func @shared
// MIN: tensor.empty
// MIN-NEXT: linalg.fill
// MIN: linalg.matmul
// MIN: tensor.empty
// MIN: linalg.fill {ckopt.clone
// MIN: linalg.matmul
func.func @shared(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %z = linalg.fill ins(%c : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<64x64xf32>, tensor<64x64xf32>) outs(%z : tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = math.exp %0 : tensor<64x64xf32>
  %2 = math.exp %1 : tensor<64x64xf32>
  %3 = arith.mulf %2, %1 : tensor<64x64xf32>
  %4 = arith.mulf %3, %0 : tensor<64x64xf32>
  %5 = linalg.matmul ins(%4, %w : tensor<64x64xf32>, tensor<64x64xf32>) outs(%z : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %5 : tensor<64x64xf32>
}

// -----

// A slice at constant offsets and a reshape have no bytes of their own: argument, exp and result.
// CHECK-LABEL: func.func @views
// CHECK-SAME: full_arena = 8320 : i64
func.func @views(%x: tensor<1024xf32>) -> tensor<4x8xf32> {
  %0 = math.exp %x : tensor<1024xf32>
  %1 = tensor.extract_slice %0[32] [32] [1] : tensor<1024xf32> to tensor<32xf32>
  %2 = tensor.expand_shape %1 [[0, 1]] output_shape [4, 8] : tensor<32xf32> into tensor<4x8xf32>
  %3 = math.exp %2 : tensor<4x8xf32>
  return %3 : tensor<4x8xf32>
}
