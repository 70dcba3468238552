// What plan-memory refuses.
// RUN: ckopt-opt %s --plan-memory --split-input-file --verify-diagnostics

// Only kernel calls have a place; all others are named at once.
func.func @unfused(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{has no kernel; plan-memory places kernel calls and views only (run fuse first)}}
  %0 = ckopt.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @+1 {{has no kernel; plan-memory places kernel calls and views only (run fuse first)}}
  %1 = ckopt.exp %0 : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// Arguments of one name are one tensor.
func.func @step(%w: tensor<4xf32> {ckopt.name = "w"}) -> tensor<4xf32> {
  return %w : tensor<4xf32>
}
// expected-error @+1 {{argument 0 (w) has type 'tensor<8xf32>' here and 'tensor<4xf32>' in another function}}
func.func @eval(%w: tensor<8xf32> {ckopt.name = "w"}) -> tensor<8xf32> {
  return %w : tensor<8xf32>
}

// -----

func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// A kernel that reads a state but is no update of it cannot write the new one over it.
func.func @notAnUpdate(%w: tensor<4xf32> {ckopt.name = "w"}) -> (tensor<4xf32> {ckopt.updates = 0 : i64}) {
  // expected-error @+1 {{result 0 cannot be written to the bytes of argument 0 (w) that it updates}}
  %0 = ckopt.kernel_call @f(%w) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func private @u(%p: tensor<4xf32>, %g: tensor<4xf32>) -> tensor<4xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.accumulate %p, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// An old state that is read together with the new one.
func.func @both(%w: tensor<4xf32> {ckopt.name = "w"}, %g: tensor<4xf32>) -> (tensor<4xf32> {ckopt.updates = 0 : i64}, tensor<4xf32>) {
  %0 = ckopt.kernel_call @u(%w, %g) {updates = array<i64: 0, 0>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // expected-error @+1 {{reads a new state whose old value is read later}}
  %1 = ckopt.kernel_call @u(%0, %w) {updates = array<i64>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

func.func private @u(%p: tensor<4xf32>, %g: tensor<4xf32>) -> tensor<4xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.accumulate %p, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// An old state that is a result itself.
func.func @old(%w: tensor<4xf32> {ckopt.name = "w"}, %g: tensor<4xf32>) -> (tensor<4xf32> {ckopt.updates = 0 : i64}, tensor<2x2xf32>) {
  %0 = ckopt.kernel_call @u(%w, %g) {updates = array<i64: 0, 0>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = ckopt.reshape %w : (tensor<4xf32>) -> tensor<2x2xf32>
  // expected-error @+1 {{result 1 returns the old value of w, which is updated in place; return its new value or a copy}}
  return %0, %1 : tensor<4xf32>, tensor<2x2xf32>
}
