// What is in flight lies at multiples of the alignment that a device asks for, where
// places are looked for within a budget.
// REQUIRES: compiler
// RUN: ckopt-opt %s --remat=budget=2900 --overlap --plan-memory --verify-arena | FileCheck %s

module attributes {ckopt.alignment = 256 : i64} {
func.func private @f(%x: tensor<100xf32>) -> tensor<100xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.neg %x : (tensor<100xf32>) -> tensor<100xf32>
  return %0 : tensor<100xf32>
}
func.func private @sum(%x: tensor<100xf32>) -> tensor<100xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.all_reduce %x {ranks = 2 : i64} : (tensor<100xf32>) -> tensor<100xf32>
  return %0 : tensor<100xf32>
}
// CHECK-LABEL: func.func @step
// CHECK: @sum_start{{.*}}offsets = array<i64: 512, 2048>
func.func @step(%x: tensor<100xf32>) -> (tensor<100xf32>, tensor<100xf32>) {
  %a = ckopt.kernel_call @f(%x) : (tensor<100xf32>) -> tensor<100xf32>
  %b = ckopt.kernel_call @f(%a) : (tensor<100xf32>) -> tensor<100xf32>
  %c = ckopt.kernel_call @f(%a) : (tensor<100xf32>) -> tensor<100xf32>
  %s = ckopt.kernel_call @sum(%b) {workspace = 600 : i64, reuse = array<i64: 0, 0>}: (tensor<100xf32>) -> tensor<100xf32>
  %d = ckopt.kernel_call @f(%c) : (tensor<100xf32>) -> tensor<100xf32>
  %e = ckopt.kernel_call @f(%s) : (tensor<100xf32>) -> tensor<100xf32>
  return %d, %e : tensor<100xf32>, tensor<100xf32>
}
}
