// The backward pass of a two-layer network: small residuals, sums over
// broadcast biases, 2-D weight gradients, nothing for inputs and frozen weights.
// RUN: ckopt-opt %s --attach-loss --autodiff --canonicalize --cse | FileCheck %s

// CHECK-LABEL: func.func @step(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<4x8xf32> {ckopt.name = "x", ckopt.role = "input"}
// CHECK-SAME:    %[[W1:[^:]*]]: tensor<16x8xf32>
// CHECK-SAME:    %[[B1:[^:]*]]: tensor<16xf32>
// CHECK-SAME:    %[[W2:[^:]*]]: tensor<10x16xf32>
// CHECK-SAME:    %[[B2:[^:]*]]: tensor<10xf32>
// CHECK-SAME:    %[[T:[^:]*]]: tensor<4xi64> {ckopt.classes = 10 : i64, ckopt.ignore_index = -100 : i64, ckopt.name = "target", ckopt.role = "target", ckopt.target_of = "logits"}
// CHECK-SAME:    -> (tensor<f32> {ckopt.name = "loss", ckopt.role = "loss"}
// CHECK-SAME:        tensor<16x8xf32> {ckopt.gradient = 1 : i64, ckopt.name = "grad/w1"}
// CHECK-SAME:        tensor<16xf32> {ckopt.gradient = 2 : i64, ckopt.name = "grad/b1"}
// CHECK-SAME:        tensor<10x16xf32> {ckopt.gradient = 3 : i64, ckopt.name = "grad/w2"}
// CHECK-NOT:     grad/b2
func.func @forward(
    %x: tensor<4x8xf32> {ckopt.name = "x", ckopt.role = "input"},
    %w1: tensor<16x8xf32> {ckopt.name = "w1", ckopt.role = "parameter"},
    %b1: tensor<16xf32> {ckopt.name = "b1", ckopt.role = "parameter"},
    %w2: tensor<10x16xf32> {ckopt.name = "w2", ckopt.role = "parameter"},
    %b2: tensor<10xf32> {ckopt.name = "b2", ckopt.role = "frozen"})
    -> (tensor<4x10xf32> {ckopt.name = "logits"}) {
  // CHECK: %[[H:.*]] = ckopt.relu
  // CHECK: %[[LOSS:[^,]*]], %[[LSE:[^,]*]], %[[LSELOST:.*]] = ckopt.cross_entropy %[[Z:[^,]*]], %[[T]]
  // CHECK: %[[G:.*]] = ckopt.cross_entropy_grad %{{.*}}, %[[Z]], %[[T]], %[[LSE]], %[[LSELOST]]
  // CHECK: %[[GH:.*]] = ckopt.matmul %[[G]], %[[W2]] :
  // CHECK: %[[GW2:.*]] = ckopt.matmul %[[G]], %[[H]] {transpose_lhs}
  // The mask comes from the result of relu, so its operand may go.
  // CHECK: %[[M:.*]] = ckopt.compare {{ *}}gt %[[H]],
  // CHECK: %[[GR:.*]] = ckopt.select %[[M]], %[[GH]],
  // CHECK: %[[GB1:.*]] = ckopt.reduce {{ *}}sum %[[GR]] {axes = array<i64: 0>
  // CHECK: %[[GW1:.*]] = ckopt.matmul %[[GR]], %[[X]] {transpose_lhs}
  // CHECK: return %{{.*}}, %[[GW1]], %[[GB1]], %[[GW2]]
  %h = ckopt.matmul %x, %w1 {transpose_rhs} : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
  %hb = ckopt.add %h, %b1 : (tensor<4x16xf32>, tensor<16xf32>) -> tensor<4x16xf32>
  %r = ckopt.relu %hb : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %y = ckopt.matmul %r, %w2 {transpose_rhs} : (tensor<4x16xf32>, tensor<10x16xf32>) -> tensor<4x10xf32>
  %yb = ckopt.add %y, %b2 : (tensor<4x10xf32>, tensor<10xf32>) -> tensor<4x10xf32>
  return %yb : tensor<4x10xf32>
}
