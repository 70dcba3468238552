// A softmax between two products is attention: masks, biases and factors on the way become
// operands and attributes. What is none stays.
// RUN: ckopt-opt %s --split-input-file --fuse-attention --canonicalize --verify-diagnostics | FileCheck %s
// RUN: ckopt-opt %s --split-input-file --fuse-attention='least-keys=9' | FileCheck %s --check-prefix=FEW
// FEW-NOT: ckopt.attention
// RUN: ckopt-opt %s --split-input-file --fuse-attention='most-columns=4' 2>%t.txt | FileCheck %s --check-prefix=WIDE
// RUN: FileCheck %s --check-prefix=TOLD --input-file=%t.txt
// TOLD: remark: attention keeps its matrix of scores here{{.*}}: its heads have 5 columns, and the target has attention of up to 4

// The factor of the scores and those of query and key are one scale.
// CHECK-LABEL: func.func @plain(
// CHECK-SAME:    %[[Q:[^:]*]]: tensor<2x3x8x4xf32>, %[[K:[^:]*]]: tensor<2x3x8x4xf32>, %[[V:[^:]*]]: tensor<2x3x8x5xf32>
// CHECK:         %[[O:.*]], %{{.*}} = ckopt.attention %[[Q]], %[[K]], %[[V]] {scale = 1.000000e+00 : f64}
// CHECK-NEXT:    return %[[O]]
// WIDE-LABEL:    func.func @plain(
// WIDE-NOT:      ckopt.attention
func.func @plain(%q: tensor<2x3x8x4xf32>, %k: tensor<2x3x8x4xf32>, %v: tensor<2x3x8x5xf32>) -> tensor<2x3x8x5xf32> {
  %two = ckopt.constant dense<2.0> : tensor<f32>
  %r = ckopt.mul %q, %two : (tensor<2x3x8x4xf32>, tensor<f32>) -> tensor<2x3x8x4xf32>
  %s = ckopt.matmul %r, %k {transpose_rhs} : (tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x8xf32>
  %t = ckopt.div %s, %two : (tensor<2x3x8x8xf32>, tensor<f32>) -> tensor<2x3x8x8xf32>
  %p = ckopt.softmax %t {axis = 3 : i64} : (tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32>
  %o = ckopt.matmul %p, %v : (tensor<2x3x8x8xf32>, tensor<2x3x8x5xf32>) -> tensor<2x3x8x5xf32>
  return %o : tensor<2x3x8x5xf32>
}

// -----

// A constant triangle is causality, whether it is selected or added; -1e9 is as good as -inf there.
// CHECK-LABEL: func.func @causal(
// WIDE-LABEL: func.func @causal(
// WIDE:         ckopt.attention
// CHECK:         ckopt.attention %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} {causal = 0 : i64, scale = 1.000000e+00 : f64}
func.func @causal(%q: tensor<3x8x4xf32>, %k: tensor<3x8x4xf32>, %v: tensor<3x8x4xf32>) -> tensor<3x8x4xf32> {
  %ones = ckopt.constant dense<1.0> : tensor<8x8xf32>
  %zero = ckopt.constant dense<0.0> : tensor<f32>
  %low = ckopt.constant dense<-1.0e9> : tensor<f32>
  %lower = ckopt.trilu %ones {upper = false} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %closed = ckopt.compare eq %lower, %zero : (tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xi1>
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<3x8x4xf32>, tensor<3x8x4xf32>) -> tensor<3x8x8xf32>
  %m = ckopt.select %closed, %low, %s : (tensor<8x8xi1>, tensor<f32>, tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %p = ckopt.softmax %m {axis = 2 : i64} : (tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %o = ckopt.matmul %p, %v : (tensor<3x8x8xf32>, tensor<3x8x4xf32>) -> tensor<3x8x4xf32>
  return %o : tensor<3x8x4xf32>
}

// -----

// Two queries behind six earlier keys.
// CHECK-LABEL: func.func @causal_bias(
// CHECK:         ckopt.attention %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} {causal = 2 : i64, scale = 1.000000e+00 : f64}
func.func @causal_bias(%q: tensor<3x2x4xf32>, %k: tensor<3x4x4xf32>, %v: tensor<3x4x4xf32>) -> tensor<3x2x4xf32> {
  %bias = ckopt.constant dense<[[0.0, 0.0, 0.0, 0xFF800000], [0.0, 0.0, 0.0, 0.0]]> : tensor<2x4xf32>
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<3x2x4xf32>, tensor<3x4x4xf32>) -> tensor<3x2x4xf32>
  %m = ckopt.add %s, %bias : (tensor<3x2x4xf32>, tensor<2x4xf32>) -> tensor<3x2x4xf32>
  %p = ckopt.softmax %m {axis = 2 : i64} : (tensor<3x2x4xf32>) -> tensor<3x2x4xf32>
  %o = ckopt.matmul %p, %v : (tensor<3x2x4xf32>, tensor<3x4x4xf32>) -> tensor<3x2x4xf32>
  return %o : tensor<3x2x4xf32>
}

// -----

// What is subtracted is added with the other sign: a constant one is a bound here, too.
// CHECK-LABEL: func.func @subtracted_bias(
// CHECK-SAME:    %[[BIAS:[^:]*]]: tensor<2x4xf32>
// CHECK:         %[[NEG:.*]] = ckopt.neg %[[BIAS]]
// CHECK:         ckopt.attention %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} bias %[[NEG]] {causal = 2 : i64, scale = 1.000000e+00 : f64}
func.func @subtracted_bias(%q: tensor<3x2x4xf32>, %k: tensor<3x4x4xf32>, %v: tensor<3x4x4xf32>, %bias: tensor<2x4xf32>) -> tensor<3x2x4xf32> {
  %low = ckopt.constant dense<[[0.0, 0.0, 0.0, 0x7F800000], [0.0, 0.0, 0.0, 0.0]]> : tensor<2x4xf32>
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<3x2x4xf32>, tensor<3x4x4xf32>) -> tensor<3x2x4xf32>
  %d = ckopt.sub %s, %bias : (tensor<3x2x4xf32>, tensor<2x4xf32>) -> tensor<3x2x4xf32>
  %m = ckopt.sub %d, %low : (tensor<3x2x4xf32>, tensor<2x4xf32>) -> tensor<3x2x4xf32>
  %p = ckopt.softmax %m {axis = 2 : i64} : (tensor<3x2x4xf32>) -> tensor<3x2x4xf32>
  %o = ckopt.matmul %p, %v : (tensor<3x2x4xf32>, tensor<3x4x4xf32>) -> tensor<3x2x4xf32>
  return %o : tensor<3x2x4xf32>
}

// -----

// Masks and biases of the data stay operands; NaN replaced by 0 says that rows may be empty. A
// fill that is finite is kept.
// CHECK-LABEL: func.func @masked(
// CHECK-SAME:    %[[BIAS:[^:]*]]: tensor<1x1x8xf32>, %[[OPEN:[^:]*]]: tensor<8x8xi1>
// CHECK:         ckopt.attention %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} bias %[[BIAS]] mask %[[OPEN]] {scale = 1.000000e+00 : f64, zero_empty_rows}
func.func @masked(%q: tensor<3x8x4xf32>, %k: tensor<3x8x4xf32>, %v: tensor<3x8x4xf32>, %bias: tensor<1x1x8xf32>, %open: tensor<8x8xi1>) -> tensor<3x8x4xf32> {
  %low = ckopt.constant dense<0xFF800000> : tensor<f32>
  %zero = ckopt.constant dense<0.0> : tensor<f32>
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<3x8x4xf32>, tensor<3x8x4xf32>) -> tensor<3x8x8xf32>
  %b = ckopt.add %s, %bias : (tensor<3x8x8xf32>, tensor<1x1x8xf32>) -> tensor<3x8x8xf32>
  %m = ckopt.select %open, %b, %low : (tensor<8x8xi1>, tensor<3x8x8xf32>, tensor<f32>) -> tensor<3x8x8xf32>
  %p = ckopt.softmax %m {axis = 2 : i64} : (tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %nan = ckopt.compare ne %p, %p : (tensor<3x8x8xf32>, tensor<3x8x8xf32>) -> tensor<3x8x8xi1>
  %r = ckopt.select %nan, %zero, %p : (tensor<3x8x8xi1>, tensor<f32>, tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %o = ckopt.matmul %r, %v : (tensor<3x8x8xf32>, tensor<3x8x4xf32>) -> tensor<3x8x4xf32>
  return %o : tensor<3x8x4xf32>
}

// -----

// Rows that a condition empties, before the softmax and behind it, are masked wholly.
// CHECK-LABEL: func.func @empty_rows(
// CHECK:         ckopt.attention %{{.*}} mask %{{[^ ]*}} {scale = 1.000000e+00 : f64, zero_empty_rows}
func.func @empty_rows(%q: tensor<3x8x4xf32>, %k: tensor<3x8x4xf32>, %v: tensor<3x8x4xf32>, %open: tensor<8x8xi1>, %empty: tensor<8x1xi1>) -> tensor<3x8x4xf32> {
  %low = ckopt.constant dense<0xFF800000> : tensor<f32>
  %zero = ckopt.constant dense<0.0> : tensor<f32>
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<3x8x4xf32>, tensor<3x8x4xf32>) -> tensor<3x8x8xf32>
  %m = ckopt.select %open, %s, %low : (tensor<8x8xi1>, tensor<3x8x8xf32>, tensor<f32>) -> tensor<3x8x8xf32>
  %f = ckopt.select %empty, %zero, %m : (tensor<8x1xi1>, tensor<f32>, tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %p = ckopt.softmax %f {axis = 2 : i64} : (tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %w = ckopt.select %empty, %zero, %p : (tensor<8x1xi1>, tensor<f32>, tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %o = ckopt.matmul %w, %v : (tensor<3x8x8xf32>, tensor<3x8x4xf32>) -> tensor<3x8x4xf32>
  return %o : tensor<3x8x4xf32>
}

// -----

// A condition that holds for no row is none: here no row of a causal mask is empty.
// CHECK-LABEL: func.func @no_empty_rows(
// CHECK:         ckopt.attention %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} {causal = 0 : i64, scale = 1.000000e+00 : f64} :
func.func @no_empty_rows(%q: tensor<3x8x4xf32>, %k: tensor<3x8x4xf32>, %v: tensor<3x8x4xf32>) -> tensor<3x8x4xf32> {
  %low = ckopt.constant dense<0xFF800000> : tensor<f32>
  %zero = ckopt.constant dense<0.0> : tensor<f32>
  %ones = ckopt.constant dense<true> : tensor<8x8xi1>
  %open = ckopt.trilu %ones {k = 0 : i64, upper = false} : (tensor<8x8xi1>) -> tensor<8x8xi1>
  %numbers = ckopt.cast %open : (tensor<8x8xi1>) -> tensor<8x8xf32>
  %best = ckopt.reduce max %numbers {axes = array<i64: 1>, keepdims = true} : (tensor<8x8xf32>) -> tensor<8x1xf32>
  %empty = ckopt.compare eq %best, %zero : (tensor<8x1xf32>, tensor<f32>) -> tensor<8x1xi1>
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<3x8x4xf32>, tensor<3x8x4xf32>) -> tensor<3x8x8xf32>
  %m = ckopt.select %open, %s, %low : (tensor<8x8xi1>, tensor<3x8x8xf32>, tensor<f32>) -> tensor<3x8x8xf32>
  %f = ckopt.select %empty, %zero, %m : (tensor<8x1xi1>, tensor<f32>, tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %p = ckopt.softmax %f {axis = 2 : i64} : (tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %w = ckopt.select %empty, %zero, %p : (tensor<8x1xi1>, tensor<f32>, tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %o = ckopt.matmul %w, %v : (tensor<3x8x8xf32>, tensor<3x8x4xf32>) -> tensor<3x8x4xf32>
  return %o : tensor<3x8x4xf32>
}

// -----

// Where masks have a finite fill, such rows would get a mean of the values.
// CHECK-LABEL: func.func @empty_rows_of_finite_fill(
// CHECK-NOT:     ckopt.attention
func.func @empty_rows_of_finite_fill(%q: tensor<3x8x4xf32>, %k: tensor<3x8x4xf32>, %v: tensor<3x8x4xf32>, %open: tensor<8x8xi1>, %empty: tensor<8x1xi1>) -> tensor<3x8x4xf32> {
  %low = ckopt.constant dense<-1.0e9> : tensor<f32>
  %zero = ckopt.constant dense<0.0> : tensor<f32>
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<3x8x4xf32>, tensor<3x8x4xf32>) -> tensor<3x8x8xf32>
  %m = ckopt.select %open, %s, %low : (tensor<8x8xi1>, tensor<3x8x8xf32>, tensor<f32>) -> tensor<3x8x8xf32>
  %f = ckopt.select %empty, %zero, %m : (tensor<8x1xi1>, tensor<f32>, tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %p = ckopt.softmax %f {axis = 2 : i64} : (tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %w = ckopt.select %empty, %zero, %p : (tensor<8x1xi1>, tensor<f32>, tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %o = ckopt.matmul %w, %v : (tensor<3x8x8xf32>, tensor<3x8x4xf32>) -> tensor<3x8x4xf32>
  return %o : tensor<3x8x4xf32>
}

// -----

// Zeros for single elements count in the sum of a row, and are no mask.
// CHECK-LABEL: func.func @empty_elements(
// CHECK-NOT:     ckopt.attention
func.func @empty_elements(%q: tensor<3x8x4xf32>, %k: tensor<3x8x4xf32>, %v: tensor<3x8x4xf32>, %open: tensor<8x8xi1>, %empty: tensor<8x8xi1>) -> tensor<3x8x4xf32> {
  %low = ckopt.constant dense<0xFF800000> : tensor<f32>
  %zero = ckopt.constant dense<0.0> : tensor<f32>
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<3x8x4xf32>, tensor<3x8x4xf32>) -> tensor<3x8x8xf32>
  %m = ckopt.select %open, %s, %low : (tensor<8x8xi1>, tensor<3x8x8xf32>, tensor<f32>) -> tensor<3x8x8xf32>
  %f = ckopt.select %empty, %zero, %m : (tensor<8x8xi1>, tensor<f32>, tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %p = ckopt.softmax %f {axis = 2 : i64} : (tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %w = ckopt.select %empty, %zero, %p : (tensor<8x8xi1>, tensor<f32>, tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %o = ckopt.matmul %w, %v : (tensor<3x8x8xf32>, tensor<3x8x4xf32>) -> tensor<3x8x4xf32>
  return %o : tensor<3x8x4xf32>
}

// -----

// CHECK-LABEL: func.func @fill(
// CHECK:         ckopt.attention %{{.*}} mask %{{[^ ]*}} {fill = -1.000000e+04 : f64, scale = 1.000000e+00 : f64}
func.func @fill(%q: tensor<3x8x4xf32>, %k: tensor<3x8x4xf32>, %v: tensor<3x8x4xf32>, %open: tensor<8x8xi1>) -> tensor<3x8x4xf32> {
  %low = ckopt.constant dense<-1.0e4> : tensor<f32>
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<3x8x4xf32>, tensor<3x8x4xf32>) -> tensor<3x8x8xf32>
  %m = ckopt.select %open, %s, %low : (tensor<8x8xi1>, tensor<3x8x8xf32>, tensor<f32>) -> tensor<3x8x8xf32>
  %p = ckopt.softmax %m {axis = 2 : i64} : (tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %o = ckopt.matmul %p, %v : (tensor<3x8x8xf32>, tensor<3x8x4xf32>) -> tensor<3x8x4xf32>
  return %o : tensor<3x8x4xf32>
}

// -----

// Keys that were expanded to the query heads are read where they are, through a transpose as well.
// CHECK-LABEL: func.func @groups(
// CHECK:         ckopt.attention %{{.*}} : (tensor<2x4x8x3xf32>, tensor<2x2x8x3xf32>, tensor<2x2x8x3xf32>)
func.func @groups(%q: tensor<2x4x8x3xf32>, %k: tensor<2x2x1x8x3xf32>, %v: tensor<2x2x1x8x3xf32>) -> tensor<2x4x8x3xf32> {
  %ke = ckopt.expand %k : (tensor<2x2x1x8x3xf32>) -> tensor<2x2x2x8x3xf32>
  %ve = ckopt.expand %v : (tensor<2x2x1x8x3xf32>) -> tensor<2x2x2x8x3xf32>
  %kr = ckopt.reshape %ke : (tensor<2x2x2x8x3xf32>) -> tensor<8x8x3xf32>
  %kt = ckopt.transpose %kr {permutation = array<i64: 0, 2, 1>} : (tensor<8x8x3xf32>) -> tensor<8x3x8xf32>
  %kh = ckopt.reshape %kt : (tensor<8x3x8xf32>) -> tensor<2x4x3x8xf32>
  %vh = ckopt.reshape %ve : (tensor<2x2x2x8x3xf32>) -> tensor<2x4x8x3xf32>
  %s = ckopt.matmul %q, %kh : (tensor<2x4x8x3xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x8x8xf32>
  %p = ckopt.softmax %s {axis = 3 : i64} : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = ckopt.matmul %p, %vh : (tensor<2x4x8x8xf32>, tensor<2x4x8x3xf32>) -> tensor<2x4x8x3xf32>
  return %o : tensor<2x4x8x3xf32>
}

// -----

// A dropout of the probabilities becomes the op's own, with its seed, ratio and site; one that drops
// nothing goes.
// CHECK-LABEL: func.func @dropout(
// CHECK-SAME:    %[[SEED:[^:]*]]: tensor<i64>, %[[STEP:[^:]*]]: tensor<i64>
// CHECK:         ckopt.attention {{.*}} dropout %[[SEED]], %[[STEP]] {ratio = 1.000000e-01 : f64, scale = 1.000000e+00 : f64, site = 3 : i64}
// CHECK:         ckopt.attention {{[^d]*}} {scale = 1.000000e+00 : f64}
func.func @dropout(%q: tensor<3x8x4xf32>, %k: tensor<3x8x4xf32>, %v: tensor<3x8x4xf32>, %seed: tensor<i64>, %step: tensor<i64>) -> tensor<3x8x4xf32> {
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<3x8x4xf32>, tensor<3x8x4xf32>) -> tensor<3x8x8xf32>
  %p = ckopt.softmax %s {axis = 2 : i64} : (tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %d = ckopt.dropout %p, %seed, %step {ratio = 0.1 : f64, site = 3 : i64} : (tensor<3x8x8xf32>, tensor<i64>, tensor<i64>) -> tensor<3x8x8xf32>
  %o = ckopt.matmul %d, %v : (tensor<3x8x8xf32>, tensor<3x8x4xf32>) -> tensor<3x8x4xf32>
  %s1 = ckopt.matmul %o, %k {transpose_rhs} : (tensor<3x8x4xf32>, tensor<3x8x4xf32>) -> tensor<3x8x8xf32>
  %p1 = ckopt.softmax %s1 {axis = 2 : i64} : (tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %d1 = ckopt.dropout %p1, %seed, %step {ratio = 0.0 : f64, site = 4 : i64} : (tensor<3x8x8xf32>, tensor<i64>, tensor<i64>) -> tensor<3x8x8xf32>
  %o1 = ckopt.matmul %d1, %v : (tensor<3x8x8xf32>, tensor<3x8x4xf32>) -> tensor<3x8x4xf32>
  return %o1 : tensor<3x8x4xf32>
}

// -----

// CHECK-LABEL: func.func @subtracted_trained_bias(
// CHECK-NOT:     ckopt.attention
// CHECK-NOT:     ckopt.neg
// CHECK:         return
func.func @subtracted_trained_bias(%q: tensor<3x8x4xf32>, %k: tensor<3x8x4xf32>, %v: tensor<3x8x4xf32>, %b: tensor<8x8xf32> {ckopt.role = "parameter"}) -> tensor<3x8x4xf32> {
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<3x8x4xf32>, tensor<3x8x4xf32>) -> tensor<3x8x8xf32>
  %m = ckopt.sub %s, %b : (tensor<3x8x8xf32>, tensor<8x8xf32>) -> tensor<3x8x8xf32>
  // expected-remark@+1 {{a trained bias is added to the scores}}
  %p = ckopt.softmax %m {axis = 2 : i64} : (tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %o = ckopt.matmul %p, %v : (tensor<3x8x8xf32>, tensor<3x8x4xf32>) -> tensor<3x8x4xf32>
  return %o : tensor<3x8x4xf32>
}

// -----

// CHECK-LABEL: func.func @trained_bias(
// CHECK-NOT:     ckopt.attention
func.func @trained_bias(%q: tensor<3x8x4xf32>, %k: tensor<3x8x4xf32>, %v: tensor<3x8x4xf32>, %b: tensor<8x8xf32> {ckopt.role = "parameter"}) -> tensor<3x8x4xf32> {
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<3x8x4xf32>, tensor<3x8x4xf32>) -> tensor<3x8x8xf32>
  %m = ckopt.add %s, %b : (tensor<3x8x8xf32>, tensor<8x8xf32>) -> tensor<3x8x8xf32>
  // expected-remark@+1 {{a trained bias is added to the scores}}
  %p = ckopt.softmax %m {axis = 2 : i64} : (tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %o = ckopt.matmul %p, %v : (tensor<3x8x8xf32>, tensor<3x8x4xf32>) -> tensor<3x8x4xf32>
  return %o : tensor<3x8x4xf32>
}

// -----

// Scores that somebody else reads are needed anyway.
// CHECK-LABEL: func.func @read(
// CHECK-NOT:     ckopt.attention
func.func @read(%q: tensor<3x8x4xf32>, %k: tensor<3x8x4xf32>, %v: tensor<3x8x4xf32>) -> (tensor<3x8x4xf32>, tensor<3x8x8xf32>) {
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<3x8x4xf32>, tensor<3x8x4xf32>) -> tensor<3x8x8xf32>
  %p = ckopt.softmax %s {axis = 2 : i64} : (tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %o = ckopt.matmul %p, %v : (tensor<3x8x8xf32>, tensor<3x8x4xf32>) -> tensor<3x8x4xf32>
  return %o, %p : tensor<3x8x4xf32>, tensor<3x8x8xf32>
}

// -----

// Causality and padding: the padding stays a mask of keys.
// CHECK-LABEL: func.func @causal_and_padding(
// CHECK-SAME:    %[[KEEP:[^:]*]]: tensor<1x8xi1>)
// CHECK-NOT:     8x8xi1
// CHECK:         ckopt.attention %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} mask %[[KEEP]] {causal = 0 : i64, scale = 1.000000e+00 : f64}
func.func @causal_and_padding(%q: tensor<3x8x4xf32>, %k: tensor<3x8x4xf32>, %v: tensor<3x8x4xf32>, %keep: tensor<1x8xi1>) -> tensor<3x8x4xf32> {
  %row = ckopt.iota {axis = 0 : i64} : tensor<8x1xi64>
  %column = ckopt.iota {axis = 1 : i64} : tensor<1x8xi64>
  %zero = ckopt.constant dense<0.0> : tensor<f32>
  %low = ckopt.constant dense<0xFF800000> : tensor<f32>
  %le = ckopt.compare le %column, %row : (tensor<1x8xi64>, tensor<8x1xi64>) -> tensor<8x8xi1>
  %open = ckopt.and %le, %keep : (tensor<8x8xi1>, tensor<1x8xi1>) -> tensor<8x8xi1>
  %bias = ckopt.select %open, %zero, %low : (tensor<8x8xi1>, tensor<f32>, tensor<f32>) -> tensor<8x8xf32>
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<3x8x4xf32>, tensor<3x8x4xf32>) -> tensor<3x8x8xf32>
  %m = ckopt.add %s, %bias : (tensor<3x8x8xf32>, tensor<8x8xf32>) -> tensor<3x8x8xf32>
  %p = ckopt.softmax %m {axis = 2 : i64} : (tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %o = ckopt.matmul %p, %v : (tensor<3x8x8xf32>, tensor<3x8x4xf32>) -> tensor<3x8x4xf32>
  return %o : tensor<3x8x4xf32>
}

// -----

// With a finite number a row whose keys are all padding goes to later keys: no causality.
// CHECK-LABEL: func.func @finite_and_padding(
// CHECK-NOT:     causal
// CHECK:         ckopt.attention {{.*}} mask %{{[^ ]*}} {fill = -1.000000e+09 : f64, scale = 1.000000e+00 : f64}
func.func @finite_and_padding(%q: tensor<3x8x4xf32>, %k: tensor<3x8x4xf32>, %v: tensor<3x8x4xf32>, %keep: tensor<1x8xi1>) -> tensor<3x8x4xf32> {
  %row = ckopt.iota {axis = 0 : i64} : tensor<8x1xi64>
  %column = ckopt.iota {axis = 1 : i64} : tensor<1x8xi64>
  %low = ckopt.constant dense<-1.0e9> : tensor<f32>
  %le = ckopt.compare le %column, %row : (tensor<1x8xi64>, tensor<8x1xi64>) -> tensor<8x8xi1>
  %open = ckopt.and %le, %keep : (tensor<8x8xi1>, tensor<1x8xi1>) -> tensor<8x8xi1>
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<3x8x4xf32>, tensor<3x8x4xf32>) -> tensor<3x8x8xf32>
  %m = ckopt.select %open, %s, %low : (tensor<8x8xi1>, tensor<3x8x8xf32>, tensor<f32>) -> tensor<3x8x8xf32>
  %p = ckopt.softmax %m {axis = 2 : i64} : (tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %o = ckopt.matmul %p, %v : (tensor<3x8x8xf32>, tensor<3x8x4xf32>) -> tensor<3x8x4xf32>
  return %o : tensor<3x8x4xf32>
}

// -----

// Attention of bf16 computes in f32 inside, and adds what is added in f32.
// CHECK-LABEL: func.func @halves(
// CHECK-SAME:    %[[BIAS:[^:]*]]: tensor<8x8xbf16>)
// CHECK:         %[[FULL:.*]] = ckopt.cast %[[BIAS]] : (tensor<8x8xbf16>) -> tensor<8x8xf32>
// CHECK:         ckopt.attention %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} bias %[[FULL]] {{.*}} -> (tensor<3x8x4xbf16>, tensor<3x8x2xf32>)
func.func @halves(%q: tensor<3x8x4xbf16>, %k: tensor<3x8x4xbf16>, %v: tensor<3x8x4xbf16>, %bias: tensor<8x8xbf16>) -> tensor<3x8x4xbf16> {
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<3x8x4xbf16>, tensor<3x8x4xbf16>) -> tensor<3x8x8xbf16>
  %m = ckopt.add %s, %bias : (tensor<3x8x8xbf16>, tensor<8x8xbf16>) -> tensor<3x8x8xbf16>
  %p = ckopt.softmax %m {axis = 2 : i64} : (tensor<3x8x8xbf16>) -> tensor<3x8x8xbf16>
  %o = ckopt.matmul %p, %v : (tensor<3x8x8xbf16>, tensor<3x8x4xbf16>) -> tensor<3x8x4xbf16>
  return %o : tensor<3x8x4xbf16>
}

// -----

// A cap of the scores, below what is added to them: the scale is that before the cap.
// CHECK-LABEL: func.func @cap(
// CHECK-SAME:    %[[BIAS:[^:]*]]: tensor<1x1x8xf32>)
// CHECK:         ckopt.attention %{{[^,]*}}, %{{[^,]*}}, %{{[^ ]*}} bias %[[BIAS]] {causal = 0 : i64, scale = 5.000000e-01 : f64, softcap = 5.000000e+01 : f64}
func.func @cap(%q: tensor<3x8x4xf32>, %k: tensor<3x8x4xf32>, %v: tensor<3x8x4xf32>, %bias: tensor<1x1x8xf32>) -> tensor<3x8x4xf32> {
  %ones = ckopt.constant dense<1.0> : tensor<8x8xf32>
  %zero = ckopt.constant dense<0.0> : tensor<f32>
  %low = ckopt.constant dense<0xFF800000> : tensor<f32>
  %scale = ckopt.constant dense<0.5> : tensor<f32>
  %cap = ckopt.constant dense<50.0> : tensor<f32>
  %lower = ckopt.trilu %ones {upper = false} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %closed = ckopt.compare eq %lower, %zero : (tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xi1>
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<3x8x4xf32>, tensor<3x8x4xf32>) -> tensor<3x8x8xf32>
  %x = ckopt.mul %s, %scale : (tensor<3x8x8xf32>, tensor<f32>) -> tensor<3x8x8xf32>
  %d = ckopt.div %x, %cap : (tensor<3x8x8xf32>, tensor<f32>) -> tensor<3x8x8xf32>
  %t = ckopt.tanh %d : (tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %c = ckopt.mul %t, %cap : (tensor<3x8x8xf32>, tensor<f32>) -> tensor<3x8x8xf32>
  %b = ckopt.add %c, %bias : (tensor<3x8x8xf32>, tensor<1x1x8xf32>) -> tensor<3x8x8xf32>
  %m = ckopt.select %closed, %low, %b : (tensor<8x8xi1>, tensor<f32>, tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %p = ckopt.softmax %m {axis = 2 : i64} : (tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %o = ckopt.matmul %p, %v : (tensor<3x8x8xf32>, tensor<3x8x4xf32>) -> tensor<3x8x4xf32>
  return %o : tensor<3x8x4xf32>
}

// -----

// By a factor in place of the division; any c tanh(f s) is a cap of |c|, with the scale c f.
// CHECK-LABEL: func.func @cap_by_factors(
// CHECK:         ckopt.attention {{.*}} {scale = 5.000000e-01 : f64, softcap = 2.000000e+00 : f64}
func.func @cap_by_factors(%q: tensor<3x8x4xf32>, %k: tensor<3x8x4xf32>, %v: tensor<3x8x4xf32>) -> tensor<3x8x4xf32> {
  %inverse = ckopt.constant dense<-0.25> : tensor<f32>
  %cap = ckopt.constant dense<-2.0> : tensor<f32>
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<3x8x4xf32>, tensor<3x8x4xf32>) -> tensor<3x8x8xf32>
  %d = ckopt.mul %inverse, %s : (tensor<f32>, tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %t = ckopt.tanh %d : (tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %c = ckopt.mul %cap, %t : (tensor<f32>, tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %p = ckopt.softmax %c {axis = 2 : i64} : (tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %o = ckopt.matmul %p, %v : (tensor<3x8x8xf32>, tensor<3x8x4xf32>) -> tensor<3x8x4xf32>
  return %o : tensor<3x8x4xf32>
}

// -----

// What is added before the cap, a second one, and one whose values others read: these stay.
// CHECK-LABEL: func.func @bias_before_cap(
// CHECK-NOT:     ckopt.attention
func.func @bias_before_cap(%q: tensor<3x8x4xf32>, %k: tensor<3x8x4xf32>, %v: tensor<3x8x4xf32>, %bias: tensor<1x1x8xf32>) -> tensor<3x8x4xf32> {
  %cap = ckopt.constant dense<50.0> : tensor<f32>
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<3x8x4xf32>, tensor<3x8x4xf32>) -> tensor<3x8x8xf32>
  %b = ckopt.add %s, %bias : (tensor<3x8x8xf32>, tensor<1x1x8xf32>) -> tensor<3x8x8xf32>
  %d = ckopt.div %b, %cap : (tensor<3x8x8xf32>, tensor<f32>) -> tensor<3x8x8xf32>
  %t = ckopt.tanh %d : (tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %c = ckopt.mul %t, %cap : (tensor<3x8x8xf32>, tensor<f32>) -> tensor<3x8x8xf32>
  %p = ckopt.softmax %c {axis = 2 : i64} : (tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %o = ckopt.matmul %p, %v : (tensor<3x8x8xf32>, tensor<3x8x4xf32>) -> tensor<3x8x4xf32>
  return %o : tensor<3x8x4xf32>
}

// -----

// CHECK-LABEL: func.func @two_caps(
// CHECK-NOT:     ckopt.attention
func.func @two_caps(%q: tensor<3x8x4xf32>, %k: tensor<3x8x4xf32>, %v: tensor<3x8x4xf32>) -> tensor<3x8x4xf32> {
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<3x8x4xf32>, tensor<3x8x4xf32>) -> tensor<3x8x8xf32>
  %t = ckopt.tanh %s : (tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %c = ckopt.tanh %t : (tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %p = ckopt.softmax %c {axis = 2 : i64} : (tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %o = ckopt.matmul %p, %v : (tensor<3x8x8xf32>, tensor<3x8x4xf32>) -> tensor<3x8x4xf32>
  return %o : tensor<3x8x4xf32>
}

// -----

// CHECK-LABEL: func.func @read_cap(
// CHECK-NOT:     ckopt.attention
func.func @read_cap(%q: tensor<3x8x4xf32>, %k: tensor<3x8x4xf32>, %v: tensor<3x8x4xf32>) -> (tensor<3x8x4xf32>, tensor<3x8x8xf32>) {
  %s = ckopt.matmul %q, %k {transpose_rhs} : (tensor<3x8x4xf32>, tensor<3x8x4xf32>) -> tensor<3x8x8xf32>
  %t = ckopt.tanh %s : (tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %p = ckopt.softmax %t {axis = 2 : i64} : (tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  %o = ckopt.matmul %p, %v : (tensor<3x8x8xf32>, tensor<3x8x4xf32>) -> tensor<3x8x4xf32>
  return %o, %t : tensor<3x8x4xf32>, tensor<3x8x8xf32>
}
