// A scaled loss: the backward pass starts from the scale, gradients are divided by it. As a number it
// leaves no state; as a state it is halved where a gradient is not finite, and no update is made.
// RUN: ckopt-opt %s --autodiff=loss-scale=1024 | FileCheck %s --check-prefix=FIXED
// RUN: ckopt-opt %s --autodiff="loss-scale=1024 loss-scale-state" | FileCheck %s --check-prefix=STATE
// RUN: ckopt-opt %s --autodiff="loss-scale=1024 loss-scale-state" --optimizer="type=sgd clip-norm=1" | FileCheck %s --check-prefix=DYNAMIC
// RUN: ckopt-opt %s --autodiff="loss-scale=1024 loss-scale-state" --optimizer="type=lion loss-scale-growth=0" | FileCheck %s --check-prefix=STATIC
// RUN: ckopt-opt %s --autodiff="loss-scale=1024 loss-scale-state" --optimizer="type=sgd accumulate=2" | FileCheck %s --check-prefix=SUMS
// RUN: not ckopt-opt %s --autodiff=loss-scale=1000 2>&1 | FileCheck %s --check-prefix=POWER
// RUN: not ckopt-opt %s --autodiff=loss-scale=0 2>&1 | FileCheck %s --check-prefix=POWER
// POWER: the loss's scale must be a power of two between 2^-60 and 2^60
// RUN: not ckopt-opt %s --autodiff --optimizer=loss-scale-growth=-1 2>&1 | FileCheck %s --check-prefix=GROWTH
// GROWTH: the loss's scale grows after 0 (never) or more updates

// FIXED-LABEL: func.func @step(
// FIXED-NOT:   loss_scale
// FIXED:       %[[SEED:.*]] = ckopt.constant dense<1.024000e+03>
// FIXED:       %[[G:.*]] = ckopt.mul %{{.*}}, %[[SEED]]
// FIXED:       %[[BACK:.*]] = ckopt.constant dense<9.765625E-4>
// FIXED:       %[[D:.*]] = ckopt.mul %{{.*}}, %[[BACK]]
// FIXED:       return %{{.*}}, %[[D]]

// STATE-LABEL: func.func @step(
// STATE-SAME:  %[[S:[^:]*]]: tensor<f32> {ckopt.init = "1024", ckopt.name = "optimizer/loss_scale", ckopt.role = "optimizer_state"}
// STATE:       %[[BACK:.*]] = ckopt.reciprocal %[[S]]
// STATE:       %[[D:.*]] = ckopt.mul %{{.*}}, %[[BACK]]
// STATE:       return %{{.*}}, %[[D]]

// Gradients are judged before they are clipped. A skipped step is the optimizer's step 0.
// DYNAMIC-LABEL: func.func @step(
// DYNAMIC-SAME:  %[[S:[^:]*]]: tensor<f32> {ckopt.init = "1024"
// DYNAMIC-SAME:  %[[STEP:[^:]*]]: tensor<i64> {ckopt.name = "step"
// DYNAMIC-SAME:  %[[GOOD:[^:]*]]: tensor<f64> {ckopt.name = "optimizer/good_updates", ckopt.role = "optimizer_state"}
// DYNAMIC-SAME:  %[[SKIPPED:[^:]*]]: tensor<f64> {ckopt.name = "optimizer/skipped_updates", ckopt.role = "optimizer_state"}
// DYNAMIC:       %[[D:.*]] = ckopt.mul %{{.*}}, %{{.*}} : (tensor<4xf32>, tensor<f32>)
// DYNAMIC:       %[[ZERO:.*]] = ckopt.constant dense<0.000000e+00> : tensor<f32>
// DYNAMIC:       %[[NONE:.*]] = ckopt.mul %[[D]], %[[ZERO]]
// DYNAMIC:       %[[SUM:.*]] = ckopt.reduce sum %[[NONE]]
// DYNAMIC:       %[[FINITE:.*]] = ckopt.compare {{ *}}eq
// DYNAMIC:       %[[T:.*]] = ckopt.cast %[[STEP]]
// DYNAMIC:       %[[MADE:.*]] = ckopt.sub %[[T]], %[[SKIPPED]]
// DYNAMIC:       %[[OWN:.*]] = ckopt.select %[[FINITE]], %[[MADE]],
// DYNAMIC:       %[[NUMBER:.*]] = ckopt.cast %[[OWN]] : (tensor<f64>) -> tensor<i64>
// DYNAMIC:       ckopt.sqrt
// DYNAMIC:       ckopt.assign %[[SKIPPED]],
// DYNAMIC:       ckopt.assign %[[GOOD]],
// DYNAMIC:       ckopt.assign %[[S]],
// DYNAMIC:       ckopt.sgd %{{.*}}, %{{.*}}, %{{.*}}, %[[NUMBER]] {{{.*}}skips

// Optimizers of elementwise ops select old or new values. A fixed scale stays.
// STATIC-LABEL: func.func @step(
// STATIC-SAME:  %[[W:[^:]*]]: tensor<4xf32> {ckopt.name = "w"
// STATIC-SAME:  %[[S:[^:]*]]: tensor<f32> {ckopt.init = "1024"
// STATIC:       %[[FINITE:.*]] = ckopt.compare {{ *}}eq
// STATIC-NOT:   ckopt.assign %[[S]]
// STATIC:       %[[NEW:.*]] = ckopt.select %[[FINITE]], %{{.*}}, %[[W]]
// STATIC:       ckopt.assign %[[W]], %[[NEW]]

// Sums that are not finite are cleared, too.
// SUMS-LABEL: func.func @accumulate(
// SUMS-NOT:   ckopt.assign
// SUMS-LABEL: func.func @step(
// SUMS-SAME:  %[[SUM:[^:]*]]: tensor<4xf32> {ckopt.name = "w/grad_sum"
// SUMS:       %[[NONE:.*]] = ckopt.constant dense<0.000000e+00> : tensor<4xf32>
// SUMS:       ckopt.assign %[[SUM]], %[[NONE]]
func.func @forward(
    %x: tensor<4xf32> {ckopt.name = "x", ckopt.role = "input"},
    %w: tensor<4xf32> {ckopt.name = "w", ckopt.role = "parameter"})
    -> (tensor<f32> {ckopt.name = "loss"}) {
  %p = ckopt.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %e = ckopt.exp %p : (tensor<4xf32>) -> tensor<4xf32>
  %loss = ckopt.reduce sum %e {axes = array<i64: 0>, keepdims = false} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
