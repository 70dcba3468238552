// A sum starts once its operand is there, in its bytes, and is waited for where it is
// first read; kernels between keep their order.
// REQUIRES: compiler
// RUN: ckopt-opt %s --overlap --plan-memory | FileCheck %s
// Room for the results, but not for the sum's workspace beside all of them: the plan
// without overlap fits, and the sum blocks its rank as before.
// RUN: ckopt-opt %s --remat=budget=90000 --overlap --plan-memory | FileCheck %s --check-prefix=TIGHT
// A little room lets the window grow, and the arena stays within the budget.
// RUN: ckopt-opt %s --remat=budget=100000 --overlap --plan-memory | FileCheck %s --check-prefix=ROOM

// TIGHT-LABEL: func.func @step
// TIGHT-NOT: _start
// TIGHT: @sum(

// ROOM-LABEL: func.func @step
// ROOM-SAME: ckopt.arena_bytes = 90112 : i64
// ROOM: @sum_start
// ROOM: @f(
// ROOM: @sum_wait

func.func private @f(%x: tensor<4096xf32>) -> tensor<4096xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.neg %x : (tensor<4096xf32>) -> tensor<4096xf32>
  return %0 : tensor<4096xf32>
}
func.func private @sum(%x: tensor<4096xf32>) -> tensor<4096xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.all_reduce %x {ranks = 2 : i64} : (tensor<4096xf32>) -> tensor<4096xf32>
  return %0 : tensor<4096xf32>
}
// CHECK: func.func private @sum_wait(%arg0: tensor<4096xf32>, %arg1: tensor<24576xui8>) -> tensor<4096xf32>
// CHECK: ckopt.collective_wait %arg0, %arg1 {ranks = 2 : i64}
// CHECK: func.func private @sum_start(%arg0: tensor<4096xf32>) -> (tensor<4096xf32>, tensor<24576xui8>)
// CHECK: ckopt.collective_start %arg0 {collective = "all_reduce", ranks = 2 : i64}

// CHECK-LABEL: func.func @step
func.func @step(%x: tensor<4096xf32>) -> (tensor<4096xf32>, tensor<4096xf32>) {
  // CHECK: @f(%arg0)
  %a = ckopt.kernel_call @f(%x) : (tensor<4096xf32>) -> tensor<4096xf32>
  // CHECK: %[[B:.*]] = ckopt.kernel_call @f
  %b = ckopt.kernel_call @f(%a) : (tensor<4096xf32>) -> tensor<4096xf32>
  // CHECK: %[[S:.*]]:2 = ckopt.kernel_call @sum_start(%[[B]]) {aliases = array<i64: 0, 0>
  // CHECK: @f
  %c = ckopt.kernel_call @f(%a) : (tensor<4096xf32>) -> tensor<4096xf32>
  %s = ckopt.kernel_call @sum(%b) {workspace = 24576 : i64, reuse = array<i64: 0, 0>}: (tensor<4096xf32>) -> tensor<4096xf32>
  // CHECK: @f
  %d = ckopt.kernel_call @f(%c) : (tensor<4096xf32>) -> tensor<4096xf32>
  // CHECK: %[[W:.*]] = ckopt.kernel_call @sum_wait(%[[S]]#0, %[[S]]#1) {aliases = array<i64: 0, 0>
  // CHECK: @f(%[[W]])
  %e = ckopt.kernel_call @f(%s) : (tensor<4096xf32>) -> tensor<4096xf32>
  return %d, %e : tensor<4096xf32>, tensor<4096xf32>
}
