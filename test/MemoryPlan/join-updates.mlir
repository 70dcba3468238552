// Updates of several parameters become one call behind the plan, where their bytes allow it.
// RUN: ckopt-opt %s --join-updates --split-input-file | FileCheck %s

func.func private @small(%p: tensor<16xf32>, %g: tensor<16xf32>, %lr: tensor<f32>, %t: tensor<i64>) -> tensor<16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.sgd %p, %g, %lr, %t {momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<16xf32>, tensor<16xf32>, tensor<f32>, tensor<i64>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
func.func private @wide(%p: tensor<2x16xf32>, %g: tensor<2x16xf32>, %lr: tensor<f32>, %t: tensor<i64>) -> tensor<2x16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.sgd %p, %g, %lr, %t {momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<2x16xf32>, tensor<2x16xf32>, tensor<f32>, tensor<i64>) -> tensor<2x16xf32>
  return %0 : tensor<2x16xf32>
}
func.func private @decayed(%p: tensor<2x16xf32>, %g: tensor<2x16xf32>, %lr: tensor<f32>, %t: tensor<i64>) -> tensor<2x16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.sgd %p, %g, %lr, %t {momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.1 : f64} : (tensor<2x16xf32>, tensor<2x16xf32>, tensor<f32>, tensor<i64>) -> tensor<2x16xf32>
  return %0 : tensor<2x16xf32>
}

