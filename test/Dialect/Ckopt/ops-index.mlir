// Ops that index survive printing, the generic form and bytecode.
// RUN: ckopt-opt %s | ckopt-opt | FileCheck %s
// RUN: ckopt-opt %s --mlir-print-op-generic | ckopt-opt | FileCheck %s
// RUN: ckopt-opt %s --emit-bytecode | ckopt-opt | FileCheck %s

// CHECK-LABEL: func @index
func.func @index(%x: tensor<3x4xf32>, %i: tensor<3x7xi64>, %u: tensor<3x7xf32>) {
  // CHECK: ckopt.gather_elements %{{.*}}, %{{.*}} {axis = 1 : i64} : (tensor<3x4xf32>, tensor<3x7xi64>) -> tensor<3x7xf32>
  %0 = ckopt.gather_elements %x, %i {axis = 1 : i64} : (tensor<3x4xf32>, tensor<3x7xi64>) -> tensor<3x7xf32>
  // CHECK: ckopt.scatter_elements max %{{.*}}, %{{.*}}, %{{.*}} {axis = 1 : i64} : (tensor<3x4xf32>, tensor<3x7xi64>, tensor<3x7xf32>) -> tensor<3x4xf32>
  %1 = ckopt.scatter_elements max %x, %i, %u {axis = 1 : i64} : (tensor<3x4xf32>, tensor<3x7xi64>, tensor<3x7xf32>) -> tensor<3x4xf32>
  // CHECK: ckopt.cumulative_sum %{{.*}} {axis = 0 : i64, exclusive, reverse} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %2 = ckopt.cumulative_sum %x {axis = 0 : i64, exclusive, reverse} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  // CHECK: ckopt.top_k %{{.*}} {axis = 1 : i64, k = 2 : i64, last, smallest} : (tensor<3x4xf32>) -> tensor<3x2xi64>
  %3 = ckopt.top_k %x {axis = 1 : i64, k = 2 : i64, smallest, last} : (tensor<3x4xf32>) -> tensor<3x2xi64>
  return
}
