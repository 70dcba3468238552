// The independent check of a placement: each case breaks one rule.
// RUN: ckopt-opt %s --verify-arena --split-input-file --verify-diagnostics

func.func private @f(%x: tensor<16xf32>) -> tensor<16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.neg %x : (tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// Two values alive at once must not overlap.
func.func @overlap(%x: tensor<16xf32> {ckopt.offset = 0 : i64}) -> (tensor<16xf32>, tensor<16xf32>) attributes {ckopt.arena_bytes = 256 : i64} {
  %0 = ckopt.kernel_call @f(%x) {offsets = array<i64: 64>} : (tensor<16xf32>) -> tensor<16xf32>
  // expected-error @+1 {{result 0 (bytes 64 to 128) overlaps f (bytes 64 to 128), which is still needed}}
  %1 = ckopt.kernel_call @f(%x) {offsets = array<i64: 64>} : (tensor<16xf32>) -> tensor<16xf32>
  return %0, %1 : tensor<16xf32>, tensor<16xf32>
}

// -----

func.func private @f(%x: tensor<16xf32>) -> tensor<16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.neg %x : (tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// A value that is read through a view later is still needed.
func.func @view(%x: tensor<16xf32> {ckopt.offset = 0 : i64}) -> (tensor<16xf32>, tensor<4x4xf32>) attributes {ckopt.arena_bytes = 256 : i64} {
  %0 = ckopt.kernel_call @f(%x) {offsets = array<i64: 64>} : (tensor<16xf32>) -> tensor<16xf32>
  %v = ckopt.reshape %0 : (tensor<16xf32>) -> tensor<4x4xf32>
  // expected-error @+1 {{overlaps f}}
  %1 = ckopt.kernel_call @f(%x) {offsets = array<i64: 64>} : (tensor<16xf32>) -> tensor<16xf32>
  return %1, %v : tensor<16xf32>, tensor<4x4xf32>
}

// -----

func.func private @f(%x: tensor<16xf32>) -> tensor<16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.neg %x : (tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// Without the kernel's promise a result must not lie on its operand.
func.func @promise(%x: tensor<16xf32> {ckopt.offset = 0 : i64}) -> tensor<16xf32> attributes {ckopt.arena_bytes = 256 : i64} {
  %0 = ckopt.kernel_call @f(%x) {offsets = array<i64: 64>} : (tensor<16xf32>) -> tensor<16xf32>
  // expected-error @+1 {{overlaps f}}
  %1 = ckopt.kernel_call @f(%0) {offsets = array<i64: 64>} : (tensor<16xf32>) -> tensor<16xf32>
  return %1 : tensor<16xf32>
}

// -----

func.func private @f(%x: tensor<16xf32>) -> tensor<16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.neg %x : (tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// An argument is there all the time, promise or not.
func.func @argument(%x: tensor<16xf32> {ckopt.name = "x", ckopt.offset = 0 : i64}) -> tensor<16xf32> attributes {ckopt.arena_bytes = 256 : i64} {
  // expected-error @+1 {{result 0 (bytes 0 to 64) overlaps x (bytes 0 to 64)}}
  %0 = ckopt.kernel_call @f(%x) {reuse = array<i64: 0, 0>, offsets = array<i64: 0>} : (tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// -----

func.func private @f(%x: tensor<16xf32>) -> tensor<16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.neg %x : (tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// A workspace lies apart from everything alive.
func.func @workspace(%x: tensor<16xf32> {ckopt.offset = 0 : i64}) -> tensor<16xf32> attributes {ckopt.arena_bytes = 256 : i64} {
  // expected-error @+1 {{workspace (bytes 64 to 164) overlaps f (bytes 128 to 192)}}
  %0 = ckopt.kernel_call @f(%x) {offsets = array<i64: 128>, workspace = 100 : i64, workspace_offset = 64 : i64} : (tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// -----

func.func private @f(%x: tensor<16xf32>) -> tensor<16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.neg %x : (tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// Everything lies inside of the arena.
func.func @outside(%x: tensor<16xf32> {ckopt.offset = 0 : i64}) -> tensor<16xf32> attributes {ckopt.arena_bytes = 100 : i64} {
  // expected-error @+1 {{result 0 (bytes 64 to 128) lies outside of the arena of 100 bytes}}
  %0 = ckopt.kernel_call @f(%x) {offsets = array<i64: 64>} : (tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// -----

func.func private @f(%x: tensor<16xf32>) -> tensor<16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.neg %x : (tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// Places are multiples of 64.
func.func @aligned(%x: tensor<16xf32> {ckopt.offset = 0 : i64}) -> tensor<16xf32> attributes {ckopt.arena_bytes = 256 : i64} {
  // expected-error @+1 {{result 0 lies at byte 96, which is not a multiple of 64}}
  %0 = ckopt.kernel_call @f(%x) {offsets = array<i64: 96>} : (tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// -----

func.func private @f(%x: tensor<16xf32>) -> tensor<16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.neg %x : (tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// A new state lies in its argument's bytes.
func.func @state(%x: tensor<16xf32> {ckopt.name = "x", ckopt.offset = 0 : i64}) -> (tensor<16xf32> {ckopt.updates = 0 : i64}) attributes {ckopt.arena_bytes = 256 : i64} {
  %0 = ckopt.kernel_call @f(%x) {offsets = array<i64: 64>} : (tensor<16xf32>) -> tensor<16xf32>
  // expected-error @+1 {{result 0 does not lie in the bytes of x, which it updates}}
  return %0 : tensor<16xf32>
}

// -----

func.func private @u(%p: tensor<16xf32>, %g: tensor<16xf32>) -> tensor<16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.accumulate %p, %g : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
func.func private @f(%x: tensor<16xf32>) -> tensor<16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.neg %x : (tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// An old state that is read after its update.
func.func @late(%x: tensor<16xf32> {ckopt.name = "x", ckopt.offset = 0 : i64}, %g: tensor<16xf32> {ckopt.offset = 64 : i64}) -> (tensor<16xf32> {ckopt.updates = 0 : i64}, tensor<16xf32>) attributes {ckopt.arena_bytes = 256 : i64} {
  // expected-error @+1 {{overlaps x (bytes 0 to 64), which is still needed}}
  %0 = ckopt.kernel_call @u(%x, %g) {updates = array<i64: 0, 0>, offsets = array<i64: 0>} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %1 = ckopt.kernel_call @f(%x) {offsets = array<i64: 128>} : (tensor<16xf32>) -> tensor<16xf32>
  return %0, %1 : tensor<16xf32>, tensor<16xf32>
}
