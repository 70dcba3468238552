// Gradients become sums over ranks, in buckets that close by bytes in the order
// of the backward pass; the loss is a sum, too, and running statistics learn the
// mean of the ranks.
// RUN: ckopt-opt %s --attach-loss=ranks=2 --autodiff --canonicalize --cse --distribute=ranks=2 | FileCheck %s
// RUN: ckopt-opt %s --attach-loss=ranks=2 --autodiff --canonicalize --cse "--distribute=ranks=2 bucket-bytes=512" | FileCheck %s --check-prefix=SMALL
// One bucket holds the three gradients, which are ready in the order w2, b1, w1.
// CHECK-LABEL: func.func @step(
// Labels that count are counted on all ranks.
// CHECK: %[[COUNT:.*]] = ckopt.reduce {{ *}}sum
// CHECK: %[[ALL:.*]] = ckopt.all_reduce %[[COUNT]] {ranks = 2 : i64} : (tensor<f32>) -> tensor<f32>
// CHECK: %[[LOSS:.*]] = ckopt.div %{{.*}}, %[[ALL]]
// CHECK: %[[TOTAL:.*]] = ckopt.all_reduce %[[LOSS]] {ranks = 2 : i64} : (tensor<f32>) -> tensor<f32>
// CHECK: %[[GW2:.*]] = ckopt.matmul %{{.*}} {transpose_lhs} : {{.*}} -> tensor<10x16xf32>
// CHECK: %[[GB1:.*]] = ckopt.reduce {{ *}}sum
// CHECK: %[[GW1:.*]] = ckopt.matmul %{{.*}} {transpose_lhs} : {{.*}} -> tensor<16x8xf32>
// CHECK: %[[SUMS:.*]]:3 = ckopt.all_reduce %[[GW2]], %[[GB1]], %[[GW1]] {ranks = 2 : i64}
// CHECK: return %[[TOTAL]], %[[SUMS]]#2, %[[SUMS]]#1, %[[SUMS]]#0

// SMALL-LABEL: func.func @step(
// SMALL: %[[GW2:.*]] = ckopt.matmul %{{.*}} {transpose_lhs} : {{.*}} -> tensor<10x16xf32>
// SMALL: %[[A:.*]] = ckopt.all_reduce %[[GW2]] {ranks = 2 : i64} : (tensor<10x16xf32>) -> tensor<10x16xf32>
// SMALL: %[[B:.*]]:2 = ckopt.all_reduce %{{.*}}, %{{.*}} {ranks = 2 : i64} : (tensor<16xf32>, tensor<16x8xf32>)
// SMALL: return %{{.*}}, %[[B]]#1, %[[B]]#0, %[[A]]
func.func @forward(
    %x: tensor<4x8xf32> {ckopt.name = "x", ckopt.role = "input"},
    %w1: tensor<16x8xf32> {ckopt.name = "w1", ckopt.role = "parameter"},
    %b1: tensor<16xf32> {ckopt.name = "b1", ckopt.role = "parameter"},
    %w2: tensor<10x16xf32> {ckopt.name = "w2", ckopt.role = "parameter"})
    -> (tensor<4x10xf32> {ckopt.name = "logits"}) {
  %h = ckopt.matmul %x, %w1 {transpose_rhs} : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
  %hb = ckopt.add %h, %b1 : (tensor<4x16xf32>, tensor<16xf32>) -> tensor<4x16xf32>
  %r = ckopt.relu %hb : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %y = ckopt.matmul %r, %w2 {transpose_rhs} : (tensor<4x16xf32>, tensor<10x16xf32>) -> tensor<4x10xf32>
  return %y : tensor<4x10xf32>
}
