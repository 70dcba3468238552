// Constants, views and data movement survive printing, the generic form and
// bytecode.
// RUN: ckopt-opt %s | ckopt-opt | FileCheck %s
// RUN: ckopt-opt %s --mlir-print-op-generic | ckopt-opt | FileCheck %s
// RUN: ckopt-opt %s --emit-bytecode | ckopt-opt | FileCheck %s

// CHECK-LABEL: func @constants
func.func @constants() -> tensor<2xf32> {
  // CHECK: ckopt.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
  %0 = ckopt.constant dense<[1.0, 2.0]> : tensor<2xf32>
  // CHECK: ckopt.constant dense<true> : tensor<1000x1000xi1>
  %1 = ckopt.constant dense<true> : tensor<1000x1000xi1>
  // CHECK: ckopt.iota {axis = 1 : i64, delta = 2.000000e+00 : f64, start = 5.000000e+00 : f64} : tensor<2x3xi64>
  %2 = ckopt.iota {axis = 1 : i64, start = 5.0 : f64, delta = 2.0 : f64} : tensor<2x3xi64>
  // CHECK: ckopt.iota {axis = 0 : i64} : tensor<7xf32>
  %3 = ckopt.iota {axis = 0 : i64} : tensor<7xf32>
  return %0 : tensor<2xf32>
}

// CHECK-LABEL: func @movement
func.func @movement(%x: tensor<2x3x4xf32>, %i: tensor<5x1xi64>) {
  // CHECK: ckopt.reshape %{{.*}} : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %0 = ckopt.reshape %x : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  // CHECK: ckopt.transpose %{{.*}} {permutation = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %1 = ckopt.transpose %x {permutation = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  // CHECK: ckopt.slice %{{.*}} {sizes = array<i64: 1, 2, 4>, starts = array<i64: 1, 0, 3>, steps = array<i64: 1, 2, -1>} : (tensor<2x3x4xf32>) -> tensor<1x2x4xf32>
  %2 = ckopt.slice %x {starts = array<i64: 1, 0, 3>, sizes = array<i64: 1, 2, 4>, steps = array<i64: 1, 2, -1>} : (tensor<2x3x4xf32>) -> tensor<1x2x4xf32>
  // CHECK: ckopt.concat %{{.*}}, %{{.*}} {axis = 0 : i64} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<4x3x4xf32>
  %3 = ckopt.concat %x, %x {axis = 0 : i64} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<4x3x4xf32>
  // CHECK: ckopt.pad %{{.*}} {high = array<i64: 0, 1, 0>, interior = array<i64: 0, 0, 1>, low = array<i64: 1, 0, 0>, value = 5.000000e-01 : f64} : (tensor<2x3x4xf32>) -> tensor<3x4x7xf32>
  %4 = ckopt.pad %x {low = array<i64: 1, 0, 0>, high = array<i64: 0, 1, 0>, interior = array<i64: 0, 0, 1>, value = 0.5 : f64} : (tensor<2x3x4xf32>) -> tensor<3x4x7xf32>
  // CHECK: ckopt.expand %{{.*}} : (tensor<2x3x4xf32>) -> tensor<5x2x3x4xf32>
  %5 = ckopt.expand %x : (tensor<2x3x4xf32>) -> tensor<5x2x3x4xf32>
  // CHECK: ckopt.trilu %{{.*}} {k = 1 : i64, upper = true} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %6 = ckopt.trilu %x {upper = true, k = 1 : i64} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  // CHECK: ckopt.gather %{{.*}}, %{{.*}} {axis = 1 : i64} : (tensor<2x3x4xf32>, tensor<5x1xi64>) -> tensor<2x5x1x4xf32>
  %7 = ckopt.gather %x, %i {axis = 1 : i64} : (tensor<2x3x4xf32>, tensor<5x1xi64>) -> tensor<2x5x1x4xf32>
  // CHECK: ckopt.scatter_add %{{.*}}, %{{.*}}, %{{.*}} {axis = 1 : i64} : (tensor<2x3x4xf32>, tensor<5x1xi64>, tensor<2x5x1x4xf32>) -> tensor<2x3x4xf32>
  %8 = ckopt.scatter_add %x, %i, %7 {axis = 1 : i64} : (tensor<2x3x4xf32>, tensor<5x1xi64>, tensor<2x5x1x4xf32>) -> tensor<2x3x4xf32>
  // CHECK: ckopt.relayout %{{.*}} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32, #ckopt.layout<[0, 2, 1]>>
  %9 = ckopt.relayout %x : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32, #ckopt.layout<[0, 2, 1]>>
  return
}