// Of two shapes, one kernel: what both read is one operand. The kernels that nobody calls any
// more are gone; another weight decay is another form.
// CHECK-NOT: @small
// CHECK: func.func private @k_joined_0(%arg0: tensor<16xf32>, %arg1: tensor<16xf32>, %arg2: tensor<f32>, %arg3: tensor<i64>, %arg4: tensor<2x16xf32>, %arg5: tensor<2x16xf32>) -> (tensor<16xf32>, tensor<2x16xf32>) attributes {ckopt.kernel = "joined", ckopt.launches = 1 : i64}
// CHECK: ckopt.sgd %arg0, %arg1, %arg2, %arg3
// CHECK: ckopt.sgd %arg4, %arg5, %arg2, %arg3
// CHECK-LABEL: func.func @shapes
// CHECK-NEXT: kernel_call @decayed
// CHECK-NEXT: kernel_call @k_joined_0(%arg0, %arg2, %arg6, %arg7, %arg1, %arg3) {offsets = array<i64: 0, 64>, updates = array<i64: 0, 0, 4, 1>}
// CHECK-NEXT: return
func.func @shapes(%a: tensor<16xf32> {ckopt.offset = 0 : i64}, %b: tensor<2x16xf32> {ckopt.offset = 64 : i64},
    %da: tensor<16xf32> {ckopt.offset = 192 : i64}, %db: tensor<2x16xf32> {ckopt.offset = 256 : i64},
    %c: tensor<2x16xf32> {ckopt.offset = 384 : i64}, %dc: tensor<2x16xf32> {ckopt.offset = 512 : i64},
    %lr: tensor<f32> {ckopt.offset = 640 : i64}, %t: tensor<i64> {ckopt.offset = 704 : i64})
    -> (tensor<16xf32> {ckopt.updates = 0 : i64}, tensor<2x16xf32> {ckopt.updates = 1 : i64}, tensor<2x16xf32> {ckopt.updates = 4 : i64}) attributes {ckopt.arena_bytes = 712 : i64} {
  %0 = ckopt.kernel_call @small(%a, %da, %lr, %t) {offsets = array<i64: 0>, updates = array<i64: 0, 0>} : (tensor<16xf32>, tensor<16xf32>, tensor<f32>, tensor<i64>) -> tensor<16xf32>
  %1 = ckopt.kernel_call @decayed(%c, %dc, %lr, %t) {offsets = array<i64: 384>, updates = array<i64: 0, 0>} : (tensor<2x16xf32>, tensor<2x16xf32>, tensor<f32>, tensor<i64>) -> tensor<2x16xf32>
  %2 = ckopt.kernel_call @wide(%b, %db, %lr, %t) {offsets = array<i64: 64>, updates = array<i64: 0, 0>} : (tensor<2x16xf32>, tensor<2x16xf32>, tensor<f32>, tensor<i64>) -> tensor<2x16xf32>
  return %0, %2, %1 : tensor<16xf32>, tensor<2x16xf32>, tensor<2x16xf32>
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

// The second gradient takes the bytes of the first one, so that the first update cannot wait
// for the second; the third waits with it until the end, behind what does not touch their bytes.
// CHECK-LABEL: func.func @reused
// CHECK: kernel_call @neg(%arg0)
// CHECK: kernel_call @small(%arg1
// CHECK: kernel_call @neg(%arg0)
// CHECK: kernel_call @neg(%arg0)
// CHECK: kernel_call @k_joined_0(%arg2
// CHECK-NEXT: return
func.func @reused(%x: tensor<16xf32> {ckopt.offset = 0 : i64}, %a: tensor<16xf32> {ckopt.offset = 64 : i64}, %b: tensor<16xf32> {ckopt.offset = 128 : i64},
    %c: tensor<16xf32> {ckopt.offset = 192 : i64}, %lr: tensor<f32> {ckopt.offset = 256 : i64}, %t: tensor<i64> {ckopt.offset = 320 : i64})
    -> (tensor<16xf32> {ckopt.updates = 1 : i64}, tensor<16xf32> {ckopt.updates = 2 : i64}, tensor<16xf32> {ckopt.updates = 3 : i64}) attributes {ckopt.arena_bytes = 512 : i64} {
  %0 = ckopt.kernel_call @neg(%x) {offsets = array<i64: 384>} : (tensor<16xf32>) -> tensor<16xf32>
  %1 = ckopt.kernel_call @small(%a, %0, %lr, %t) {offsets = array<i64: 64>, updates = array<i64: 0, 0>} : (tensor<16xf32>, tensor<16xf32>, tensor<f32>, tensor<i64>) -> tensor<16xf32>
  %2 = ckopt.kernel_call @neg(%x) {offsets = array<i64: 384>} : (tensor<16xf32>) -> tensor<16xf32>
  %3 = ckopt.kernel_call @small(%b, %2, %lr, %t) {offsets = array<i64: 128>, updates = array<i64: 0, 0>} : (tensor<16xf32>, tensor<16xf32>, tensor<f32>, tensor<i64>) -> tensor<16xf32>
  %4 = ckopt.kernel_call @neg(%x) {offsets = array<i64: 448>} : (tensor<16xf32>) -> tensor<16xf32>
  %5 = ckopt.kernel_call @small(%c, %4, %lr, %t) {offsets = array<i64: 192>, updates = array<i64: 0, 0>} : (tensor<16xf32>, tensor<16xf32>, tensor<f32>, tensor<i64>) -> tensor<16xf32>
  return %1, %3, %5 : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
}

// -----

func.func private @small(%p: tensor<16xf32>, %g: tensor<16xf32>, %lr: tensor<f32>, %t: tensor<i64>) -> tensor<16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.sgd %p, %g, %lr, %t {momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<16xf32>, tensor<16xf32>, tensor<f32>, tensor<i64>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
func.func private @swap(%a: tensor<16xf32>, %b: tensor<16xf32>, %x: tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>) attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.moving_average %a, %b {momentum = 0.5 : f64} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %1 = ckopt.moving_average %b, %x {momentum = 0.5 : f64} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %0, %1 : tensor<16xf32>, tensor<16xf32>
}

// Two parts of a kernel of which one overwrites what the other reads stay one thread's, so this
// call is not joined with its like.
// CHECK-LABEL: func.func @parts
// CHECK-COUNT-2: kernel_call @swap
// CHECK-NOT: joined
func.func @parts(%a: tensor<16xf32> {ckopt.offset = 0 : i64}, %b: tensor<16xf32> {ckopt.offset = 64 : i64}, %c: tensor<16xf32> {ckopt.offset = 128 : i64},
    %d: tensor<16xf32> {ckopt.offset = 192 : i64}, %x: tensor<16xf32> {ckopt.offset = 256 : i64})
    -> (tensor<16xf32> {ckopt.updates = 0 : i64}, tensor<16xf32> {ckopt.updates = 1 : i64}, tensor<16xf32> {ckopt.updates = 2 : i64}, tensor<16xf32> {ckopt.updates = 3 : i64}) attributes {ckopt.arena_bytes = 320 : i64} {
  %0:2 = ckopt.kernel_call @swap(%a, %b, %x) {offsets = array<i64: 0, 64>, updates = array<i64: 0, 0, 1, 1>} : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>)
  %1:2 = ckopt.kernel_call @swap(%c, %d, %x) {offsets = array<i64: 128, 192>, updates = array<i64: 0, 0, 1, 1>} : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>)
  return %0#0, %0#1, %1#0, %1#1 : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
}
