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

// Groups are printed where there are several.
// CHECK-LABEL: func @rows
func.func @rows(%a: tensor<3x4xf32>, %b: tensor<2xf32>, %c: tensor<5x4xf32>) {
  // CHECK: ckopt.all_gather %{{.*}}, %{{.*}} {ranks = 2 : i64, rows = array<i64: 5, 4>} : (tensor<3x4xf32>, tensor<2xf32>) -> (tensor<5x4xf32>, tensor<4xf32>)
  %0:2 = ckopt.all_gather %a, %b {rows = array<i64: 5, 4>, ranks = 2 : i64} : (tensor<3x4xf32>, tensor<2xf32>) -> (tensor<5x4xf32>, tensor<4xf32>)
  // CHECK: ckopt.reduce_scatter %{{.*}} {groups = 4 : i64, ranks = 3 : i64, stride = 2 : i64} : (tensor<5x4xf32>) -> tensor<2x4xf32>
  %1 = ckopt.reduce_scatter %c {ranks = 3 : i64, groups = 4 : i64, stride = 2 : i64} : (tensor<5x4xf32>) -> tensor<2x4xf32>
  // CHECK: ckopt.own_rows %{{.*}} {ranks = 2 : i64} : (tensor<5x4xf32>) -> tensor<3x4xf32>
  %2 = ckopt.own_rows %c {ranks = 2 : i64} : (tensor<5x4xf32>) -> tensor<3x4xf32>
  // CHECK: ckopt.broadcast %{{.*}} {ranks = 2 : i64, root = 1 : i64} : (tensor<5x4xf32>) -> tensor<5x4xf32>
  %3 = ckopt.broadcast %c {ranks = 2 : i64, root = 1 : i64} : (tensor<5x4xf32>) -> tensor<5x4xf32>
  return
}
