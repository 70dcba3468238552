// Shows how convolutions get the input channels that kernels load at once: where channels lie
// innermost, groups are one, and at most a third is added; gradients of weights lose them again.
// RUN: ckopt-opt %s --pass-pipeline="builtin.module(func.func(widen-channels{group=4}))" | FileCheck %s
// RUN: ckopt-opt %s --pass-pipeline="builtin.module(func.func(widen-channels{group=0}))" | FileCheck %s --check-prefix=NONE
// NONE-NOT: ckopt.pad

// CHECK-LABEL: func.func @image
// CHECK-DAG: %[[X:.*]] = ckopt.pad %arg0 {high = array<i64: 0, 1, 0, 0>{{.*}}} : (tensor<2x3x8x8xf32, [[L:.*]]>) -> tensor<2x4x8x8xf32, [[L]]>
// CHECK-DAG: %[[W:.*]] = ckopt.pad %arg1 {high = array<i64: 0, 1, 0, 0>{{.*}}} : (tensor<8x3x3x3xf32, [[L]]>) -> tensor<8x4x3x3xf32, [[L]]>
// CHECK: ckopt.conv %[[X]], %[[W]]
// CHECK: %[[OWN:.*]] = ckopt.pad %arg0
// CHECK: %[[DW:.*]] = ckopt.conv_weight_grad %arg2, %[[OWN]] {{.*}} -> tensor<8x4x3x3xf32, [[L]]>
// CHECK: ckopt.slice %[[DW]] {sizes = array<i64: 8, 3, 3, 3>, starts = array<i64: 0, 0, 0, 0>, steps = array<i64: 1, 1, 1, 1>}
// CHECK: ckopt.conv_input_grad %arg2, %arg1
func.func @image(%x: tensor<2x3x8x8xf32, #ckopt.layout<[0, 2, 3, 1]>>, %w: tensor<8x3x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>, %dy: tensor<2x8x8x8xf32, #ckopt.layout<[0, 2, 3, 1]>>)
    -> (tensor<2x8x8x8xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<8x3x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x3x8x8xf32, #ckopt.layout<[0, 2, 3, 1]>>) {
  %0 = ckopt.conv %x, %w {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x3x8x8xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<8x3x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<2x8x8x8xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %1 = ckopt.conv_weight_grad %dy, %x {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x8x8x8xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x3x8x8xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<8x3x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %2 = ckopt.conv_input_grad %dy, %w {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x8x8x8xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<8x3x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<2x3x8x8xf32, #ckopt.layout<[0, 2, 3, 1]>>
  return %0, %1, %2 : tensor<2x8x8x8xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<8x3x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x3x8x8xf32, #ckopt.layout<[0, 2, 3, 1]>>
}

// One channel would be four times the products, two twice; eight are a multiple; images whose
// channels lie outermost are read along their rows.
// CHECK-LABEL: func.func @others
// CHECK-NOT: ckopt.pad
func.func @others(%a: tensor<2x2x8x8xf32, #ckopt.layout<[0, 2, 3, 1]>>, %b: tensor<8x2x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>,
    %c: tensor<2x8x8x8xf32, #ckopt.layout<[0, 2, 3, 1]>>, %d: tensor<8x8x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>,
    %e: tensor<2x3x8x8xf32>, %f: tensor<8x3x3x3xf32>)
    -> (tensor<2x8x8x8xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x8x8x8xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x8x8x8xf32>) {
  %0 = ckopt.conv %a, %b {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x2x8x8xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<8x2x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<2x8x8x8xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %1 = ckopt.conv %c, %d {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x8x8x8xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<8x8x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<2x8x8x8xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %2 = ckopt.conv %e, %f {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x3x8x8xf32>, tensor<8x3x3x3xf32>) -> tensor<2x8x8x8xf32>
  return %0, %1, %2 : tensor<2x8x8x8xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x8x8x8xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x8x8x8xf32>
}

// Groups stay as they are, and so do gradients of their weights.
// CHECK-LABEL: func.func @groups
// CHECK-NOT: ckopt.pad
// CHECK-NOT: ckopt.slice
func.func @groups(%x: tensor<2x3x8x8xf32, #ckopt.layout<[0, 2, 3, 1]>>, %dy: tensor<2x3x8x8xf32, #ckopt.layout<[0, 2, 3, 1]>>, %y: tensor<2x24x8x8xf32, #ckopt.layout<[0, 2, 3, 1]>>)
    -> (tensor<3x1x3x3xf32>, tensor<24x1x3x3xf32>) {
  %0 = ckopt.conv_weight_grad %dy, %x {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 3 : i64} : (tensor<2x3x8x8xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x3x8x8xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<3x1x3x3xf32>
  %1 = ckopt.conv_weight_grad %y, %y {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 24 : i64} : (tensor<2x24x8x8xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x24x8x8xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<24x1x3x3xf32>
  return %0, %1 : tensor<3x1x3x3xf32>, tensor<24x1x3x3xf32>
}
