// Convolutions and pooling keep what the backward pass needs and no more: the
// pooling's index instead of its input, dropout nothing at all.
// RUN: ckopt-opt %s --attach-loss --autodiff --canonicalize --cse | FileCheck %s

// CHECK-LABEL: func.func @step(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<2x3x8x8xf32>
// CHECK-SAME:    %[[W:[^:]*]]: tensor<4x3x3x3xf32>
func.func @forward(
    %x: tensor<2x3x8x8xf32> {ckopt.name = "x", ckopt.role = "input"},
    %w: tensor<4x3x3x3xf32> {ckopt.name = "w", ckopt.role = "parameter"},
    %f: tensor<64x10xf32> {ckopt.name = "f", ckopt.role = "parameter"},
    %seed: tensor<i64> {ckopt.name = "seed", ckopt.role = "seed"},
    %step: tensor<i64> {ckopt.name = "step", ckopt.role = "step"})
    -> tensor<2x10xf32> {
  // CHECK: %{{[^,]*}}, %[[INDEX:.*]] = ckopt.max_pool
  // CHECK: ckopt.dropout %{{.*}}, %[[SEED:.*]], %[[STEP:.*]] {ratio = 2.500000e-01 : f64, site = 5 : i64}
  // CHECK: ckopt.cross_entropy_grad
  // CHECK: ckopt.dropout %{{.*}}, %[[SEED]], %[[STEP]] {ratio = 2.500000e-01 : f64, site = 5 : i64}
  // CHECK: %[[P:.*]] = ckopt.max_pool_grad %{{.*}}, %[[INDEX]]
  // CHECK: ckopt.conv_weight_grad %[[P]], %[[X]]
  // No gradient of the data:
  // CHECK-NOT: conv_input_grad
  %c = ckopt.conv %x, %w {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64}
    : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x8x8xf32>
  %p, %i = ckopt.max_pool %c {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>}
    : (tensor<2x4x8x8xf32>) -> (tensor<2x4x4x4xf32>, tensor<2x4x4x4xi8>)
  %d = ckopt.dropout %p, %seed, %step {ratio = 0.25, site = 5 : i64}
    : (tensor<2x4x4x4xf32>, tensor<i64>, tensor<i64>) -> tensor<2x4x4x4xf32>
  %r = ckopt.reshape %d : (tensor<2x4x4x4xf32>) -> tensor<2x64xf32>
  %y = ckopt.matmul %r, %f : (tensor<2x64xf32>, tensor<64x10xf32>) -> tensor<2x10xf32>
  return %y : tensor<2x10xf32>
}
