// Layouts, kernels and a recomputing plan change no value: the reference interpreter computes
// the same bits before and after.
// RUN: ckopt-opt %s --test-reference=function=step | grep ^result > %t.before
// RUN: ckopt-opt %s --layout --fuse --remat=budget=min --plan-memory --test-reference=function=step | grep ^result > %t.after
// RUN: diff %t.before %t.after
// RUN: FileCheck %s < %t.after
// CHECK: result 0: tensor<f32>
// CHECK: result 1: tensor<4x2x3x3xf32>

func.func @step(%x: tensor<2x2x6x6xf32>, %w: tensor<4x2x3x3xf32> {ckopt.role = "parameter"}, %lr: tensor<f32>, %step: tensor<i64>)
    -> (tensor<f32>, tensor<4x2x3x3xf32> {ckopt.updates = 1 : i64}) {
  %zero = ckopt.constant dense<0.0> : tensor<f32>
  %eps = ckopt.constant dense<1.0e-5> : tensor<f32>
  %c = ckopt.conv %x, %w {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 1} : (tensor<2x2x6x6xf32>, tensor<4x2x3x3xf32>) -> tensor<2x4x6x6xf32>
  %mean, %variance = ckopt.moments %c {axes = array<i64: 0, 2, 3>} : (tensor<2x4x6x6xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %ve = ckopt.add %variance, %eps : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %rstd = ckopt.rsqrt %ve : (tensor<4xf32>) -> tensor<4xf32>
  %m4 = ckopt.reshape %mean : (tensor<4xf32>) -> tensor<1x4x1x1xf32>
  %r4 = ckopt.reshape %rstd : (tensor<4xf32>) -> tensor<1x4x1x1xf32>
  %d = ckopt.sub %c, %m4 : (tensor<2x4x6x6xf32>, tensor<1x4x1x1xf32>) -> tensor<2x4x6x6xf32>
  %n = ckopt.mul %d, %r4 : (tensor<2x4x6x6xf32>, tensor<1x4x1x1xf32>) -> tensor<2x4x6x6xf32>
  %y = ckopt.relu %n : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %f = ckopt.reshape %y : (tensor<2x4x6x6xf32>) -> tensor<2x144xf32>
  %q = ckopt.mul %f, %f : (tensor<2x144xf32>, tensor<2x144xf32>) -> tensor<2x144xf32>
  %loss = ckopt.reduce sum %q {axes = array<i64: 0, 1>, keepdims = false} : (tensor<2x144xf32>) -> tensor<f32>
  %g2 = ckopt.add %f, %f : (tensor<2x144xf32>, tensor<2x144xf32>) -> tensor<2x144xf32>
  %gy = ckopt.reshape %g2 : (tensor<2x144xf32>) -> tensor<2x4x6x6xf32>
  %mask = ckopt.compare gt %y, %zero : (tensor<2x4x6x6xf32>, tensor<f32>) -> tensor<2x4x6x6xi1>
  %g = ckopt.select %mask, %gy, %zero : (tensor<2x4x6x6xi1>, tensor<2x4x6x6xf32>, tensor<f32>) -> tensor<2x4x6x6xf32>
  %s = ckopt.reduce mean %g {axes = array<i64: 0, 2, 3>, keepdims = true} : (tensor<2x4x6x6xf32>) -> tensor<1x4x1x1xf32>
  %gn = ckopt.mul %g, %n : (tensor<2x4x6x6xf32>, tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %t = ckopt.reduce mean %gn {axes = array<i64: 0, 2, 3>, keepdims = true} : (tensor<2x4x6x6xf32>) -> tensor<1x4x1x1xf32>
  %u = ckopt.sub %g, %s : (tensor<2x4x6x6xf32>, tensor<1x4x1x1xf32>) -> tensor<2x4x6x6xf32>
  %v = ckopt.mul %n, %t : (tensor<2x4x6x6xf32>, tensor<1x4x1x1xf32>) -> tensor<2x4x6x6xf32>
  %z = ckopt.sub %u, %v : (tensor<2x4x6x6xf32>, tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %gc = ckopt.mul %z, %r4 : (tensor<2x4x6x6xf32>, tensor<1x4x1x1xf32>) -> tensor<2x4x6x6xf32>
  %gw = ckopt.conv_weight_grad %gc, %x {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 1} : (tensor<2x4x6x6xf32>, tensor<2x2x6x6xf32>) -> tensor<4x2x3x3xf32>
  %nw = ckopt.sgd %w, %gw, %lr, %step {momentum = 0.0, dampening = 0.0, weight_decay = 0.0} : (tensor<4x2x3x3xf32>, tensor<4x2x3x3xf32>, tensor<f32>, tensor<i64>) -> tensor<4x2x3x3xf32>
  return %loss, %nw : tensor<f32>, tensor<4x2x3x3xf32>
}
