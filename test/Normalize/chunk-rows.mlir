// The rows of a chunk follow from the sizes of logits and the rule of a target: as many as
// take a number of bytes, but not fewer than are worth a pass over the gradient of the
// weight, in chunks of equal size but the last. Logits that are one chunk stay whole.
// RUN: ckopt-opt %s --split-input-file --chunk-vocab | FileCheck %s --check-prefixes=CHECK,CPU
// RUN: ckopt-opt %s --split-input-file --chunk-vocab="most-bytes=134217728 least-rows=512 row-step=128" | FileCheck %s --check-prefixes=CHECK,CUDA
// RUN: not ckopt-opt %s --split-input-file --chunk-vocab=row-step=0 2>&1 | FileCheck %s --check-prefix=BAD
// BAD: chunk-vocab: most-bytes, least-rows and row-step are positive

// CHECK-LABEL: func.func @forward(
// CPU: rows = 256
// CUDA: rows = 512
func.func @forward(%x: tensor<2048x8xf32>, %w: tensor<50257x8xf32>, %t: tensor<2048xi64>) -> tensor<2048xf32> {
  %0 = ckopt.matmul %x, %w {transpose_rhs} : (tensor<2048x8xf32>, tensor<50257x8xf32>) -> tensor<2048x50257xf32>
  %loss, %lse, %lost = ckopt.cross_entropy %0, %t {axis = 1 : i64} : (tensor<2048x50257xf32>, tensor<2048xi64>) -> (tensor<2048xf32>, tensor<2048xf32>, tensor<2048xf32>)
  return %loss : tensor<2048xf32>
}

// -----

// 98.2 MiB are more than one chunk of a CPU.
// CHECK-LABEL: func.func @forward(
// CPU: rows = 256
// CUDA: ckopt.cross_entropy
func.func @forward(%x: tensor<512x8xf32>, %w: tensor<50257x8xf32>, %t: tensor<512xi64>) -> tensor<512xf32> {
  %0 = ckopt.matmul %x, %w {transpose_rhs} : (tensor<512x8xf32>, tensor<50257x8xf32>) -> tensor<512x50257xf32>
  %loss, %lse, %lost = ckopt.cross_entropy %0, %t {axis = 1 : i64} : (tensor<512x50257xf32>, tensor<512xi64>) -> (tensor<512xf32>, tensor<512xf32>, tensor<512xf32>)
  return %loss : tensor<512xf32>
}

// -----

// Rows of a megabyte: the fewest that a chunk may have.
// CHECK-LABEL: func.func @forward(
// CPU: rows = 128
// CUDA: rows = 512
func.func @forward(%x: tensor<1000x8xf32>, %w: tensor<262144x8xf32>, %t: tensor<1000xi64>) -> tensor<1000xf32> {
  %0 = ckopt.matmul %x, %w {transpose_rhs} : (tensor<1000x8xf32>, tensor<262144x8xf32>) -> tensor<1000x262144xf32>
  %loss, %lse, %lost = ckopt.cross_entropy %0, %t {axis = 1 : i64} : (tensor<1000x262144xf32>, tensor<1000xi64>) -> (tensor<1000xf32>, tensor<1000xf32>, tensor<1000xf32>)
  return %loss : tensor<1000xf32>
}

// -----

// Of 667 rows that would fit, a multiple of the step: ten chunks, not nine.
// CHECK-LABEL: func.func @forward(
// CPU: rows = 256
// CUDA: rows = 640
func.func @forward(%x: tensor<6000x8xf32>, %w: tensor<50257x8xf32>, %t: tensor<6000xi64>) -> tensor<6000xf32> {
  %0 = ckopt.matmul %x, %w {transpose_rhs} : (tensor<6000x8xf32>, tensor<50257x8xf32>) -> tensor<6000x50257xf32>
  %loss, %lse, %lost = ckopt.cross_entropy %0, %t {axis = 1 : i64} : (tensor<6000x50257xf32>, tensor<6000xi64>) -> (tensor<6000xf32>, tensor<6000xf32>, tensor<6000xf32>)
  return %loss : tensor<6000xf32>
}
