// What gathers, scatters, running sums and selections mean, on numbers that say where they
// come from. The canonicalizer finds the same.
// RUN: ckopt-opt %s --split-input-file --test-reference -o /dev/null | FileCheck %s
// RUN: ckopt-opt %s --split-input-file --canonicalize --test-reference -o /dev/null | FileCheck %s

// Each element has an index of its own; negative ones count from the end.
func.func @main() -> (tensor<3x2xi64>, tensor<2x4xf32>) {
  %x = ckopt.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi64>
  %i = ckopt.constant dense<[[0, 1], [-1, -2], [1, 1]]> : tensor<3x2xi32>
  %0 = ckopt.gather_elements %x, %i {axis = 0 : i64} : (tensor<2x2xi64>, tensor<3x2xi32>) -> tensor<3x2xi64>
  %y = ckopt.constant dense<[[1.5, 2.5], [3.5, 4.5], [5.5, 6.5]]> : tensor<3x2xf32>
  %j = ckopt.constant dense<[[0, 1, 1, -2], [1, -1, 0, 0]]> : tensor<2x4xi64>
  %1 = ckopt.gather_elements %y, %j {axis = 1 : i64} : (tensor<3x2xf32>, tensor<2x4xi64>) -> tensor<2x4xf32>
  return %0, %1 : tensor<3x2xi64>, tensor<2x4xf32>
}
// CHECK:      result 0: tensor<3x2xi64> [1, 4, 3, 2, 3, 4]
// CHECK-NEXT: result 1: tensor<2x4xf32> [1.5, 2.5, 2.5, 1.5, 4.5, 4.5, 3.5, 3.5]

// -----

// Three updates meet at element 0, the last one stays where they are set; element 2 has none.
func.func @main() -> (tensor<3xi64>, tensor<3xi64>, tensor<3xi64>, tensor<3xi64>, tensor<3xi64>) {
  %x = ckopt.constant dense<[2, 3, 4]> : tensor<3xi64>
  %i = ckopt.constant dense<[0, 1, -3, 0]> : tensor<4xi64>
  %u = ckopt.constant dense<[5, -6, 7, 1]> : tensor<4xi64>
  %0 = ckopt.scatter_elements set %x, %i, %u {axis = 0 : i64} : (tensor<3xi64>, tensor<4xi64>, tensor<4xi64>) -> tensor<3xi64>
  %1 = ckopt.scatter_elements add %x, %i, %u {axis = 0 : i64} : (tensor<3xi64>, tensor<4xi64>, tensor<4xi64>) -> tensor<3xi64>
  %2 = ckopt.scatter_elements mul %x, %i, %u {axis = 0 : i64} : (tensor<3xi64>, tensor<4xi64>, tensor<4xi64>) -> tensor<3xi64>
  %3 = ckopt.scatter_elements max %x, %i, %u {axis = 0 : i64} : (tensor<3xi64>, tensor<4xi64>, tensor<4xi64>) -> tensor<3xi64>
  %4 = ckopt.scatter_elements min %x, %i, %u {axis = 0 : i64} : (tensor<3xi64>, tensor<4xi64>, tensor<4xi64>) -> tensor<3xi64>
  return %0, %1, %2, %3, %4 : tensor<3xi64>, tensor<3xi64>, tensor<3xi64>, tensor<3xi64>, tensor<3xi64>
}
// CHECK:      result 0: tensor<3xi64> [1, -6, 4]
// CHECK-NEXT: result 1: tensor<3xi64> [15, -3, 4]
// CHECK-NEXT: result 2: tensor<3xi64> [70, -18, 4]
// CHECK-NEXT: result 3: tensor<3xi64> [7, 3, 4]
// CHECK-NEXT: result 4: tensor<3xi64> [1, -6, 4]

// -----

// max and min keep NaN; fewer indices than elements leave the rest as it is; truth values are set.
func.func @main() -> (tensor<2xf32>, tensor<2xf32>, tensor<2x3xf32>, tensor<3xi1>) {
  %x = ckopt.constant dense<[1.0, 0x7FC00000]> : tensor<2xf32>
  %i = ckopt.constant dense<[0, 1, 0]> : tensor<3xi64>
  %u = ckopt.constant dense<[0x7FC00000, 2.0, 3.0]> : tensor<3xf32>
  %0 = ckopt.scatter_elements max %x, %i, %u {axis = 0 : i64} : (tensor<2xf32>, tensor<3xi64>, tensor<3xf32>) -> tensor<2xf32>
  %1 = ckopt.scatter_elements min %x, %i, %u {axis = 0 : i64} : (tensor<2xf32>, tensor<3xi64>, tensor<3xf32>) -> tensor<2xf32>
  %y = ckopt.constant dense<0.0> : tensor<2x3xf32>
  %j = ckopt.constant dense<[[2, 0]]> : tensor<1x2xi32>
  %v = ckopt.constant dense<[[5.0, 6.0]]> : tensor<1x2xf32>
  %2 = ckopt.scatter_elements set %y, %j, %v {axis = 1 : i64} : (tensor<2x3xf32>, tensor<1x2xi32>, tensor<1x2xf32>) -> tensor<2x3xf32>
  %f = ckopt.constant dense<false> : tensor<3xi1>
  %t = ckopt.constant dense<true> : tensor<1xi1>
  %k = ckopt.constant dense<-1> : tensor<1xi64>
  %3 = ckopt.scatter_elements set %f, %k, %t {axis = 0 : i64} : (tensor<3xi1>, tensor<1xi64>, tensor<1xi1>) -> tensor<3xi1>
  return %0, %1, %2, %3 : tensor<2xf32>, tensor<2xf32>, tensor<2x3xf32>, tensor<3xi1>
}
// CHECK:      result 0: tensor<2xf32> [nan, nan]
// CHECK-NEXT: result 1: tensor<2xf32> [nan, nan]
// CHECK-NEXT: result 2: tensor<2x3xf32> [6, 0, 5, 0, 0, 0]
// CHECK-NEXT: result 3: tensor<3xi1> [0, 0, 1]

