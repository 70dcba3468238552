// What fuse refuses, with the place and what to do.
// RUN: ckopt-opt %s --fuse --split-input-file --verify-diagnostics

// An op of another dialect has no kernel; all of them are named at once.
func.func @foreign(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{has no kernel kind; fuse works on ckopt ops only}}
  %0 = arith.addf %x, %x : tensor<4xf32>
  // expected-error @+1 {{has no kernel kind; fuse works on ckopt ops only}}
  %1 = arith.mulf %0, %x : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// Fusing twice would nest kernels.
func.func private @k(%x: tensor<4xf32>) -> tensor<4xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{is a kernel call already; fuse runs once}}
  %0 = ckopt.kernel_call @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Only arguments hold state.
func.func @state(%x: tensor<4xf32>, %lr: tensor<f32>, %step: tensor<i64>) -> tensor<4xf32> {
  %p = ckopt.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @+1 {{updates a value that is no argument; only arguments hold state}}
  %0 = ckopt.sgd %p, %x, %lr, %step {momentum = 0.0, dampening = 0.0, weight_decay = 0.0} : (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i64>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// An old value that is read after the new one cannot be overwritten in place.
func.func @circle(%w: tensor<8x8xf32>, %x: tensor<8x8xf32>, %lr: tensor<f32>, %step: tensor<i64>) -> tensor<8x8xf32> {
  // expected-error @+1 {{the old value of this state is read after a use of the new one}}
  %n = ckopt.sgd %w, %x, %lr, %step {momentum = 0.0, dampening = 0.0, weight_decay = 0.0} : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>, tensor<i64>) -> tensor<8x8xf32>
  %p = ckopt.matmul %n, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %p : tensor<8x8xf32>
}

// -----

// A reshape speaks of row-major elements.
func.func @layout(%x: tensor<2x3x4x5xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<120xf32> {
  // expected-error @+1 {{reshape needs row-major operand and result; run layout before fuse}}
  %0 = ckopt.reshape %x : (tensor<2x3x4x5xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<120xf32>
  return %0 : tensor<120xf32>
}

// -----

// expected-error @+1 {{fuse needs a function of one block}}
func.func @blocks(%x: tensor<4xf32>) -> tensor<4xf32> {
  cf.br ^bb1
^bb1:
  return %x : tensor<4xf32>
}
