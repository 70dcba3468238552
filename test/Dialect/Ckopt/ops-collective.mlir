// Ops of several ranks survive printing, the generic form and bytecode.
// RUN: ckopt-opt %s | ckopt-opt | FileCheck %s
// RUN: ckopt-opt %s --mlir-print-op-generic | ckopt-opt | FileCheck %s
// RUN: ckopt-opt %s --emit-bytecode | ckopt-opt | FileCheck %s

// CHECK-LABEL: func @sums
func.func @sums(%a: tensor<2x3xf32>, %b: tensor<f32>, %c: tensor<2x3x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>) {
  // CHECK: %{{.*}}:2 = ckopt.all_reduce %{{.*}}, %{{.*}} {ranks = 2 : i64} : (tensor<2x3xf32>, tensor<f32>) -> (tensor<2x3xf32>, tensor<f32>)
  %0:2 = ckopt.all_reduce %a, %b {ranks = 2 : i64} : (tensor<2x3xf32>, tensor<f32>) -> (tensor<2x3xf32>, tensor<f32>)
  // CHECK: ckopt.all_reduce %{{.*}} {ranks = 1 : i64} : (tensor<2x3x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<2x3x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %1 = ckopt.all_reduce %c {ranks = 1 : i64} : (tensor<2x3x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<2x3x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>
  return
}