// -----

func.func @main() -> (tensor<2x3xi64>, tensor<2x3xi64>, tensor<2x3xi64>, tensor<2x3xi64>, tensor<3xui8>, tensor<0xf32>) {
  %x = ckopt.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi64>
  %0 = ckopt.cumulative_sum %x {axis = 1 : i64} : (tensor<2x3xi64>) -> tensor<2x3xi64>
  %1 = ckopt.cumulative_sum %x {axis = 1 : i64, exclusive} : (tensor<2x3xi64>) -> tensor<2x3xi64>
  %2 = ckopt.cumulative_sum %x {axis = 1 : i64, reverse} : (tensor<2x3xi64>) -> tensor<2x3xi64>
  %3 = ckopt.cumulative_sum %x {axis = 0 : i64, exclusive, reverse} : (tensor<2x3xi64>) -> tensor<2x3xi64>
  %b = ckopt.constant dense<[200, 50, 10]> : tensor<3xui8>
  %4 = ckopt.cumulative_sum %b {axis = 0 : i64} : (tensor<3xui8>) -> tensor<3xui8>
  %e = ckopt.constant dense<> : tensor<0xf32>
  %5 = ckopt.cumulative_sum %e {axis = 0 : i64} : (tensor<0xf32>) -> tensor<0xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<2x3xi64>, tensor<2x3xi64>, tensor<2x3xi64>, tensor<2x3xi64>, tensor<3xui8>, tensor<0xf32>
}
// CHECK:      result 0: tensor<2x3xi64> [1, 3, 6, 4, 9, 15]
// CHECK-NEXT: result 1: tensor<2x3xi64> [0, 1, 3, 0, 4, 9]
// CHECK-NEXT: result 2: tensor<2x3xi64> [6, 5, 3, 15, 11, 6]
// CHECK-NEXT: result 3: tensor<2x3xi64> [4, 5, 6, 0, 0, 0]
// CHECK-NEXT: result 4: tensor<3xui8> [200, 250, 4]
// CHECK-NEXT: result 5: tensor<0xf32> []

// -----

// Of equal elements the lower index comes first, with `last` the higher one; NaN is the largest.
func.func @main() -> (tensor<4xi64>, tensor<4xi64>, tensor<4xi64>, tensor<1x2xi64>, tensor<2xi64>, tensor<0xi64>) {
  %x = ckopt.constant dense<[3, 1, 3, 2]> : tensor<4xi32>
  %0 = ckopt.top_k %x {axis = 0 : i64, k = 4 : i64} : (tensor<4xi32>) -> tensor<4xi64>
  %1 = ckopt.top_k %x {axis = 0 : i64, k = 4 : i64, last} : (tensor<4xi32>) -> tensor<4xi64>
  %2 = ckopt.top_k %x {axis = 0 : i64, k = 4 : i64, smallest} : (tensor<4xi32>) -> tensor<4xi64>
  %y = ckopt.constant dense<[[1.0, 0x7FC00000], [2.0, 0x7F800000]]> : tensor<2x2xf32>
  %3 = ckopt.top_k %y {axis = 0 : i64, k = 1 : i64} : (tensor<2x2xf32>) -> tensor<1x2xi64>
  %u = ckopt.constant dense<[255, 1]> : tensor<2xui8>
  %4 = ckopt.top_k %u {axis = 0 : i64, k = 2 : i64} : (tensor<2xui8>) -> tensor<2xi64>
  %5 = ckopt.top_k %x {axis = 0 : i64, k = 0 : i64} : (tensor<4xi32>) -> tensor<0xi64>
  return %0, %1, %2, %3, %4, %5 : tensor<4xi64>, tensor<4xi64>, tensor<4xi64>, tensor<1x2xi64>, tensor<2xi64>, tensor<0xi64>
}
// CHECK:      result 0: tensor<4xi64> [0, 2, 3, 1]
// CHECK-NEXT: result 1: tensor<4xi64> [2, 0, 3, 1]
// CHECK-NEXT: result 2: tensor<4xi64> [1, 3, 0, 2]
// CHECK-NEXT: result 3: tensor<1x2xi64> [1, 0]
// CHECK-NEXT: result 4: tensor<2xi64> [0, 1]
// CHECK-NEXT: result 5: tensor<0xi64> []
