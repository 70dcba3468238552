// Convolutions whose input has less than 8 channels are our own kernels on
// tensor cores, where libraries are optional: cuDNN has no fast kernel for them.
// They need no workspace of a library.
// RUN: ckopt-opt %s --annotate-kernels="target=cuda library-workspace=65536 own-beside-libraries matmul-precision=tf32" | FileCheck %s --check-prefixes=OWN,REST
// By vector units, or where libraries alone are asked for, they are left to them.
// RUN: ckopt-opt %s --annotate-kernels="target=cuda library-workspace=65536 own-beside-libraries" | FileCheck %s --check-prefixes=LIBRARY,REST
// RUN: ckopt-opt %s --annotate-kernels="target=cuda library-workspace=65536 matmul-precision=tf32" | FileCheck %s --check-prefixes=LIBRARY,REST

// OWN: kernel_call @image(%{{.*}}, %{{.*}}) :
// LIBRARY: kernel_call @image{{.*}}workspace = 65536 : i64
// REST: kernel_call @eight{{.*}}workspace = 65536 : i64
// REST: kernel_call @grouped{{.*}}workspace = 65536 : i64
func.func @step(%x: tensor<2x4x32x32xf32>, %w: tensor<16x4x3x3xf32>, %y: tensor<2x8x32x32xf32>, %v: tensor<16x8x3x3xf32>, %u: tensor<16x4x3x3xf32>) -> (tensor<2x16x30x30xf32>, tensor<2x16x30x30xf32>, tensor<2x16x30x30xf32>) {
  %0 = ckopt.kernel_call @image(%x, %w) : (tensor<2x4x32x32xf32>, tensor<16x4x3x3xf32>) -> tensor<2x16x30x30xf32>
  %1 = ckopt.kernel_call @eight(%y, %v) : (tensor<2x8x32x32xf32>, tensor<16x8x3x3xf32>) -> tensor<2x16x30x30xf32>
  %2 = ckopt.kernel_call @grouped(%y, %u) : (tensor<2x8x32x32xf32>, tensor<16x4x3x3xf32>) -> tensor<2x16x30x30xf32>
  return %0, %1, %2 : tensor<2x16x30x30xf32>, tensor<2x16x30x30xf32>, tensor<2x16x30x30xf32>
}
func.func private @image(%x: tensor<2x4x32x32xf32>, %w: tensor<16x4x3x3xf32>) -> tensor<2x16x30x30xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, groups = 1 : i64} : (tensor<2x4x32x32xf32>, tensor<16x4x3x3xf32>) -> tensor<2x16x30x30xf32>
  return %0 : tensor<2x16x30x30xf32>
}
func.func private @eight(%x: tensor<2x8x32x32xf32>, %w: tensor<16x8x3x3xf32>) -> tensor<2x16x30x30xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, groups = 1 : i64} : (tensor<2x8x32x32xf32>, tensor<16x8x3x3xf32>) -> tensor<2x16x30x30xf32>
  return %0 : tensor<2x16x30x30xf32>
}
func.func private @grouped(%x: tensor<2x8x32x32xf32>, %w: tensor<16x4x3x3xf32>) -> tensor<2x16x30x30xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, groups = 2 : i64} : (tensor<2x8x32x32xf32>, tensor<16x4x3x3xf32>) -> tensor<2x16x30x30xf32>
  return %0 : tensor<2x16x30x30xf32>
}
