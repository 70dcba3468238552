// A tensor that is summed for two results (equal gradients of two parameters) is one operand of the
// call: it blocks its rank, and the other sum overlaps.
// REQUIRES: compiler
// RUN: ckopt-opt %s --overlap --plan-memory | FileCheck %s

func.func private @f(%x: tensor<4096xf32>) -> tensor<4096xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.neg %x : (tensor<4096xf32>) -> tensor<4096xf32>
  return %0 : tensor<4096xf32>
}
func.func private @twice(%x: tensor<4096xf32>) -> (tensor<4096xf32>, tensor<4096xf32>) attributes {ckopt.kernel = "library"} {
  %0:2 = ckopt.all_reduce %x, %x {ranks = 2 : i64} : (tensor<4096xf32>, tensor<4096xf32>) -> (tensor<4096xf32>, tensor<4096xf32>)
  return %0#0, %0#1 : tensor<4096xf32>, tensor<4096xf32>
}
func.func private @sum(%x: tensor<4096xf32>) -> tensor<4096xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.all_reduce %x {ranks = 2 : i64} : (tensor<4096xf32>) -> tensor<4096xf32>
  return %0 : tensor<4096xf32>
}

// CHECK-LABEL: func.func @step
// CHECK: kernel_call @twice(
// CHECK: kernel_call @sum_start(
// CHECK: kernel_call @f(
// CHECK: kernel_call @sum_wait(
func.func @step(%x: tensor<4096xf32>) -> (tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>) {
  %a = ckopt.kernel_call @f(%x) : (tensor<4096xf32>) -> tensor<4096xf32>
  %t:2 = ckopt.kernel_call @twice(%a) {workspace = 24576 : i64} : (tensor<4096xf32>) -> (tensor<4096xf32>, tensor<4096xf32>)
  %b = ckopt.kernel_call @f(%x) : (tensor<4096xf32>) -> tensor<4096xf32>
  %s = ckopt.kernel_call @sum(%b) {workspace = 24576 : i64, reuse = array<i64: 0, 0>}: (tensor<4096xf32>) -> tensor<4096xf32>
  %c = ckopt.kernel_call @f(%t#0) : (tensor<4096xf32>) -> tensor<4096xf32>
  %d = ckopt.kernel_call @f(%s) : (tensor<4096xf32>) -> tensor<4096xf32>
  return %c, %d, %t#1, %a : tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>
}
