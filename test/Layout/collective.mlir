// A sum over ranks takes each tensor in the order that it has, and hands it on:
// the gradient of a convolution's weight is not copied on its way.
// RUN: ckopt-opt %s --layout | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-NOT: relayout
// CHECK: %[[DW:.*]] = ckopt.conv_weight_grad {{.*}} -> tensor<8x8x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>
// CHECK: %[[SUMS:.*]]:2 = ckopt.all_reduce %[[DW]], %{{.*}} {ranks = 2 : i64} : (tensor<8x8x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<8xf32>) -> (tensor<8x8x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<8xf32>)
// CHECK: ckopt.sgd %{{.*}}, %[[SUMS]]#0
// CHECK-NOT: relayout
func.func @f(%x: tensor<2x8x6x6xf32> {ckopt.name = "x", ckopt.role = "input"},
             %w: tensor<8x8x3x3xf32> {ckopt.name = "w", ckopt.role = "parameter"},
             %b: tensor<8xf32> {ckopt.name = "b", ckopt.role = "input"},
             %lr: tensor<f32> {ckopt.name = "lr", ckopt.role = "learning_rate"},
             %step: tensor<i64> {ckopt.name = "step", ckopt.role = "step"})
    -> (tensor<8x8x3x3xf32> {ckopt.name = "w", ckopt.updates = 1 : i64}, tensor<8xf32> {ckopt.name = "s"}) {
  %y = ckopt.conv %x, %w {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x8x6x6xf32>, tensor<8x8x3x3xf32>) -> tensor<2x8x6x6xf32>
  %dw = ckopt.conv_weight_grad %x, %y {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x8x6x6xf32>, tensor<2x8x6x6xf32>) -> tensor<8x8x3x3xf32>
  %0:2 = ckopt.all_reduce %dw, %b {ranks = 2 : i64} : (tensor<8x8x3x3xf32>, tensor<8xf32>) -> (tensor<8x8x3x3xf32>, tensor<8xf32>)
  %1 = ckopt.sgd %w, %0#0, %lr, %step {momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<8x8x3x3xf32>, tensor<8x8x3x3xf32>, tensor<f32>, tensor<i64>) -> tensor<8x8x3x3xf32>
  return %1, %0#1 : tensor<8x8x3x3xf32>, tensor<8xf32>
}
