// Weights lie as the convolutions want them, with what has their shape; named arguments and results
// are converted by the runtime.
// RUN: ckopt-opt %s --layout --split-input-file 2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks
// RUN: ckopt-opt %s --layout=layout=none --split-input-file 2>&1 | FileCheck %s --check-prefix=NONE
// NONE-NOT: #ckopt.layout

// The image, the weight, its velocity and its gradient: all channels-last, and no copy.
// REMARK: remark: layout of 'step': no relayout, no transpose (0 more are views)
// CHECK-LABEL: func.func @step
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2x3x8x8xf32, #ckopt.layout<[0, 2, 3, 1]>> {ckopt.name = "x"
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<4x3x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>> {ckopt.name = "w"
// CHECK-SAME: %[[V:[a-z0-9]+]]: tensor<4x3x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>> {ckopt.name = "w/momentum"
// CHECK-SAME: -> (tensor<2x4x6x6xf32, #ckopt.layout<[0, 2, 3, 1]>> {ckopt.name = "y"}, tensor<4x3x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>> {ckopt.updates = 1
// CHECK-NOT: relayout
// CHECK: ckopt.conv %[[X]], %[[W]]
// CHECK: %[[G:.*]] = ckopt.conv_weight_grad {{.*}} -> tensor<4x3x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>
// CHECK: %[[S:.*]] = ckopt.mul %[[G]]
// CHECK: ckopt.sgd %[[W]], %[[S]], {{.*}} velocity %[[V]]
// CHECK-NOT: relayout
// The evaluation has the same argument, so the same type.
// CHECK-LABEL: func.func @eval
// CHECK-SAME: tensor<4x3x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>> {ckopt.name = "w"}
func.func @step(%x: tensor<2x3x8x8xf32> {ckopt.name = "x", ckopt.role = "input"}, %w: tensor<4x3x3x3xf32> {ckopt.name = "w", ckopt.role = "parameter"}, %v: tensor<4x3x3x3xf32> {ckopt.name = "w/momentum", ckopt.role = "optimizer_state"}, %lr: tensor<f32>, %t: tensor<i64>)
    -> (tensor<2x4x6x6xf32> {ckopt.name = "y"}, tensor<4x3x3x3xf32> {ckopt.updates = 1 : i64}, tensor<4x3x3x3xf32> {ckopt.updates = 2 : i64}) {
  %half = ckopt.constant dense<0.5> : tensor<f32>
  %y = ckopt.conv %x, %w {strides = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 1} : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32>
  %g = ckopt.conv_weight_grad %y, %x {strides = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 1} : (tensor<2x4x6x6xf32>, tensor<2x3x8x8xf32>) -> tensor<4x3x3x3xf32>
  %s = ckopt.mul %g, %half : (tensor<4x3x3x3xf32>, tensor<f32>) -> tensor<4x3x3x3xf32>
  %nw, %nv = ckopt.sgd %w, %s, %lr, %t velocity %v {momentum = 0.9, dampening = 0.0, weight_decay = 0.0} : (tensor<4x3x3x3xf32>, tensor<4x3x3x3xf32>, tensor<f32>, tensor<i64>, tensor<4x3x3x3xf32>) -> (tensor<4x3x3x3xf32>, tensor<4x3x3x3xf32>)
  return %y, %nw, %nv : tensor<2x4x6x6xf32>, tensor<4x3x3x3xf32>, tensor<4x3x3x3xf32>
}
func.func @eval(%w: tensor<4x3x3x3xf32> {ckopt.name = "w"}) -> (tensor<4x1x1x1xf32> {ckopt.name = "sum"}) {
  %0 = ckopt.reduce sum %w {axes = array<i64: 1, 2, 3>, keepdims = true} : (tensor<4x3x3x3xf32>) -> tensor<4x1x1x1xf32>
  return %0 : tensor<4x1x1x1xf32>
}

// -----

// One function reads the weight as a matrix, so it stays row-major in all, with its momentum; the
// other weight does not mind.
// CHECK-LABEL: func.func @step
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<4x3x3x3xf32> {ckopt.name = "w"}, %{{.*}}: tensor<4x3x3x3xf32> {ckopt.name = "w/momentum"}
// CHECK-SAME: tensor<5x4x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>> {ckopt.name = "u"}
// CHECK: ckopt.conv {{.*}}, %[[W]]
// CHECK: ckopt.conv_weight_grad {{.*}} -> tensor<4x3x3x3xf32>
// CHECK: ckopt.sgd %[[W]], {{.*}} -> (tensor<4x3x3x3xf32>, tensor<4x3x3x3xf32>)
// CHECK-LABEL: func.func @eval
// CHECK-SAME: tensor<4x3x3x3xf32> {ckopt.name = "w"}
func.func @step(%x: tensor<2x3x8x8xf32> {ckopt.name = "x"}, %w: tensor<4x3x3x3xf32> {ckopt.name = "w"}, %v: tensor<4x3x3x3xf32> {ckopt.name = "w/momentum"}, %u: tensor<5x4x3x3xf32> {ckopt.name = "u"}, %lr: tensor<f32>, %t: tensor<i64>)
    -> (tensor<2x5x4x4xf32> {ckopt.name = "y"}, tensor<4x3x3x3xf32> {ckopt.updates = 1 : i64}, tensor<4x3x3x3xf32> {ckopt.updates = 2 : i64}) {
  %y = ckopt.conv %x, %w {strides = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 1} : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32>
  %z = ckopt.conv %y, %u {strides = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 1} : (tensor<2x4x6x6xf32>, tensor<5x4x3x3xf32>) -> tensor<2x5x4x4xf32>
  %g = ckopt.conv_weight_grad %y, %x {strides = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 1} : (tensor<2x4x6x6xf32>, tensor<2x3x8x8xf32>) -> tensor<4x3x3x3xf32>
  %nw, %nv = ckopt.sgd %w, %g, %lr, %t velocity %v {momentum = 0.9, dampening = 0.0, weight_decay = 0.0} : (tensor<4x3x3x3xf32>, tensor<4x3x3x3xf32>, tensor<f32>, tensor<i64>, tensor<4x3x3x3xf32>) -> (tensor<4x3x3x3xf32>, tensor<4x3x3x3xf32>)
  return %z, %nw, %nv : tensor<2x5x4x4xf32>, tensor<4x3x3x3xf32>, tensor<4x3x3x3xf32>
}
func.func @eval(%m: tensor<2x4xf32> {ckopt.name = "m"}, %w: tensor<4x3x3x3xf32> {ckopt.name = "w"}) -> (tensor<2x27xf32> {ckopt.name = "z"}) {
  %0 = ckopt.reshape %w : (tensor<4x3x3x3xf32>) -> tensor<4x27xf32>
  %1 = ckopt.matmul %m, %0 : (tensor<2x4xf32>, tensor<4x27xf32>) -> tensor<2x27xf32>
  return %1 : tensor<2x27xf32>
}

// -----

// A learned map of the activations' shape is at rest as they are, unless it is read row-major, too:
// then activations are channels-last all the same, and the update works in the map's order.
// CHECK-LABEL: func.func @maps
// CHECK-SAME: tensor<1x4x6x6xf32, #ckopt.layout<[0, 2, 3, 1]>> {ckopt.name = "p"}
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<1x4x6x6xf32> {ckopt.name = "q"}
// CHECK: ckopt.add {{.*}} -> tensor<1x4x6x6xf32, #ckopt.layout<[0, 2, 3, 1]>>
// CHECK: %[[C:.*]] = ckopt.relayout %[[Q]]
// CHECK: ckopt.add %{{.*}}, %[[C]]
// CHECK: %[[A:.*]] = ckopt.relayout %{{.*}} -> tensor<1x4x6x6xf32>
// CHECK: %[[N:.*]] = ckopt.assign %[[Q]], %[[A]] : {{.*}} -> tensor<1x4x6x6xf32>
// CHECK: return {{.*}}, %[[N]]
func.func @maps(%x: tensor<1x3x8x8xf32> {ckopt.name = "x"}, %w: tensor<4x3x3x3xf32> {ckopt.name = "w"}, %p: tensor<1x4x6x6xf32> {ckopt.name = "p"}, %q: tensor<1x4x6x6xf32> {ckopt.name = "q"})
    -> (tensor<144xf32> {ckopt.name = "f"}, tensor<1x4x6x6xf32> {ckopt.updates = 3 : i64}) {
  %y = ckopt.conv %x, %w {strides = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 1} : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  %a = ckopt.add %y, %p : (tensor<1x4x6x6xf32>, tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  %b = ckopt.add %a, %q : (tensor<1x4x6x6xf32>, tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  %f = ckopt.reshape %q : (tensor<1x4x6x6xf32>) -> tensor<144xf32>
  %n = ckopt.assign %q, %b : (tensor<1x4x6x6xf32>, tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  return %f, %n : tensor<144xf32>, tensor<1x4x6x6xf32>
}

// -----

// A transpose of a channels-last tensor to [N, H, W, C], and back, is a view.
// REMARK: remark: layout of 'norm': no relayout, no transpose (2 more are views)
// CHECK-LABEL: func.func @norm
// CHECK-NOT: relayout
// CHECK: ckopt.transpose {{.*}} : (tensor<1x4x6x6xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<1x6x6x4xf32>
// CHECK: ckopt.transpose {{.*}} : (tensor<1x6x6x4xf32>) -> tensor<1x4x6x6xf32, #ckopt.layout<[0, 2, 3, 1]>>
func.func @norm(%x: tensor<1x3x8x8xf32> {ckopt.name = "x"}, %w: tensor<4x3x3x3xf32> {ckopt.name = "w"}, %u: tensor<2x4x3x3xf32> {ckopt.name = "u"}) -> (tensor<1x2x4x4xf32> {ckopt.name = "f"}) {
  %y = ckopt.conv %x, %w {strides = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 1} : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  %t = ckopt.transpose %y {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x4x6x6xf32>) -> tensor<1x6x6x4xf32>
  %n, %m, %r = ckopt.layer_norm %t {axis = 3 : i64, epsilon = 1.0e-05 : f64} : (tensor<1x6x6x4xf32>) -> (tensor<1x6x6x4xf32>, tensor<1x6x6xf32>, tensor<1x6x6xf32>)
  %b = ckopt.transpose %n {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x6x6x4xf32>) -> tensor<1x4x6x6xf32>
  %z = ckopt.conv %b, %u {strides = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 1} : (tensor<1x4x6x6xf32>, tensor<2x4x3x3xf32>) -> tensor<1x2x4x4xf32>
  return %z : tensor<1x2x4x4xf32>
}

// -----

// What copies is counted: a flatten of a channels-last tensor, and a transpose that no product takes.
// REMARK: remark: layout of 'copies': 1 relayout moves up to 1.12 KiB, 1 transpose moves up to 1.12 KiB (0 more are views)
func.func @copies(%x: tensor<1x3x8x8xf32> {ckopt.name = "x"}, %w: tensor<4x3x3x3xf32> {ckopt.name = "w"}) -> (tensor<144xf32> {ckopt.name = "f"}, tensor<6x4x6x1xf32> {ckopt.name = "t"}) {
  %y = ckopt.conv %x, %w {strides = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 1} : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  %f = ckopt.reshape %y : (tensor<1x4x6x6xf32>) -> tensor<144xf32>
  %t = ckopt.transpose %y {permutation = array<i64: 3, 1, 2, 0>} : (tensor<1x4x6x6xf32>) -> tensor<6x4x6x1xf32>
  return %f, %t : tensor<144xf32>, tensor<6x4x6x1xf32>
}

// -----

// A patch embedding: points are joined, and channels put last, without a copy, forward and backward.
// REMARK: remark: layout of 'patches': no relayout, no transpose (2 more are views)
// CHECK-LABEL: func.func @patches
// CHECK: %[[Y:.*]] = ckopt.conv
// CHECK: %[[T:.*]] = ckopt.transpose %[[Y]] {permutation = array<i64: 0, 2, 3, 1>} : (tensor<2x4x6x5xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<2x6x5x4xf32>
// CHECK: ckopt.reshape %[[T]] : (tensor<2x6x5x4xf32>) -> tensor<2x30x4xf32>
// CHECK: %[[R:.*]] = ckopt.reshape %{{.*}} : (tensor<2x30x4xf32>) -> tensor<2x6x5x4xf32>
// CHECK: %[[G:.*]] = ckopt.transpose %[[R]] {permutation = array<i64: 0, 3, 1, 2>} : (tensor<2x6x5x4xf32>) -> tensor<2x4x6x5xf32, #ckopt.layout<[0, 2, 3, 1]>>
// CHECK: ckopt.conv_weight_grad %[[G]]
func.func @patches(%x: tensor<2x3x12x10xf32> {ckopt.name = "x"}, %w: tensor<4x3x2x2xf32> {ckopt.name = "w"}) -> (tensor<4x3x2x2xf32> {ckopt.name = "grad/w"}) {
  %y = ckopt.conv %x, %w {strides = array<i64: 2, 2>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 1} : (tensor<2x3x12x10xf32>, tensor<4x3x2x2xf32>) -> tensor<2x4x6x5xf32>
  %p = ckopt.reshape %y : (tensor<2x4x6x5xf32>) -> tensor<2x4x30xf32>
  %t = ckopt.transpose %p {permutation = array<i64: 0, 2, 1>} : (tensor<2x4x30xf32>) -> tensor<2x30x4xf32>
  %e = ckopt.exp %t : (tensor<2x30x4xf32>) -> tensor<2x30x4xf32>
  %b = ckopt.transpose %e {permutation = array<i64: 0, 2, 1>} : (tensor<2x30x4xf32>) -> tensor<2x4x30xf32>
  %g = ckopt.reshape %b : (tensor<2x4x30xf32>) -> tensor<2x4x6x5xf32>
  %d = ckopt.conv_weight_grad %g, %x {strides = array<i64: 2, 2>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 1} : (tensor<2x4x6x5xf32>, tensor<2x3x12x10xf32>) -> tensor<4x3x2x2xf32>
  return %d : tensor<4x3x2x2xf32>
}
