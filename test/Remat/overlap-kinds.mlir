// What each kind of collective keeps alive, and that collectives keep their order.
// REQUIRES: compiler
// RUN: ckopt-opt %s --overlap --plan-memory --split-input-file | FileCheck %s

func.func private @f(%x: tensor<4096xf32>) -> tensor<4096xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.neg %x : (tensor<4096xf32>) -> tensor<4096xf32>
  return %0 : tensor<4096xf32>
}
func.func private @sum(%x: tensor<4096xf32>) -> tensor<4096xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.all_reduce %x {ranks = 2 : i64} : (tensor<4096xf32>) -> tensor<4096xf32>
  return %0 : tensor<4096xf32>
}
// What others read, too, is no place for the sum: the wait keeps it.
// CHECK-LABEL: func.func @read_twice
func.func @read_twice(%x: tensor<4096xf32>) -> (tensor<4096xf32>, tensor<4096xf32>) {
  // CHECK: %[[A:.*]] = ckopt.kernel_call @f
  %a = ckopt.kernel_call @f(%x) : (tensor<4096xf32>) -> tensor<4096xf32>
  // CHECK: %[[S:.*]]:2 = ckopt.kernel_call @sum_start(%[[A]]) {cost
  %s = ckopt.kernel_call @sum(%a) {workspace = 24576 : i64, reuse = array<i64: 0, 0>} : (tensor<4096xf32>) -> tensor<4096xf32>
  // CHECK: @f(%[[A]])
  %b = ckopt.kernel_call @f(%a) : (tensor<4096xf32>) -> tensor<4096xf32>
  // CHECK: @f
  %c = ckopt.kernel_call @f(%b) : (tensor<4096xf32>) -> tensor<4096xf32>
  // CHECK: @sum_wait(%[[S]]#0, %[[S]]#1, %[[A]])
  %e = ckopt.kernel_call @f(%s) : (tensor<4096xf32>) -> tensor<4096xf32>
  return %c, %e : tensor<4096xf32>, tensor<4096xf32>
}

// -----

func.func private @f(%x: tensor<4096xf32>) -> tensor<4096xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.neg %x : (tensor<4096xf32>) -> tensor<4096xf32>
  return %0 : tensor<4096xf32>
}
func.func private @add(%x: tensor<4096xf32>, %y: tensor<4096xf32>) -> tensor<4096xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.add %x, %y : (tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096xf32>
  return %0 : tensor<4096xf32>
}
func.func private @gather(%x: tensor<2048xf32>) -> tensor<4096xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.all_gather %x {ranks = 2 : i64, rows = array<i64: 4096>} : (tensor<2048xf32>) -> tensor<4096xf32>
  return %0 : tensor<4096xf32>
}
// A gather starts as early as its messages need, not where the step begins.
// CHECK-LABEL: func.func @gather_ahead
func.func @gather_ahead(%w: tensor<2048xf32>, %x: tensor<4096xf32>) -> tensor<4096xf32> {
  // CHECK: @f
  %a = ckopt.kernel_call @f(%x) {cost = 1.0 : f64} : (tensor<4096xf32>) -> tensor<4096xf32>
  // CHECK: %[[G:.*]]:2 = ckopt.kernel_call @gather_start(%arg0)
  // CHECK: %[[B:.*]] = ckopt.kernel_call @f
  %b = ckopt.kernel_call @f(%a) {cost = 1.0 : f64} : (tensor<4096xf32>) -> tensor<4096xf32>
  // CHECK: %[[W:.*]] = ckopt.kernel_call @gather_wait(%[[G]]#0, %[[G]]#1, %arg0)
  %g = ckopt.kernel_call @gather(%w) : (tensor<2048xf32>) -> tensor<4096xf32>
  // CHECK: @add(%[[B]], %[[W]])
  %c = ckopt.kernel_call @add(%b, %g) : (tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096xf32>
  return %c : tensor<4096xf32>
}

// -----

func.func private @f(%x: tensor<4096xf32>) -> tensor<4096xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.neg %x : (tensor<4096xf32>) -> tensor<4096xf32>
  return %0 : tensor<4096xf32>
}
func.func private @scatter(%x: tensor<4096xf32>) -> tensor<2048xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.reduce_scatter %x {ranks = 2 : i64, groups = 2 : i64} : (tensor<4096xf32>) -> tensor<2048xf32>
  return %0 : tensor<2048xf32>
}
func.func private @sum(%x: tensor<2048xf32>) -> tensor<2048xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.all_reduce %x {ranks = 2 : i64, groups = 2 : i64, stride = 2 : i64} : (tensor<2048xf32>) -> tensor<2048xf32>
  return %0 : tensor<2048xf32>
}
// A sum of scattered sums starts when those have come, and the second pair behind the
// first one, as before.
// CHECK-LABEL: func.func @chain
func.func @chain(%x: tensor<4096xf32>, %y: tensor<4096xf32>) -> (tensor<2048xf32>, tensor<2048xf32>) {
  // CHECK: @f(%arg0)
  %a = ckopt.kernel_call @f(%x) : (tensor<4096xf32>) -> tensor<4096xf32>
  // CHECK: %[[A:.*]]:2 = ckopt.kernel_call @scatter_start
  // CHECK: @f(%arg1)
  %b = ckopt.kernel_call @f(%y) : (tensor<4096xf32>) -> tensor<4096xf32>
  // CHECK: %[[AW:.*]] = ckopt.kernel_call @scatter_wait{{.*}}(%[[A]]#0
  // CHECK: @sum{{.*}}(%[[AW]])
  // CHECK: @scatter
  %c = ckopt.kernel_call @scatter(%a) {workspace = 8192 : i64} : (tensor<4096xf32>) -> tensor<2048xf32>
  %d = ckopt.kernel_call @sum(%c) {workspace = 12288 : i64, reuse = array<i64: 0, 0>} : (tensor<2048xf32>) -> tensor<2048xf32>
  %e = ckopt.kernel_call @scatter(%b) {workspace = 8192 : i64} : (tensor<4096xf32>) -> tensor<2048xf32>
  %g = ckopt.kernel_call @sum(%e) {workspace = 12288 : i64, reuse = array<i64: 0, 0>} : (tensor<2048xf32>) -> tensor<2048xf32>
  return %d, %g : tensor<2048xf32>, tensor<2048xf32>
}

