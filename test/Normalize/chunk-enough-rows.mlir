// RUN: ckopt-opt %s --chunk-vocab="function=few most-bytes=134217728 least-rows=512 row-step=128 enough-rows=2048" --chunk-vocab="function=many most-bytes=134217728 least-rows=512 row-step=128 enough-rows=2048" | FileCheck %s

// Where libraries multiply, chunks have enough rows for them, but four chunks come first.
// CHECK-LABEL: func.func @few(
// CHECK:         ckopt.linear_cross_entropy {{.*}}rows = 512 : i64
func.func @few(%x: tensor<2048x8xf32>, %w: tensor<50264x8xf32>, %t: tensor<2048xi64>) -> tensor<2048xf32> {
  %l = ckopt.matmul %x, %w {transpose_rhs} : (tensor<2048x8xf32>, tensor<50264x8xf32>) -> tensor<2048x50264xf32>
  %loss, %lse, %lost = ckopt.cross_entropy %l, %t {axis = 1 : i64} : (tensor<2048x50264xf32>, tensor<2048xi64>) -> (tensor<2048xf32>, tensor<2048xf32>, tensor<2048xf32>)
  return %loss : tensor<2048xf32>
}

// CHECK-LABEL: func.func @many(
// CHECK:         ckopt.linear_cross_entropy {{.*}}rows = 2048 : i64
func.func @many(%x: tensor<8192x8xf32>, %w: tensor<50264x8xf32>, %t: tensor<8192xi64>) -> tensor<8192xf32> {
  %l = ckopt.matmul %x, %w {transpose_rhs} : (tensor<8192x8xf32>, tensor<50264x8xf32>) -> tensor<8192x50264xf32>
  %loss, %lse, %lost = ckopt.cross_entropy %l, %t {axis = 1 : i64} : (tensor<8192x50264xf32>, tensor<8192xi64>) -> (tensor<8192xf32>, tensor<8192xf32>, tensor<8192xf32>)
  return %loss : tensor<8192xf32>
}
