// 2^26 pairs are read some rows at a time.
// RUN: ckopt-opt %s --fuse-attention --canonicalize | FileCheck %s
// CHECK-LABEL: func.func @long(
// CHECK-NOT:     tensor<8192x8192x
// CHECK:         ckopt.attention %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} {causal = 0 : i64, scale = 1.000000e+00 : f64}
func.func @long(%q: tensor<3x8192x4xf32>, %k: tensor<3x8192x4xf32>, %v: tensor<3x8192x4xf32>) -> tensor<3x8192x4xf32> {
  %row = ckopt.iota {axis = 0 : i64} : tensor<8192x1xi64>
  %column = ckopt.iota {axis = 1 : i64} : tensor<1x8192xi64>
  %yes = ckopt.constant dense<true> : tensor<1x1xi1>
  %zero = ckopt.constant dense<0.0> : tensor<f32>
  %low = ckopt.constant dense<-3.40282347E+38> : tensor<f32>
  %le = ckopt.compare le %column, %row : (tensor<1x8192xi64>, tensor<8192x1xi64>) -> tensor<8192x8192xi1>
  %open = ckopt.and %yes, %le : (tensor<1x1xi1>, tensor<8192x8192xi1>) -> tensor<8192x8192xi1>
  %bias = ckopt.select %open, %zero, %low : (tensor<8192x8192xi1>, tensor<f32>, tensor<f32>) -> tensor<8192x8192xf32>
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<3x8192x4xf32>, tensor<3x8192x4xf32>) -> tensor<3x8192x8192xf32>
  %m = ckopt.add %s, %bias : (tensor<3x8192x8192xf32>, tensor<8192x8192xf32>) -> tensor<3x8192x8192xf32>
  %p = ckopt.softmax %m {axis = 2 : i64} : (tensor<3x8192x8192xf32>) -> tensor<3x8192x8192xf32>
  %o = ckopt.matmul %p, %v : (tensor<3x8192x8192xf32>, tensor<3x8192x4xf32>) -> tensor<3x8192x4xf32>
  return %o : tensor<3x8192x4xf32>
}
