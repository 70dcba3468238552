// A weight of a convolution that ranks share is channels-last, gathered, in its
// shards and on the way of its gradient: nothing is copied.
// RUN: ckopt-opt %s --layout | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-SAME: %[[S:[^:]*]]: tensor<4x8x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>> {ckopt.name = "w"
// CHECK-NOT: relayout
// CHECK: %[[W:.*]] = ckopt.all_gather %[[S]] {{.*}} -> tensor<7x8x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>
// CHECK: %[[DW:.*]] = ckopt.conv_weight_grad {{.*}} -> tensor<7x8x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>
// CHECK: %[[G:.*]] = ckopt.reduce_scatter %[[DW]] {{.*}} -> tensor<4x8x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>
// CHECK: ckopt.sgd %[[S]], %[[G]]
// CHECK-NOT: relayout
func.func @f(%x: tensor<2x8x6x6xf32> {ckopt.name = "x", ckopt.role = "input"},
             %w: tensor<4x8x3x3xf32> {ckopt.name = "w", ckopt.role = "parameter", ckopt.shards = 2 : i64, ckopt.whole = tensor<7x8x3x3xf32>},
             %lr: tensor<f32> {ckopt.name = "lr", ckopt.role = "learning_rate"},
             %step: tensor<i64> {ckopt.name = "step", ckopt.role = "step"})
    -> (tensor<4x8x3x3xf32> {ckopt.name = "w", ckopt.updates = 1 : i64}) {
  %full = ckopt.all_gather %w {ranks = 2 : i64, rows = array<i64: 7>} : (tensor<4x8x3x3xf32>) -> tensor<7x8x3x3xf32>
  %y = ckopt.conv %x, %full {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x8x6x6xf32>, tensor<7x8x3x3xf32>) -> tensor<2x7x6x6xf32>
  %dw = ckopt.conv_weight_grad %y, %x {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x7x6x6xf32>, tensor<2x8x6x6xf32>) -> tensor<7x8x3x3xf32>
  %g = ckopt.reduce_scatter %dw {ranks = 2 : i64} : (tensor<7x8x3x3xf32>) -> tensor<4x8x3x3xf32>
  %1 = ckopt.sgd %w, %g, %lr, %step {momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<4x8x3x3xf32>, tensor<4x8x3x3xf32>, tensor<f32>, tensor<i64>) -> tensor<4x8x3x3xf32>
  return %1 : tensor<4x8x3x3xf32>
}
