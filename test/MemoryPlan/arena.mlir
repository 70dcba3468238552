// One arena: arguments, results, workspaces, updates in place, views.
// RUN: ckopt-opt %s --plan-memory --split-input-file | FileCheck %s

func.func private @f(%x: tensor<16xf32>) -> tensor<16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.neg %x : (tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// Parameters lie below data, whatever the order of the arguments; the chain's results use
// two places in turn; the arena ends with the last byte in use.
// CHECK-LABEL: func.func @chain
// CHECK-SAME: %arg0: tensor<16xf32> {ckopt.name = "x", ckopt.offset = 64 : i64, ckopt.role = "input"}
// CHECK-SAME: %arg1: tensor<16xf32> {ckopt.name = "w", ckopt.offset = 0 : i64, ckopt.role = "parameter"}
// CHECK-SAME: ckopt.arena_bytes = 256 : i64
// CHECK: offsets = array<i64: [[A:[0-9]+]]>
// CHECK: offsets = array<i64: [[B:[0-9]+]]>
// CHECK: offsets = array<i64: [[A]]>
func.func @chain(%x: tensor<16xf32> {ckopt.name = "x", ckopt.role = "input"},
                 %w: tensor<16xf32> {ckopt.name = "w", ckopt.role = "parameter"}) -> tensor<16xf32> {
  %0 = ckopt.kernel_call @f(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %1 = ckopt.kernel_call @f(%0) : (tensor<16xf32>) -> tensor<16xf32>
  %2 = ckopt.kernel_call @f(%1) : (tensor<16xf32>) -> tensor<16xf32>
  return %2 : tensor<16xf32>
}

// -----

func.func private @f(%x: tensor<16xf32>) -> tensor<16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.neg %x : (tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// A result takes its operand's bytes over where the kernel allows it and nobody reads the
// operand any more; never an argument's.
// CHECK-LABEL: func.func @reuse
// CHECK-SAME: ckopt.offset = 0
// CHECK-SAME: ckopt.arena_bytes = 128 : i64
// CHECK: offsets = array<i64: 64>
// CHECK: offsets = array<i64: 64>
func.func @reuse(%x: tensor<16xf32>) -> tensor<16xf32> {
  %0 = ckopt.kernel_call @f(%x) {reuse = array<i64: 0, 0>} : (tensor<16xf32>) -> tensor<16xf32>
  %1 = ckopt.kernel_call @f(%0) {reuse = array<i64: 0, 0>} : (tensor<16xf32>) -> tensor<16xf32>
  return %1 : tensor<16xf32>
}

// -----

func.func private @f(%x: tensor<16xf32>) -> tensor<16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.neg %x : (tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
func.func private @shifted(%x: tensor<16xf32>, %y: tensor<16xf32>) -> tensor<16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.slice %y {starts = array<i64: 15>, sizes = array<i64: 16>, steps = array<i64: -1>} : (tensor<16xf32>) -> tensor<16xf32>
  %1 = ckopt.sub %x, %0 : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %1 : tensor<16xf32>
}

// The promise to overwrite one operand holds for that operand: where another one shows the
// same bytes (here by a pin) without a promise, the result gets bytes of its own.
// CHECK-LABEL: func.func @shared
// CHECK: @f({{.*}}offsets = array<i64: 128>
// CHECK: @shifted({{.*}}offsets = array<i64: 64>
// CHECK: @shifted({{.*}}offsets = array<i64: 64>
// CHECK: @shifted({{.*}}offsets = array<i64: 64>
func.func @shared(%x: tensor<16xf32>) -> tensor<16xf32> {
  %0 = ckopt.kernel_call @f(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %1 = ckopt.pin %0 : (tensor<16xf32>) -> tensor<16xf32>
  %2 = ckopt.kernel_call @shifted(%1, %0) {reuse = array<i64: 0, 0>} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %3 = ckopt.kernel_call @shifted(%2, %x) {reuse = array<i64: 0, 0>} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %4 = ckopt.pin %3 : (tensor<16xf32>) -> tensor<16xf32>
  %5 = ckopt.kernel_call @shifted(%3, %4) {reuse = array<i64: 0, 0, 1, 0>} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %5 : tensor<16xf32>
}

// -----

func.func private @f(%x: tensor<16xf32>) -> tensor<16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.neg %x : (tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// A workspace is there while its call runs.
// CHECK-LABEL: func.func @workspace
// CHECK-SAME: ckopt.arena_bytes = 1128 : i64
// CHECK: offsets = array<i64: 64>, workspace = 1000 : i64, workspace_offset = 128 : i64
func.func @workspace(%x: tensor<16xf32>) -> tensor<16xf32> {
  %0 = ckopt.kernel_call @f(%x) {workspace = 1000 : i64} : (tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// -----

func.func private @f(%x: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.neg %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
func.func private @u(%p: tensor<16xf32>, %g: tensor<16xf32>, %lr: tensor<f32>, %s: tensor<i64>) -> tensor<16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.sgd %p, %g, %lr, %s {momentum = 0.0, dampening = 0.0, weight_decay = 0.0} : (tensor<16xf32>, tensor<16xf32>, tensor<f32>, tensor<i64>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// A new state lies in the old one's bytes, and its update is moved behind the last reader of
// the old one, which here reads it through a view.
// CHECK-LABEL: func.func @update
// CHECK: %[[V:.*]] = ckopt.reshape %arg0
// CHECK: ckopt.kernel_call @f(%[[V]])
// CHECK: ckopt.kernel_call @u(%arg0, {{.*}}offsets = array<i64: 0>
func.func @update(%p: tensor<16xf32> {ckopt.role = "parameter"}, %g: tensor<16xf32>, %lr: tensor<f32>, %s: tensor<i64>)
    -> (tensor<16xf32> {ckopt.updates = 0 : i64}, tensor<4x4xf32>) {
  %n = ckopt.kernel_call @u(%p, %g, %lr, %s) {updates = array<i64: 0, 0>} : (tensor<16xf32>, tensor<16xf32>, tensor<f32>, tensor<i64>) -> tensor<16xf32>
  %v = ckopt.reshape %p : (tensor<16xf32>) -> tensor<4x4xf32>
  %r = ckopt.kernel_call @f(%v) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %n, %r : tensor<16xf32>, tensor<4x4xf32>
}

// -----

func.func private @f(%x: tensor<16xf32>) -> tensor<16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.neg %x : (tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// Two functions share one arena: arguments of one name lie at one place in both.
// CHECK-LABEL: func.func @step
// CHECK-SAME: ckopt.name = "x", ckopt.offset = 64 : i64
// CHECK-SAME: ckopt.name = "w", ckopt.offset = 0 : i64
// CHECK-SAME: ckopt.arena_bytes = 256 : i64
// CHECK-LABEL: func.func @eval
// CHECK-SAME: ckopt.name = "w", ckopt.offset = 0 : i64
// CHECK-SAME: ckopt.arena_bytes = 256 : i64
// CHECK: offsets = array<i64: 128>
func.func @step(%x: tensor<16xf32> {ckopt.name = "x", ckopt.role = "input"}, %w: tensor<16xf32> {ckopt.name = "w", ckopt.role = "parameter"}) -> (tensor<16xf32>, tensor<16xf32>) {
  %0 = ckopt.kernel_call @f(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %1 = ckopt.kernel_call @f(%w) : (tensor<16xf32>) -> tensor<16xf32>
  return %0, %1 : tensor<16xf32>, tensor<16xf32>
}
func.func @eval(%w: tensor<16xf32> {ckopt.name = "w", ckopt.role = "parameter"}) -> tensor<16xf32> {
  %0 = ckopt.kernel_call @f(%w) : (tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
