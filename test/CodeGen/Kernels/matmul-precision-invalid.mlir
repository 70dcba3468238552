// The class of products is one that the target has.
// RUN: not ckopt-opt %s --annotate-kernels='target=cuda matmul-precision=f8' 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not ckopt-opt %s --annotate-kernels='matmul-precision=tf32' 2>&1 | FileCheck %s --check-prefix=CPU
// RUN: not ckopt-opt %s --lower-kernels='target=cpu matmul-precision=f16' 2>&1 | FileCheck %s --check-prefix=LOWER
// RUN: ckopt-opt %s --annotate-kernels='matmul-precision=f32' -o /dev/null

// NAME: error: no precision of products 'f8'; there are f32, tf32, bf16, f16, highest, high, medium
// CPU: error: products by tf32 are for target cuda alone
// LOWER: error: products by f16 are for target cuda alone
func.func private @k(%x: tensor<4x5xf32>, %y: tensor<5x4xf32>) -> tensor<4x4xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.matmul %x, %y : (tensor<4x5xf32>, tensor<5x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