// -----

func.func private @f(%x: tensor<4096xf32>) -> tensor<4096xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.neg %x : (tensor<4096xf32>) -> tensor<4096xf32>
  return %0 : tensor<4096xf32>
}
func.func private @sum(%x: tensor<4096xf32>) -> tensor<4096xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.all_reduce %x {ranks = 2 : i64} : (tensor<4096xf32>) -> tensor<4096xf32>
  return %0 : tensor<4096xf32>
}
func.func private @update(%p: tensor<4096xf32>, %g: tensor<4096xf32>) -> tensor<4096xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.add %p, %g : (tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096xf32>
  return %0 : tensor<4096xf32>
}
// An update right behind its sum moves on, behind as many kernels as the messages need
// and no more, since the sum stays alive for it.
// CHECK-LABEL: func.func @late_update
func.func @late_update(%p: tensor<4096xf32> {ckopt.name = "p", ckopt.role = "parameter"}, %x: tensor<4096xf32>) -> (tensor<4096xf32> {ckopt.updates = 0 : i64}, tensor<4096xf32>) {
  // CHECK: @f(%arg1)
  %a = ckopt.kernel_call @f(%x) : (tensor<4096xf32>) -> tensor<4096xf32>
  // CHECK: @sum_start
  %s = ckopt.kernel_call @sum(%a) {workspace = 24576 : i64, reuse = array<i64: 0, 0>} : (tensor<4096xf32>) -> tensor<4096xf32>
  %u = ckopt.kernel_call @update(%p, %s) {updates = array<i64: 0, 0>} : (tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096xf32>
  // CHECK: @f(%arg1)
  %b = ckopt.kernel_call @f(%x) {cost = 1.0 : f64} : (tensor<4096xf32>) -> tensor<4096xf32>
  // CHECK: %[[W:.*]] = ckopt.kernel_call @sum_wait
  // CHECK: @update(%arg0, %[[W]])
  // CHECK: @f
  %c = ckopt.kernel_call @f(%b) {cost = 1.0 : f64} : (tensor<4096xf32>) -> tensor<4096xf32>
  return %u, %c : tensor<4096xf32>, tensor<4096xf32>
}
