// Which values become channels-last, and where copies are put.
// RUN: ckopt-opt %s --layout --split-input-file | FileCheck %s
// RUN: ckopt-opt %s --layout=layout=none --split-input-file | FileCheck %s --check-prefix=NONE

// NONE-NOT: #ckopt.layout

// A convolution's activations, and what is connected to them point by point, are
// channels-last; weights, arguments and results are not.
// CHECK-LABEL: func.func @conv
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x8x8xf32>, %[[W:.*]]: tensor<4x3x3x3xf32>, %[[B:.*]]: tensor<1x4x1x1xf32>) -> tensor<2x4x8x8xf32>
// CHECK: %[[IN:.*]] = ckopt.relayout %[[X]] : (tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32, #ckopt.layout<[0, 2, 3, 1]>>
// CHECK: %[[C:.*]] = ckopt.conv %[[IN]], %[[W]]
// CHECK: %[[S:.*]] = ckopt.add %[[C]], %[[B]] : (tensor<2x4x8x8xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<1x4x1x1xf32>) -> tensor<2x4x8x8xf32, #ckopt.layout<[0, 2, 3, 1]>>
// CHECK: %[[R:.*]] = ckopt.relu %[[S]]
// CHECK: %[[OUT:.*]] = ckopt.relayout %[[R]]
// CHECK: return %[[OUT]] : tensor<2x4x8x8xf32>
func.func @conv(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %b: tensor<1x4x1x1xf32>) -> tensor<2x4x8x8xf32> {
  %0 = ckopt.conv %x, %w {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 1} : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x8x8xf32>
  %1 = ckopt.add %0, %b : (tensor<2x4x8x8xf32>, tensor<1x4x1x1xf32>) -> tensor<2x4x8x8xf32>
  %2 = ckopt.relu %1 : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  return %2 : tensor<2x4x8x8xf32>
}

// -----

// One channel: both orders are the same bytes, so the input needs no copy. After global
// pooling the spatial dimensions are 1: the flatten needs none either.
// CHECK-LABEL: func.func @unit
// CHECK-NOT: ckopt.relayout
// CHECK: ckopt.conv %arg0, %arg1 {{.*}} : (tensor<2x1x8x8xf32>, tensor<4x1x3x3xf32>) -> tensor<2x4x6x6xf32, #ckopt.layout<[0, 2, 3, 1]>>
// CHECK: ckopt.avg_pool {{.*}} -> tensor<2x4x1x1xf32>
// CHECK: ckopt.reshape {{.*}} : (tensor<2x4x1x1xf32>) -> tensor<2x4xf32>
// CHECK-NOT: ckopt.relayout
func.func @unit(%x: tensor<2x1x8x8xf32>, %w: tensor<4x1x3x3xf32>) -> tensor<2x4xf32> {
  %0 = ckopt.conv %x, %w {strides = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 1} : (tensor<2x1x8x8xf32>, tensor<4x1x3x3xf32>) -> tensor<2x4x6x6xf32>
  %1 = ckopt.avg_pool %0 {kernel = array<i64: 6, 6>, strides = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>} : (tensor<2x4x6x6xf32>) -> tensor<2x4x1x1xf32>
  %2 = ckopt.reshape %1 : (tensor<2x4x1x1xf32>) -> tensor<2x4xf32>
  return %2 : tensor<2x4xf32>
}

// -----

// A flatten of real spatial dimensions speaks of row-major elements: one copy before it.
// Reductions read what they get.
// CHECK-LABEL: func.func @flatten
// CHECK: %[[C:.*]] = ckopt.conv
// CHECK: %[[M:.*]] = ckopt.relayout %[[C]]
// CHECK: ckopt.reshape %[[M]]
// CHECK: ckopt.reduce sum %[[C]]
func.func @flatten(%x: tensor<2x1x8x8xf32>, %w: tensor<4x1x3x3xf32>) -> (tensor<2x144xf32>, tensor<4xf32>) {
  %0 = ckopt.conv %x, %w {strides = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 1} : (tensor<2x1x8x8xf32>, tensor<4x1x3x3xf32>) -> tensor<2x4x6x6xf32>
  %1 = ckopt.reshape %0 : (tensor<2x4x6x6xf32>) -> tensor<2x144xf32>
  %2 = ckopt.reduce sum %0 {axes = array<i64: 0, 2, 3>, keepdims = false} : (tensor<2x4x6x6xf32>) -> tensor<4xf32>
  return %1, %2 : tensor<2x144xf32>, tensor<4xf32>
}

// -----

// A transpose beside a product is a view: the product reads heads where they lie, and writes
// its result where the reshape after it reads.
// CHECK-LABEL: func.func @heads
// CHECK: ckopt.transpose %arg0 {{.*}} -> tensor<2x4x8x16xf32, #ckopt.layout<[0, 2, 1, 3]>>
// CHECK: ckopt.matmul {{.*}} -> tensor<2x4x8x16xf32, #ckopt.layout<[0, 2, 1, 3]>>
// CHECK: ckopt.transpose {{.*}} : (tensor<2x4x8x16xf32, #ckopt.layout<[0, 2, 1, 3]>>) -> tensor<2x8x4x16xf32>
func.func @heads(%v: tensor<2x8x4x16xf32>, %p: tensor<2x4x8x8xf32>) -> tensor<16x64xf32> {
  %0 = ckopt.transpose %v {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %1 = ckopt.matmul %p, %0 : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %2 = ckopt.transpose %1 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  %3 = ckopt.reshape %2 : (tensor<2x8x4x16xf32>) -> tensor<16x64xf32>
  return %3 : tensor<16x64xf32>
}

// -----

// What is no tensor passes through.
// CHECK-LABEL: func.func @index
// CHECK: ckopt.relayout
// CHECK: return %{{.*}}, %arg2 : tensor<2x4x6x6xf32>, index
func.func @index(%x: tensor<2x1x8x8xf32>, %w: tensor<4x1x3x3xf32>, %i: index) -> (tensor<2x4x6x6xf32>, index) {
  %0 = ckopt.conv %x, %w {strides = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 1} : (tensor<2x1x8x8xf32>, tensor<4x1x3x3xf32>) -> tensor<2x4x6x6xf32>
  return %0, %i : tensor<2x4x6x6xf32>, index
}

// A library reads what a generated kernel would compute: the constant gradient
// of a mean behind a convolution is put in the convolution's order.
// CHECK-LABEL: func @constant_gradient(
// CHECK: %[[G:.*]] = ckopt.relayout %{{.*}} -> tensor<2x3x6x6xf32, #ckopt.layout<[0, 2, 3, 1]>>
// CHECK: ckopt.conv_weight_grad %[[G]], %{{.*}} : (tensor<2x3x6x6xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x2x6x6xf32, #ckopt.layout<[0, 2, 3, 1]>>)
func.func @constant_gradient(%x: tensor<2x2x6x6xf32>) -> tensor<3x2x1x1xf32> {
  %g = ckopt.constant dense<0.25> : tensor<2x3x6x6xf32>
  %0 = ckopt.conv_weight_grad %g, %x {dilations = array<i64: 1, 1>, groups = 1 : i64, pads_high = array<i64: 0, 0>, pads_low = array<i64: 0, 0>, strides = array<i64: 1, 1>} : (tensor<2x3x6x6xf32>, tensor<2x2x6x6xf32>) -> tensor<3x2x1x1xf32>
  return %0 : tensor<3x2x1x1xf32>
}
