// Conditions on the distance of row and key, and on numbers that both have, become bounds of keys:
// `causal`, `window` and `segments`.
// RUN: ckopt-opt %s --split-input-file --fuse-attention --canonicalize | FileCheck %s

// A bound from below is a window.
// CHECK-LABEL: func.func @window(
// CHECK-NOT:     8x8xi1
// CHECK:         ckopt.attention %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} {causal = 0 : i64, scale = 1.000000e+00 : f64, window = 3 : i64}
func.func @window(%q: tensor<2x3x8x4xf32>, %k: tensor<2x3x8x4xf32>, %v: tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32> {
  %low = ckopt.constant dense<0xFF800000> : tensor<f32>
  %row = ckopt.iota {axis = 0 : i64} : tensor<8x1xi64>
  %column = ckopt.iota {axis = 1 : i64} : tensor<1x8xi64>
  %three = ckopt.constant dense<3> : tensor<i64>
  %from = ckopt.sub %row, %three : (tensor<8x1xi64>, tensor<i64>) -> tensor<8x1xi64>
  %le = ckopt.compare le %column, %row : (tensor<1x8xi64>, tensor<8x1xi64>) -> tensor<8x8xi1>
  %gt = ckopt.compare gt %column, %from : (tensor<1x8xi64>, tensor<8x1xi64>) -> tensor<8x8xi1>
  %open = ckopt.and %le, %gt : (tensor<8x8xi1>, tensor<8x8xi1>) -> tensor<8x8xi1>
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x8xf32>
  %m = ckopt.select %open, %s, %low : (tensor<8x8xi1>, tensor<2x3x8x8xf32>, tensor<f32>) -> tensor<2x3x8x8xf32>
  %p = ckopt.softmax %m {axis = 3 : i64} : (tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32>
  %o = ckopt.matmul %p, %v : (tensor<2x3x8x8xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32>
  return %o : tensor<2x3x8x4xf32>
}

// -----

// On both sides, with the least f32, which every row keeps a key beside.
// CHECK-LABEL: func.func @around(
// CHECK:         ckopt.attention %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} {causal = 2 : i64, scale = 1.000000e+00 : f64, window = 3 : i64}
func.func @around(%q: tensor<2x3x8x4xf32>, %k: tensor<2x3x8x4xf32>, %v: tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32> {
  %low = ckopt.constant dense<-3.40282347E+38> : tensor<f32>
  %row = ckopt.iota {axis = 0 : i64} : tensor<8x1xi64>
  %column = ckopt.iota {axis = 1 : i64} : tensor<1x8xi64>
  %two = ckopt.constant dense<2> : tensor<i64>
  %far = ckopt.sub %column, %row : (tensor<1x8xi64>, tensor<8x1xi64>) -> tensor<8x8xi64>
  %near = ckopt.sub %row, %column : (tensor<8x1xi64>, tensor<1x8xi64>) -> tensor<8x8xi64>
  %le = ckopt.compare le %far, %two : (tensor<8x8xi64>, tensor<i64>) -> tensor<8x8xi1>
  %ge = ckopt.compare le %near, %two : (tensor<8x8xi64>, tensor<i64>) -> tensor<8x8xi1>
  %open = ckopt.and %le, %ge : (tensor<8x8xi1>, tensor<8x8xi1>) -> tensor<8x8xi1>
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x8xf32>
  %m = ckopt.select %open, %s, %low : (tensor<8x8xi1>, tensor<2x3x8x8xf32>, tensor<f32>) -> tensor<2x3x8x8xf32>
  %p = ckopt.softmax %m {axis = 3 : i64} : (tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32>
  %o = ckopt.matmul %p, %v : (tensor<2x3x8x8xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32>
  return %o : tensor<2x3x8x4xf32>
}

// -----

// As a table.
// CHECK-LABEL: func.func @table(
// CHECK:         ckopt.attention %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} {causal = 0 : i64, scale = 1.000000e+00 : f64, window = 2 : i64}
func.func @table(%q: tensor<2x3x8x4xf32>, %k: tensor<2x3x8x4xf32>, %v: tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32> {
  %low = ckopt.constant dense<0xFF800000> : tensor<f32>
  %open = ckopt.constant dense<[[1,0,0,0,0,0,0,0],[1,1,0,0,0,0,0,0],[0,1,1,0,0,0,0,0],[0,0,1,1,0,0,0,0],[0,0,0,1,1,0,0,0],[0,0,0,0,1,1,0,0],[0,0,0,0,0,1,1,0],[0,0,0,0,0,0,1,1]]> : tensor<8x8xi1>
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x8xf32>
  %m = ckopt.select %open, %s, %low : (tensor<8x8xi1>, tensor<2x3x8x8xf32>, tensor<f32>) -> tensor<2x3x8x8xf32>
  %p = ckopt.softmax %m {axis = 3 : i64} : (tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32>
  %o = ckopt.matmul %p, %v : (tensor<2x3x8x8xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32>
  return %o : tensor<2x3x8x4xf32>
}

// -----

// One more key in a row.
// CHECK-LABEL: func.func @no_band(
// CHECK:         ckopt.attention %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} mask %{{[^ ]*}} {scale = 1.000000e+00 : f64}
func.func @no_band(%q: tensor<2x3x8x4xf32>, %k: tensor<2x3x8x4xf32>, %v: tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32> {
  %low = ckopt.constant dense<0xFF800000> : tensor<f32>
  %open = ckopt.constant dense<[[1,0,0,0,0,0,0,0],[1,1,0,0,0,0,0,0],[0,1,1,0,0,0,0,0],[0,0,1,1,0,0,0,0],[0,0,1,1,1,0,0,0],[0,0,0,0,1,1,0,0],[0,0,0,0,0,1,1,0],[0,0,0,0,0,0,1,1]]> : tensor<8x8xi1>
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x8xf32>
  %m = ckopt.select %open, %s, %low : (tensor<8x8xi1>, tensor<2x3x8x8xf32>, tensor<f32>) -> tensor<2x3x8x8xf32>
  %p = ckopt.softmax %m {axis = 3 : i64} : (tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32>
  %o = ckopt.matmul %p, %v : (tensor<2x3x8x8xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32>
  return %o : tensor<2x3x8x4xf32>
}

// -----

// Padding stays a mask of keys.
// CHECK-LABEL: func.func @window_and_padding(
// CHECK:         ckopt.attention %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} mask %{{[^ ]*}} {scale = 1.000000e+00 : f64, window = 3 : i64} : {{.*}}tensor<2x1x1x8xi1>)
func.func @window_and_padding(%q: tensor<2x3x8x4xf32>, %k: tensor<2x3x8x4xf32>, %v: tensor<2x3x8x4xf32>, %keep: tensor<2x1x1x8xi1>) -> tensor<2x3x8x4xf32> {
  %low = ckopt.constant dense<0xFF800000> : tensor<f32>
  %row = ckopt.iota {axis = 0 : i64} : tensor<8x1xi64>
  %column = ckopt.iota {axis = 1 : i64} : tensor<1x8xi64>
  %three = ckopt.constant dense<3> : tensor<i64>
  %from = ckopt.sub %row, %three : (tensor<8x1xi64>, tensor<i64>) -> tensor<8x1xi64>
  %gt = ckopt.compare gt %column, %from : (tensor<1x8xi64>, tensor<8x1xi64>) -> tensor<8x8xi1>
  %open = ckopt.and %gt, %keep : (tensor<8x8xi1>, tensor<2x1x1x8xi1>) -> tensor<2x1x8x8xi1>
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x8xf32>
  %m = ckopt.select %open, %s, %low : (tensor<2x1x8x8xi1>, tensor<2x3x8x8xf32>, tensor<f32>) -> tensor<2x3x8x8xf32>
  %p = ckopt.softmax %m {axis = 3 : i64} : (tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32>
  %o = ckopt.matmul %p, %v : (tensor<2x3x8x8xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32>
  return %o : tensor<2x3x8x4xf32>
}

// -----

// Numbers that rows and keys have are segments.
// CHECK-LABEL: func.func @segments(
// CHECK-SAME:    %[[N:[^:]*]]: tensor<2x8xi64>)
// CHECK-NOT:     8x8xi1
// CHECK:         ckopt.attention %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} segments %[[N]] {causal = 0 : i64, scale = 1.000000e+00 : f64}
func.func @segments(%q: tensor<2x3x8x4xf32>, %k: tensor<2x3x8x4xf32>, %v: tensor<2x3x8x4xf32>, %n: tensor<2x8xi64>) -> tensor<2x3x8x4xf32> {
  %low = ckopt.constant dense<0xFF800000> : tensor<f32>
  %row = ckopt.iota {axis = 0 : i64} : tensor<8x1xi64>
  %column = ckopt.iota {axis = 1 : i64} : tensor<1x8xi64>
  %le = ckopt.compare le %column, %row : (tensor<1x8xi64>, tensor<8x1xi64>) -> tensor<8x8xi1>
  %r = ckopt.reshape %n : (tensor<2x8xi64>) -> tensor<2x1x8x1xi64>
  %c = ckopt.reshape %n : (tensor<2x8xi64>) -> tensor<2x1x1x8xi64>
  %same = ckopt.compare eq %r, %c : (tensor<2x1x8x1xi64>, tensor<2x1x1x8xi64>) -> tensor<2x1x8x8xi1>
  %open = ckopt.and %le, %same : (tensor<8x8xi1>, tensor<2x1x8x8xi1>) -> tensor<2x1x8x8xi1>
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x8xf32>
  %m = ckopt.select %open, %s, %low : (tensor<2x1x8x8xi1>, tensor<2x3x8x8xf32>, tensor<f32>) -> tensor<2x3x8x8xf32>
  %p = ckopt.softmax %m {axis = 3 : i64} : (tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32>
  %o = ckopt.matmul %p, %v : (tensor<2x3x8x8xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32>
  return %o : tensor<2x3x8x4xf32>
}

// -----

// The same for all samples, without causality.
// CHECK-LABEL: func.func @segments_of_all(
// CHECK:         %[[WIDE:.*]] = ckopt.cast {{.*}} -> tensor<1x8xi64>
// CHECK:         ckopt.attention %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} segments %[[WIDE]] {scale = 1.000000e+00 : f64}
func.func @segments_of_all(%q: tensor<2x3x8x4xf32>, %k: tensor<2x3x8x4xf32>, %v: tensor<2x3x8x4xf32>, %n: tensor<8xi32>) -> tensor<2x3x8x4xf32> {
  %low = ckopt.constant dense<-3.40282347E+38> : tensor<f32>
  %r = ckopt.reshape %n : (tensor<8xi32>) -> tensor<8x1xi32>
  %closed = ckopt.compare ne %r, %n : (tensor<8x1xi32>, tensor<8xi32>) -> tensor<8x8xi1>
  %open = ckopt.not %closed : (tensor<8x8xi1>) -> tensor<8x8xi1>
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x8xf32>
  %m = ckopt.select %open, %s, %low : (tensor<8x8xi1>, tensor<2x3x8x8xf32>, tensor<f32>) -> tensor<2x3x8x8xf32>
  %p = ckopt.softmax %m {axis = 3 : i64} : (tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32>
  %o = ckopt.matmul %p, %v : (tensor<2x3x8x8xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32>
  return %o : tensor<2x3x8x4xf32>
}

// -----

// Heads may come last.
// CHECK-LABEL: func.func @segments_below_reshape(
// CHECK-NOT:     8x8xi1
// CHECK:         ckopt.attention %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} segments %{{[^ ]*}} {causal = 0 : i64, scale = 1.000000e+00 : f64}
func.func @segments_below_reshape(%q: tensor<2x3x8x4xf32>, %k: tensor<2x3x8x4xf32>, %v: tensor<2x3x8x4xf32>, %n: tensor<2x8xi64>) -> tensor<2x3x8x4xf32> {
  %low = ckopt.constant dense<0xFF800000> : tensor<f32>
  %row = ckopt.iota {axis = 0 : i64} : tensor<8x1xi64>
  %column = ckopt.iota {axis = 1 : i64} : tensor<1x8xi64>
  %le = ckopt.compare le %column, %row : (tensor<1x8xi64>, tensor<8x1xi64>) -> tensor<8x8xi1>
  %r = ckopt.reshape %n : (tensor<2x8xi64>) -> tensor<2x8x1xi64>
  %c = ckopt.reshape %n : (tensor<2x8xi64>) -> tensor<2x1x8xi64>
  %same = ckopt.compare eq %r, %c : (tensor<2x8x1xi64>, tensor<2x1x8xi64>) -> tensor<2x8x8xi1>
  %both = ckopt.and %same, %le : (tensor<2x8x8xi1>, tensor<8x8xi1>) -> tensor<2x8x8xi1>
  %open = ckopt.reshape %both : (tensor<2x8x8xi1>) -> tensor<2x1x8x8xi1>
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x8xf32>
  %m = ckopt.select %open, %s, %low : (tensor<2x1x8x8xi1>, tensor<2x3x8x8xf32>, tensor<f32>) -> tensor<2x3x8x8xf32>
  %p = ckopt.softmax %m {axis = 3 : i64} : (tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32>
  %o = ckopt.matmul %p, %v : (tensor<2x3x8x8xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32>
  return %o : tensor<2x3x8x4xf32>
}

// -----

// Numbers of heads are none.
// CHECK-LABEL: func.func @segments_of_heads(
// CHECK:         ckopt.attention %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} mask %{{[^ ]*}} {scale = 1.000000e+00 : f64}
func.func @segments_of_heads(%q: tensor<2x3x8x4xf32>, %k: tensor<2x3x8x4xf32>, %v: tensor<2x3x8x4xf32>, %n: tensor<3x8xi64>) -> tensor<2x3x8x4xf32> {
  %low = ckopt.constant dense<0xFF800000> : tensor<f32>
  %r = ckopt.reshape %n : (tensor<3x8xi64>) -> tensor<3x8x1xi64>
  %c = ckopt.reshape %n : (tensor<3x8xi64>) -> tensor<3x1x8xi64>
  %open = ckopt.compare eq %r, %c : (tensor<3x8x1xi64>, tensor<3x1x8xi64>) -> tensor<3x8x8xi1>
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x8xf32>
  %m = ckopt.select %open, %s, %low : (tensor<3x8x8xi1>, tensor<2x3x8x8xf32>, tensor<f32>) -> tensor<2x3x8x8xf32>
  %p = ckopt.softmax %m {axis = 3 : i64} : (tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32>
  %o = ckopt.matmul %p, %v : (tensor<2x3x8x8xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32>
  return %o : tensor<2x3x8x4xf32>
}

// -----

// Nor are other numbers of rows than of keys.
// CHECK-LABEL: func.func @two_numbers(
// CHECK:         ckopt.attention %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} mask %{{[^ ]*}} {scale = 1.000000e+00 : f64}
func.func @two_numbers(%q: tensor<2x3x8x4xf32>, %k: tensor<2x3x8x4xf32>, %v: tensor<2x3x8x4xf32>, %n: tensor<2x8xi64>, %o2: tensor<2x8xi64>) -> tensor<2x3x8x4xf32> {
  %low = ckopt.constant dense<0xFF800000> : tensor<f32>
  %r = ckopt.reshape %n : (tensor<2x8xi64>) -> tensor<2x1x8x1xi64>
  %c = ckopt.reshape %o2 : (tensor<2x8xi64>) -> tensor<2x1x1x8xi64>
  %open = ckopt.compare eq %r, %c : (tensor<2x1x8x1xi64>, tensor<2x1x1x8xi64>) -> tensor<2x1x8x8xi1>
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x8xf32>
  %m = ckopt.select %open, %s, %low : (tensor<2x1x8x8xi1>, tensor<2x3x8x8xf32>, tensor<f32>) -> tensor<2x3x8x8xf32>
  %p = ckopt.softmax %m {axis = 3 : i64} : (tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32>
  %o = ckopt.matmul %p, %v : (tensor<2x3x8x8xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32>
  return %o : tensor<2x3x8x4xf32>
}

// -----

// Positions bound keys where segments count the places at which they do not rise by one.
// CHECK-LABEL: func.func @positions(
// CHECK:         %[[SUM:.*]] = ckopt.cumulative_sum
// CHECK-NOT:     8x8xi1
// CHECK:         ckopt.attention %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} segments %[[SUM]] {causal = 0 : i64, scale = 1.000000e+00 : f64, window = 2 : i64}
func.func @positions(%q: tensor<2x3x8x4xf32>, %k: tensor<2x3x8x4xf32>, %v: tensor<2x3x8x4xf32>, %n: tensor<2x8xi64>) -> tensor<2x3x8x4xf32> {
  %low = ckopt.constant dense<-3.40282347E+38> : tensor<f32>
  %one = ckopt.constant dense<1> : tensor<i64>
  %first = ckopt.constant dense<-1> : tensor<2x1xi64>
  %all = ckopt.concat %first, %n {axis = 1 : i64} : (tensor<2x1xi64>, tensor<2x8xi64>) -> tensor<2x9xi64>
  %before = ckopt.slice %all {sizes = array<i64: 2, 8>, starts = array<i64: 0, 0>, steps = array<i64: 1, 1>} : (tensor<2x9xi64>) -> tensor<2x8xi64>
  %step = ckopt.sub %n, %before : (tensor<2x8xi64>, tensor<2x8xi64>) -> tensor<2x8xi64>
  %breaks = ckopt.compare ne %step, %one : (tensor<2x8xi64>, tensor<i64>) -> tensor<2x8xi1>
  %broken = ckopt.cast %breaks : (tensor<2x8xi1>) -> tensor<2x8xi64>
  %sum = ckopt.cumulative_sum %broken {axis = 1 : i64} : (tensor<2x8xi64>) -> tensor<2x8xi64>
  %sr = ckopt.reshape %sum : (tensor<2x8xi64>) -> tensor<2x1x8x1xi64>
  %sc = ckopt.reshape %sum : (tensor<2x8xi64>) -> tensor<2x1x1x8xi64>
  %pr = ckopt.reshape %n : (tensor<2x8xi64>) -> tensor<2x1x8x1xi64>
  %pc = ckopt.reshape %n : (tensor<2x8xi64>) -> tensor<2x1x1x8xi64>
  %le = ckopt.compare le %pc, %pr : (tensor<2x1x1x8xi64>, tensor<2x1x8x1xi64>) -> tensor<2x1x8x8xi1>
  %same = ckopt.compare eq %sr, %sc : (tensor<2x1x8x1xi64>, tensor<2x1x1x8xi64>) -> tensor<2x1x8x8xi1>
  %two = ckopt.constant dense<2> : tensor<i64>
  %from = ckopt.sub %pr, %two : (tensor<2x1x8x1xi64>, tensor<i64>) -> tensor<2x1x8x1xi64>
  %gt = ckopt.compare gt %pc, %from : (tensor<2x1x1x8xi64>, tensor<2x1x8x1xi64>) -> tensor<2x1x8x8xi1>
  %some = ckopt.and %gt, %le : (tensor<2x1x8x8xi1>, tensor<2x1x8x8xi1>) -> tensor<2x1x8x8xi1>
  %open = ckopt.and %some, %same : (tensor<2x1x8x8xi1>, tensor<2x1x8x8xi1>) -> tensor<2x1x8x8xi1>
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x8xf32>
  %m = ckopt.select %open, %s, %low : (tensor<2x1x8x8xi1>, tensor<2x3x8x8xf32>, tensor<f32>) -> tensor<2x3x8x8xf32>
  %p = ckopt.softmax %m {axis = 3 : i64} : (tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32>
  %o = ckopt.matmul %p, %v : (tensor<2x3x8x8xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32>
  return %o : tensor<2x3x8x4xf32>
}

// -----

// Alone they may be any numbers.
// CHECK-LABEL: func.func @positions_alone(
// CHECK:         ckopt.attention %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} mask %{{[^ ]*}} {fill
func.func @positions_alone(%q: tensor<2x3x8x4xf32>, %k: tensor<2x3x8x4xf32>, %v: tensor<2x3x8x4xf32>, %n: tensor<2x8xi64>) -> tensor<2x3x8x4xf32> {
  %low = ckopt.constant dense<-3.40282347E+38> : tensor<f32>
  %pr = ckopt.reshape %n : (tensor<2x8xi64>) -> tensor<2x1x8x1xi64>
  %pc = ckopt.reshape %n : (tensor<2x8xi64>) -> tensor<2x1x1x8xi64>
  %open = ckopt.compare le %pc, %pr : (tensor<2x1x1x8xi64>, tensor<2x1x8x1xi64>) -> tensor<2x1x8x8xi1>
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x8xf32>
  %m = ckopt.select %open, %s, %low : (tensor<2x1x8x8xi1>, tensor<2x3x8x8xf32>, tensor<f32>) -> tensor<2x3x8x8xf32>
  %p = ckopt.softmax %m {axis = 3 : i64} : (tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32>
  %o = ckopt.matmul %p, %v : (tensor<2x3x8x8xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32>
  return %o : tensor<2x3x8x4xf32>
}

// -----

// So may others than those that were counted.
// CHECK-LABEL: func.func @other_positions(
// CHECK:         ckopt.attention %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} mask %{{[^ ]*}} segments %{{[^ ]*}} {scale = 1.000000e+00 : f64}
func.func @other_positions(%q: tensor<2x3x8x4xf32>, %k: tensor<2x3x8x4xf32>, %v: tensor<2x3x8x4xf32>, %n: tensor<2x8xi64>, %p2: tensor<2x8xi64>) -> tensor<2x3x8x4xf32> {
  %low = ckopt.constant dense<0xFF800000> : tensor<f32>
  %one = ckopt.constant dense<1> : tensor<i64>
  %first = ckopt.constant dense<-1> : tensor<2x1xi64>
  %all = ckopt.concat %first, %n {axis = 1 : i64} : (tensor<2x1xi64>, tensor<2x8xi64>) -> tensor<2x9xi64>
  %before = ckopt.slice %all {sizes = array<i64: 2, 8>, starts = array<i64: 0, 0>, steps = array<i64: 1, 1>} : (tensor<2x9xi64>) -> tensor<2x8xi64>
  %step = ckopt.sub %n, %before : (tensor<2x8xi64>, tensor<2x8xi64>) -> tensor<2x8xi64>
  %breaks = ckopt.compare ne %step, %one : (tensor<2x8xi64>, tensor<i64>) -> tensor<2x8xi1>
  %broken = ckopt.cast %breaks : (tensor<2x8xi1>) -> tensor<2x8xi64>
  %sum = ckopt.cumulative_sum %broken {axis = 1 : i64} : (tensor<2x8xi64>) -> tensor<2x8xi64>
  %sr = ckopt.reshape %sum : (tensor<2x8xi64>) -> tensor<2x1x8x1xi64>
  %sc = ckopt.reshape %sum : (tensor<2x8xi64>) -> tensor<2x1x1x8xi64>
  %pr = ckopt.reshape %p2 : (tensor<2x8xi64>) -> tensor<2x1x8x1xi64>
  %pc = ckopt.reshape %p2 : (tensor<2x8xi64>) -> tensor<2x1x1x8xi64>
  %le = ckopt.compare le %pc, %pr : (tensor<2x1x1x8xi64>, tensor<2x1x8x1xi64>) -> tensor<2x1x8x8xi1>
  %same = ckopt.compare eq %sr, %sc : (tensor<2x1x8x1xi64>, tensor<2x1x1x8xi64>) -> tensor<2x1x8x8xi1>
  %open = ckopt.and %le, %same : (tensor<2x1x8x8xi1>, tensor<2x1x8x8xi1>) -> tensor<2x1x8x8xi1>
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x8xf32>
  %m = ckopt.select %open, %s, %low : (tensor<2x1x8x8xi1>, tensor<2x3x8x8xf32>, tensor<f32>) -> tensor<2x3x8x8xf32>
  %p = ckopt.softmax %m {axis = 3 : i64} : (tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32>
  %o = ckopt.matmul %p, %v : (tensor<2x3x8x8xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32>
  return %o : tensor<2x3x8x4xf32>
}

// -----

// With a finite number a row that is all padding goes to keys of other segments.
// CHECK-LABEL: func.func @segments_and_padding(
// CHECK:         ckopt.attention %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} mask %{{[^ ]*}} {fill = 
func.func @segments_and_padding(%q: tensor<2x3x8x4xf32>, %k: tensor<2x3x8x4xf32>, %v: tensor<2x3x8x4xf32>, %n: tensor<2x8xi64>, %keep: tensor<2x1x1x8xi1>) -> tensor<2x3x8x4xf32> {
  %low = ckopt.constant dense<-3.40282347E+38> : tensor<f32>
  %r = ckopt.reshape %n : (tensor<2x8xi64>) -> tensor<2x1x8x1xi64>
  %c = ckopt.reshape %n : (tensor<2x8xi64>) -> tensor<2x1x1x8xi64>
  %same = ckopt.compare eq %r, %c : (tensor<2x1x8x1xi64>, tensor<2x1x1x8xi64>) -> tensor<2x1x8x8xi1>
  %open = ckopt.and %keep, %same : (tensor<2x1x1x8xi1>, tensor<2x1x8x8xi1>) -> tensor<2x1x8x8xi1>
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x8xf32>
  %m = ckopt.select %open, %s, %low : (tensor<2x1x8x8xi1>, tensor<2x3x8x8xf32>, tensor<f32>) -> tensor<2x3x8x8xf32>
  %p = ckopt.softmax %m {axis = 3 : i64} : (tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32>
  %o = ckopt.matmul %p, %v : (tensor<2x3x8x8xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32>
  return %o : tensor<2x3x8x4xf32>
}
