// What has no code is refused where it stands, all of it, before anything is made.
// RUN: ckopt-opt %s --annotate-kernels --split-input-file --verify-diagnostics

// expected-error @+1 {{cannot be a kernel of kind 'magic'}}
func.func private @kind(%x: tensor<4xf32>) -> tensor<4xf32> attributes {ckopt.kernel = "magic"} {
  return %x : tensor<4xf32>
}

// -----

func.func private @composite(%x: tensor<2x3x4x4xf32>, %s: tensor<3xf32>) -> tensor<2x3x4x4xf32> attributes {ckopt.kernel = "elementwise"} {
  // expected-error @+1 {{cannot be part of an elementwise kernel}}
  %0:3 = ckopt.batch_norm %x, %s, %s {epsilon = 1.0e-5 : f64} : (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>)
  return %0#0 : tensor<2x3x4x4xf32>
}

// -----

// expected-error @+1 {{results of an elementwise kernel must have one shape}}
func.func private @shapes(%x: tensor<4xf32>, %y: tensor<5xf32>) -> (tensor<4xf32>, tensor<5xf32>) attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = ckopt.neg %y : (tensor<5xf32>) -> tensor<5xf32>
  return %0, %1 : tensor<4xf32>, tensor<5xf32>
}

// -----

func.func private @axes(%x: tensor<4x5xf32>) -> (tensor<4xf32>, tensor<5xf32>) attributes {ckopt.kernel = "reduction"} {
  %0 = ckopt.reduce sum %x {axes = array<i64: 1>, keepdims = false} : (tensor<4x5xf32>) -> tensor<4xf32>
  // expected-error @+1 {{reductions of one kernel must share shape and axes}}
  %1 = ckopt.reduce sum %x {axes = array<i64: 0>, keepdims = false} : (tensor<4x5xf32>) -> tensor<5xf32>
  return %0, %1 : tensor<4xf32>, tensor<5xf32>
}

// -----

func.func private @batches(%x: tensor<2x1x3x4x5xf32>, %y: tensor<1x6x3x5x4xf32>) -> tensor<2x6x3x4x4xf32> attributes {ckopt.kernel = "library"} {
  // expected-error @+1 {{more than two batch dimensions that cannot be merged}}
  %0 = ckopt.matmul %x, %y : (tensor<2x1x3x4x5xf32>, tensor<1x6x3x5x4xf32>) -> tensor<2x6x3x4x4xf32>
  return %0 : tensor<2x6x3x4x4xf32>
}

// -----

func.func private @layouts(%x: tensor<2x16x8x8xf32, #ckopt.layout<[0, 2, 3, 1]>>, %w: tensor<32x16x1x1xf32>) -> tensor<2x32x8x8xf32> attributes {ckopt.kernel = "library"} {
  // expected-error @+1 {{must be row-major or both channels-last}}
  %0 = ckopt.conv %x, %w {strides = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x16x8x8xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<32x16x1x1xf32>) -> tensor<2x32x8x8xf32>
  return %0 : tensor<2x32x8x8xf32>
}

// -----

func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{which is no kernel}}
  %0 = ckopt.kernel_call @plain(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @plain(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
