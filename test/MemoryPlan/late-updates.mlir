// With late-updates, updates wait for each other where their gradients fit into bytes that are
// planned anyway.
// RUN: ckopt-opt %s --plan-memory=late-updates --split-input-file | FileCheck %s
// RUN: ckopt-opt %s --plan-memory --split-input-file | FileCheck %s --check-prefix=SOON

func.func private @small(%p: tensor<16xf32>, %g: tensor<16xf32>, %lr: tensor<f32>, %t: tensor<i64>) -> tensor<16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.sgd %p, %g, %lr, %t {momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<16xf32>, tensor<16xf32>, tensor<f32>, tensor<i64>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
func.func private @wide(%x: tensor<16xf32>) -> tensor<4x16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.expand %x : (tensor<16xf32>) -> tensor<4x16xf32>
  return %0 : tensor<4x16xf32>
}
func.func private @sum(%x: tensor<4x16xf32>) -> tensor<16xf32> attributes {ckopt.kernel = "reduction"} {
  %0 = ckopt.reduce sum %x {axes = array<i64: 0>, keepdims = false} : (tensor<4x16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
func.func private @neg(%x: tensor<16xf32>) -> tensor<16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.neg %x : (tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// The wide tensor needs the bytes of both gradients before they exist.
// CHECK-LABEL: func.func @room
// CHECK-SAME: ckopt.arena_bytes = 640 : i64
// CHECK: kernel_call @wide
// CHECK-NEXT: kernel_call @sum
// CHECK-NEXT: kernel_call @neg
// CHECK-NEXT: kernel_call @small
// CHECK-NEXT: kernel_call @small
// SOON-LABEL: func.func @room
// SOON-SAME: ckopt.arena_bytes = 640 : i64
// SOON: kernel_call @sum
// SOON-NEXT: kernel_call @small
// SOON-NEXT: kernel_call @neg
// SOON-NEXT: kernel_call @small
func.func @room(%x: tensor<16xf32>, %a: tensor<16xf32>, %b: tensor<16xf32>, %lr: tensor<f32>, %t: tensor<i64>)
    -> (tensor<16xf32> {ckopt.updates = 1 : i64}, tensor<16xf32> {ckopt.updates = 2 : i64}) {
  %0 = ckopt.kernel_call @wide(%x) : (tensor<16xf32>) -> tensor<4x16xf32>
  %1 = ckopt.kernel_call @sum(%0) : (tensor<4x16xf32>) -> tensor<16xf32>
  %2 = ckopt.kernel_call @small(%a, %1, %lr, %t) {updates = array<i64: 0, 0>} : (tensor<16xf32>, tensor<16xf32>, tensor<f32>, tensor<i64>) -> tensor<16xf32>
  %3 = ckopt.kernel_call @neg(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %4 = ckopt.kernel_call @small(%b, %3, %lr, %t) {updates = array<i64: 0, 0>} : (tensor<16xf32>, tensor<16xf32>, tensor<f32>, tensor<i64>) -> tensor<16xf32>
  return %2, %4 : tensor<16xf32>, tensor<16xf32>
}

// -----

func.func private @small(%p: tensor<16xf32>, %g: tensor<16xf32>, %lr: tensor<f32>, %t: tensor<i64>) -> tensor<16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.sgd %p, %g, %lr, %t {momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<16xf32>, tensor<16xf32>, tensor<f32>, tensor<i64>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
func.func private @neg(%x: tensor<16xf32>) -> tensor<16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.neg %x : (tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// Two gradients at once would take more.
// CHECK-LABEL: func.func @tight
// CHECK-SAME: ckopt.arena_bytes = 384 : i64
// CHECK: kernel_call @neg
// CHECK-NEXT: kernel_call @small
// CHECK-NEXT: kernel_call @neg
// CHECK-NEXT: kernel_call @small
// SOON-LABEL: func.func @tight
// SOON-SAME: ckopt.arena_bytes = 384 : i64
func.func @tight(%x: tensor<16xf32>, %a: tensor<16xf32>, %b: tensor<16xf32>, %lr: tensor<f32>, %t: tensor<i64>)
    -> (tensor<16xf32> {ckopt.updates = 1 : i64}, tensor<16xf32> {ckopt.updates = 2 : i64}) {
  %0 = ckopt.kernel_call @neg(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %1 = ckopt.kernel_call @small(%a, %0, %lr, %t) {updates = array<i64: 0, 0>} : (tensor<16xf32>, tensor<16xf32>, tensor<f32>, tensor<i64>) -> tensor<16xf32>
  %2 = ckopt.kernel_call @neg(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %3 = ckopt.kernel_call @small(%b, %2, %lr, %t) {updates = array<i64: 0, 0>} : (tensor<16xf32>, tensor<16xf32>, tensor<f32>, tensor<i64>) -> tensor<16xf32>
  return %1, %3 : tensor<16xf32>, tensor<16xf32>
}
