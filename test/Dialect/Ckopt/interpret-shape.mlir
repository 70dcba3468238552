// What the data movement ops mean, on numbers that say where they come from.
// RUN: ckopt-opt %s --split-input-file --test-reference -o /dev/null | FileCheck %s

func.func @main() -> (tensor<3x2xi64>, tensor<2x2xi64>, tensor<3x3xi64>, tensor<2x7xi64>, tensor<2x2x3xi64>, tensor<2x3xi64>, tensor<2x3xi64>) {
  %x = ckopt.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi64>
  %transpose = ckopt.transpose %x {permutation = array<i64: 1, 0>} : (tensor<2x3xi64>) -> tensor<3x2xi64>
  %slice = ckopt.slice %x {starts = array<i64: 1, 2>, sizes = array<i64: 2, 2>, steps = array<i64: -1, -2>} : (tensor<2x3xi64>) -> tensor<2x2xi64>
  %row = ckopt.constant dense<7> : tensor<1x3xi64>
  %concat = ckopt.concat %row, %x {axis = 0 : i64} : (tensor<1x3xi64>, tensor<2x3xi64>) -> tensor<3x3xi64>
  %pad = ckopt.pad %x {low = array<i64: 0, 0>, high = array<i64: 0, 2>, interior = array<i64: 0, 1>, value = 9.0 : f64} : (tensor<2x3xi64>) -> tensor<2x7xi64>
  %expand = ckopt.expand %x : (tensor<2x3xi64>) -> tensor<2x2x3xi64>
  %upper = ckopt.trilu %x {upper = true, k = 1 : i64} : (tensor<2x3xi64>) -> tensor<2x3xi64>
  %lower = ckopt.trilu %x {upper = false} : (tensor<2x3xi64>) -> tensor<2x3xi64>
  return %transpose, %slice, %concat, %pad, %expand, %upper, %lower : tensor<3x2xi64>, tensor<2x2xi64>, tensor<3x3xi64>, tensor<2x7xi64>, tensor<2x2x3xi64>, tensor<2x3xi64>, tensor<2x3xi64>
}
// CHECK:      result 0: tensor<3x2xi64> [1, 4, 2, 5, 3, 6]
// CHECK-NEXT: result 1: tensor<2x2xi64> [6, 4, 3, 1]
// CHECK-NEXT: result 2: tensor<3x3xi64> [7, 7, 7, 1, 2, 3, 4, 5, 6]
// CHECK-NEXT: result 3: tensor<2x7xi64> [1, 9, 2, 9, 3, 9, 9, 4, 9, 5, 9, 6, 9, 9]
// CHECK-NEXT: result 4: tensor<2x2x3xi64> [1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6]
// CHECK-NEXT: result 5: tensor<2x3xi64> [0, 2, 3, 0, 0, 6]
// CHECK-NEXT: result 6: tensor<2x3xi64> [1, 0, 0, 4, 5, 0]

// -----

// Gather along a middle axis with a negative index; scatter_add sums what
// meets at one index.
func.func @main() -> (tensor<2x3x1xi64>, tensor<2x2x1xi64>, tensor<2x3xf32>) {
  %data = ckopt.constant dense<[[[1], [2]], [[3], [4]]]> : tensor<2x2x1xi64>
  %indices = ckopt.constant dense<[-1, 0, -1]> : tensor<3xi32>
  %0 = ckopt.gather %data, %indices {axis = 1 : i64} : (tensor<2x2x1xi64>, tensor<3xi32>) -> tensor<2x3x1xi64>
  %1 = ckopt.scatter_add %data, %indices, %0 {axis = 1 : i64} : (tensor<2x2x1xi64>, tensor<3xi32>, tensor<2x3x1xi64>) -> tensor<2x2x1xi64>
  %2 = ckopt.iota {axis = 1 : i64, start = 0.5 : f64, delta = -1.0 : f64} : tensor<2x3xf32>
  return %0, %1, %2 : tensor<2x3x1xi64>, tensor<2x2x1xi64>, tensor<2x3xf32>
}
// CHECK:      result 0: tensor<2x3x1xi64> [2, 1, 2, 4, 3, 4]
// CHECK-NEXT: result 1: tensor<2x2x1xi64> [2, 6, 6, 12]
// CHECK-NEXT: result 2: tensor<2x3xf32> [0.5, -0.5, -1.5, 0.5, -0.5, -1.5]

// -----

// A layout changes no value: the interpreter works on logical indices.
func.func @main() -> (tensor<2x2xi64>, tensor<4xi64>) {
  %x = ckopt.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi64>
  %0 = ckopt.relayout %x : (tensor<2x2xi64>) -> tensor<2x2xi64, #ckopt.layout<[1, 0]>>
  %1 = ckopt.relayout %0 : (tensor<2x2xi64, #ckopt.layout<[1, 0]>>) -> tensor<2x2xi64>
  %2 = ckopt.barrier %1 : tensor<2x2xi64>
  %3 = ckopt.reshape %2 : (tensor<2x2xi64>) -> tensor<4xi64>
  return %1, %3 : tensor<2x2xi64>, tensor<4xi64>
}
// CHECK:      result 0: tensor<2x2xi64> [1, 2, 3, 4]
// CHECK-NEXT: result 1: tensor<4xi64> [1, 2, 3, 4]
