// Keys of one head, whose sizes of 1 went or are broadcast, are attention as all others are.
// RUN: ckopt-opt %s --split-input-file --fuse-attention --canonicalize | FileCheck %s

// One sample, two query heads: the rows of both are one matrix.
// CHECK-LABEL: func.func @one_key_head(
// CHECK-SAME:    %[[Q:[^:]*]]: tensor<16x4xf32>, %[[K:[^:]*]]: tensor<8x4xf32>, %[[V:[^:]*]]: tensor<8x5xf32>
// CHECK-DAG:     %[[QUERIES:.*]] = ckopt.reshape %[[Q]] : (tensor<16x4xf32>) -> tensor<1x2x8x4xf32>
// CHECK-DAG:     %[[KEYS:.*]] = ckopt.reshape %[[K]] : (tensor<8x4xf32>) -> tensor<1x1x8x4xf32>
// CHECK-DAG:     %[[VALUES:.*]] = ckopt.reshape %[[V]] : (tensor<8x5xf32>) -> tensor<1x1x8x5xf32>
// CHECK:         %[[O:.*]], %{{.*}} = ckopt.attention %[[QUERIES]], %[[KEYS]], %[[VALUES]] {causal = 0 : i64, scale = 5.000000e-01 : f64}
// CHECK:         ckopt.reshape %[[O]] : (tensor<1x2x8x5xf32>) -> tensor<16x5xf32>
func.func @one_key_head(%q: tensor<16x4xf32>, %k: tensor<8x4xf32>, %v: tensor<8x5xf32>) -> tensor<16x5xf32> {
  %half = ckopt.constant dense<0.5> : tensor<f32>
  %low = ckopt.constant dense<0xFF800000> : tensor<f32>
  %ones = ckopt.constant dense<1.0> : tensor<8x8xf32>
  %zero = ckopt.constant dense<0.0> : tensor<f32>
  %lower = ckopt.trilu %ones {upper = false} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %closed = ckopt.compare eq %lower, %zero : (tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xi1>
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<16x4xf32>, tensor<8x4xf32>) -> tensor<16x8xf32>
  %h = ckopt.reshape %s : (tensor<16x8xf32>) -> tensor<1x2x8x8xf32>
  %t = ckopt.mul %h, %half : (tensor<1x2x8x8xf32>, tensor<f32>) -> tensor<1x2x8x8xf32>
  %m = ckopt.select %closed, %low, %t : (tensor<8x8xi1>, tensor<f32>, tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32>
  %p = ckopt.softmax %m {axis = 3 : i64} : (tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32>
  %r = ckopt.reshape %p : (tensor<1x2x8x8xf32>) -> tensor<16x8xf32>
  %o = ckopt.matmul %r, %v : (tensor<16x8xf32>, tensor<8x5xf32>) -> tensor<16x5xf32>
  return %o : tensor<16x5xf32>
}

// -----

// One head of one sample; keys and values lie transposed.
// CHECK-LABEL: func.func @one_head(
// CHECK:         ckopt.attention %{{.*}} {scale = 1.000000e+00 : f64} : (tensor<1x6x4xf32>, tensor<1x8x4xf32>, tensor<1x8x5xf32>) -> (tensor<1x6x5xf32>
func.func @one_head(%q: tensor<6x4xf32>, %k: tensor<4x8xf32>, %v: tensor<5x8xf32>) -> tensor<6x5xf32> {
  %s = ckopt.matmul %q, %k : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %h = ckopt.reshape %s : (tensor<6x8xf32>) -> tensor<1x6x8xf32>
  %p = ckopt.softmax %h {axis = 2 : i64} : (tensor<1x6x8xf32>) -> tensor<1x6x8xf32>
  %r = ckopt.reshape %p : (tensor<1x6x8xf32>) -> tensor<6x8xf32>
  %o = ckopt.matmul %r, %v {transpose_rhs} : (tensor<6x8xf32>, tensor<5x8xf32>) -> tensor<6x5xf32>
  return %o : tensor<6x5xf32>
}

// -----

// Each sample has a key head of its own, which its three query heads read.
// CHECK-LABEL: func.func @broadcast(
// CHECK-SAME:    %[[Q:[^:]*]]: tensor<2x3x8x4xf32>, %[[K:[^:]*]]: tensor<2x1x8x4xf32>, %[[V:[^:]*]]: tensor<2x1x8x5xf32>
// CHECK-NEXT:    %[[O:.*]], %{{.*}} = ckopt.attention %[[Q]], %[[K]], %[[V]] {scale = 1.000000e+00 : f64}
// CHECK-NEXT:    return %[[O]]
func.func @broadcast(%q: tensor<2x3x8x4xf32>, %k: tensor<2x1x8x4xf32>, %v: tensor<2x1x8x5xf32>) -> tensor<2x3x8x5xf32> {
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<2x3x8x4xf32>, tensor<2x1x8x4xf32>) -> tensor<2x3x8x8xf32>
  %p = ckopt.softmax %s {axis = 3 : i64} : (tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32>
  %o = ckopt.matmul %p, %v : (tensor<2x3x8x8xf32>, tensor<2x1x8x5xf32>) -> tensor<2x3x8x5xf32>
  return %o : tensor<2x3x8x5xf32>
}

// -----

// Samples that share their keys, or have them while heads differ, are none of the op's.
// CHECK-LABEL: func.func @shared(
// CHECK-NOT:     ckopt.attention
func.func @shared(%q: tensor<2x3x8x4xf32>, %k: tensor<1x3x8x4xf32>, %v: tensor<1x3x8x5xf32>) -> tensor<2x3x8x5xf32> {
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<2x3x8x4xf32>, tensor<1x3x8x4xf32>) -> tensor<2x3x8x8xf32>
  %p = ckopt.softmax %s {axis = 3 : i64} : (tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32>
  %o = ckopt.matmul %p, %v : (tensor<2x3x8x8xf32>, tensor<1x3x8x5xf32>) -> tensor<2x3x8x5xf32>
  return %o : tensor<2x3x8x5xf32>
}

// CHECK-LABEL: func.func @shared_matrix(
// CHECK-NOT:     ckopt.attention
func.func @shared_matrix(%q: tensor<48x4xf32>, %k: tensor<8x4xf32>, %v: tensor<8x5xf32>) -> tensor<48x5xf32> {
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<48x4xf32>, tensor<8x4xf32>) -> tensor<48x8xf32>
  %h = ckopt.reshape %s : (tensor<48x8xf32>) -> tensor<2x3x8x8xf32>
  %p = ckopt.softmax %h {axis = 3 : i64} : (tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32>
  %r = ckopt.reshape %p : (tensor<2x3x8x8xf32>) -> tensor<48x8xf32>
  %o = ckopt.matmul %r, %v : (tensor<48x8xf32>, tensor<8x5xf32>) -> tensor<48x5xf32>
  return %o : tensor<48x5xf32>
}
