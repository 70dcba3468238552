// A cross entropy over the last dimension of a product with one matrix becomes
// linear_cross_entropy; what lies between the two and names or chooses rows is done
// to the product's input.
// RUN: ckopt-opt %s --split-input-file --chunk-vocab=rows=2 --canonicalize --verify-diagnostics | FileCheck %s
// RUN: ckopt-opt %s --split-input-file --chunk-vocab=rows=off | FileCheck %s --check-prefix=OFF
// RUN: ckopt-opt %s --split-input-file --chunk-vocab | FileCheck %s --check-prefix=OFF
// RUN: not ckopt-opt %s --split-input-file --chunk-vocab=rows=0 2>&1 | FileCheck %s --check-prefix=BAD
// OFF-NOT: linear_cross_entropy
// BAD: chunk-vocab: '0' is not auto, off, or a positive number of rows

// The logits are a result as well, which autodiff drops; the tied weight is read
// elsewhere.
// CHECK-LABEL: func.func @forward(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<6x4xf32>, %[[W:[^:]*]]: tensor<5x4xf32>, %[[T:[^:]*]]: tensor<2x3xi64>
// CHECK:         %[[ROWS:.*]] = ckopt.reshape %[[T]] : (tensor<2x3xi64>) -> tensor<6xi64>
// CHECK:         %[[EACH:.*]] = ckopt.linear_cross_entropy %[[X]], %[[W]], %[[ROWS]] {ignore_index = 3 : i64, rows = 2 : i64, transpose_weight}
// CHECK:         %[[LOSS:.*]] = ckopt.reshape %[[EACH]] : (tensor<6xf32>) -> tensor<2x3xf32>
// CHECK:         return %[[LOSS]],
func.func @forward(%x: tensor<6x4xf32>, %w: tensor<5x4xf32>, %t: tensor<2x3xi64>) -> (tensor<2x3xf32>, tensor<2x3x5xf32>, tensor<5x5xf32>) {
  %0 = ckopt.matmul %x, %w {transpose_rhs} : (tensor<6x4xf32>, tensor<5x4xf32>) -> tensor<6x5xf32>
  %1 = ckopt.reshape %0 : (tensor<6x5xf32>) -> tensor<2x3x5xf32>
  // expected-remark @+1 {{cross entropy of 6 rows over 5 classes in chunks of 2 rows: logits take 40 B instead of 120 B (--chunk-vocab)}}
  %loss, %lse, %lse_lost = ckopt.cross_entropy %1, %t {axis = 2 : i64, ignore_index = 3 : i64} : (tensor<2x3x5xf32>, tensor<2x3xi64>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  %2 = ckopt.matmul %w, %w {transpose_rhs} : (tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x5xf32>
  return %loss, %1, %2 : tensor<2x3xf32>, tensor<2x3x5xf32>, tensor<5x5xf32>
}

// -----

// A bias, and the last token of each text left out, as language models shift their
// labels.
// CHECK-LABEL: func.func @forward(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<6x4xf32>, %[[W:[^:]*]]: tensor<4x5xf32>, %[[B:[^:]*]]: tensor<5xf32>, %[[T:[^:]*]]: tensor<4xi64>
// CHECK:         %[[TEXTS:.*]] = ckopt.reshape %[[X]] : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
// CHECK:         %[[CUT:.*]] = ckopt.slice %[[TEXTS]] {sizes = array<i64: 2, 2, 4>, starts = array<i64: 0, 0, 0>, steps = array<i64: 1, 1, 1>}
// CHECK:         %[[ROWS:.*]] = ckopt.reshape %[[CUT]] : (tensor<2x2x4xf32>) -> tensor<4x4xf32>
// CHECK:         ckopt.linear_cross_entropy %[[ROWS]], %[[W]], %[[T]] bias %[[B]] {rows = 2 : i64}
// CHECK-NOT:     ckopt.matmul
func.func @forward(%x: tensor<6x4xf32>, %w: tensor<4x5xf32>, %b: tensor<5xf32>, %t: tensor<4xi64>) -> tensor<4xf32> {
  %0 = ckopt.matmul %x, %w : (tensor<6x4xf32>, tensor<4x5xf32>) -> tensor<6x5xf32>
  %1 = ckopt.reshape %0 : (tensor<6x5xf32>) -> tensor<2x3x5xf32>
  %2 = ckopt.add %b, %1 : (tensor<5xf32>, tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  %3 = ckopt.slice %2 {starts = array<i64: 0, 0, 0>, sizes = array<i64: 2, 2, 5>, steps = array<i64: 1, 1, 1>} : (tensor<2x3x5xf32>) -> tensor<2x2x5xf32>
  %4 = ckopt.reshape %3 : (tensor<2x2x5xf32>) -> tensor<4x5xf32>
  // expected-remark @+1 {{cross entropy of 4 rows over 5 classes in chunks of 2 rows}}
  %loss, %lse, %lse_lost = ckopt.cross_entropy %4, %t {axis = 1 : i64} : (tensor<4x5xf32>, tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %loss : tensor<4xf32>
}

// -----

// Whole logits: their log-sum-exp is read, as label smoothing does.
// CHECK-LABEL: func.func @forward(
// CHECK-NOT:     linear_cross_entropy
// CHECK:         ckopt.cross_entropy
func.func @forward(%x: tensor<4x4xf32>, %w: tensor<4x5xf32>, %t: tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = ckopt.matmul %x, %w : (tensor<4x4xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
  // expected-remark @+1 {{the logits of the loss are kept whole (80 B), because of 'ckopt.neg': chunks need}}
  %loss, %lse, %lse_lost = ckopt.cross_entropy %0, %t {axis = 1 : i64} : (tensor<4x5xf32>, tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %1 = ckopt.neg %lse : (tensor<4xf32>) -> tensor<4xf32>
  return %loss, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Whole logits: something else reads them, or they are no product, or the classes are
// not along the last dimension, or the slice chooses classes. Two rows are one chunk,
// which needs no remark.
// CHECK-LABEL: func.func @forward(
// CHECK-NOT: linear_cross_entropy
// CHECK:     return
func.func @forward(%x: tensor<4x4xf32>, %y: tensor<2x4xf32>, %w: tensor<4x4xf32>, %t: tensor<4xi64>, %u: tensor<2xi64>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4x4xf32>, tensor<2xf32>) {
  %0 = ckopt.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // expected-remark @+1 {{because of 'ckopt.tanh'}}
  %l0, %s0, %s0_lost = ckopt.cross_entropy %0, %t {axis = 1 : i64} : (tensor<4x4xf32>, tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %1 = ckopt.tanh %0 : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = ckopt.neg %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
  // expected-remark @+1 {{because of 'ckopt.neg'}}
  %l1, %s1, %s1_lost = ckopt.cross_entropy %2, %t {axis = 1 : i64} : (tensor<4x4xf32>, tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %3 = ckopt.matmul %w, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // expected-remark @+1 {{because of 'ckopt.cross_entropy'}}
  %l2, %s2, %s2_lost = ckopt.cross_entropy %3, %t {axis = 0 : i64} : (tensor<4x4xf32>, tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %4 = ckopt.matmul %w, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %5 = ckopt.slice %4 {starts = array<i64: 0, 0>, sizes = array<i64: 4, 2>, steps = array<i64: 1, 1>} : (tensor<4x4xf32>) -> tensor<4x2xf32>
  // expected-remark @+1 {{because of 'ckopt.slice'}}
  %l3, %s3, %s3_lost = ckopt.cross_entropy %5, %t {axis = 1 : i64} : (tensor<4x2xf32>, tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %6 = ckopt.matmul %y, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %l4, %s4, %s4_lost = ckopt.cross_entropy %6, %u {axis = 1 : i64} : (tensor<2x4xf32>, tensor<2xi64>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
  return %l0, %l1, %l2, %l3, %1, %l4 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4x4xf32>, tensor<2xf32>
}

// -----

// A number that no loss has more rows than.
// expected-warning @+1 {{chunk-vocab=2: there is no cross entropy of labels over more rows}}
func.func @forward(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>, %t: tensor<2xi64>) -> tensor<2xf32> {
  %0 = ckopt.matmul %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %loss, %lse, %lse_lost = ckopt.cross_entropy %0, %t {axis = 1 : i64} : (tensor<2x4xf32>, tensor<2xi64>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
  return %loss : tensor<2xf32>
}

// -----

// Logits of halves that the loss reads as f32: their product is one of halves in
// each chunk, if the weight is a stored one.
// CHECK-LABEL: func.func @forward({{.*}}"frozen"
// CHECK:         %[[EACH:.*]] = ckopt.linear_cross_entropy %{{.*}}, %{{.*}}, %{{.*}} {rows = 2 : i64, transpose_weight} : (tensor<6x4xbf16>, tensor<5x4xbf16>, tensor<6xi64>) -> tensor<6xf32>
// CHECK:         return %[[EACH]]
func.func @forward(%x: tensor<6x4xbf16>, %w: tensor<5x4xbf16> {ckopt.role = "frozen"}, %t: tensor<6xi64>) -> tensor<6xf32> {
  %0 = ckopt.matmul %x, %w {transpose_rhs} : (tensor<6x4xbf16>, tensor<5x4xbf16>) -> tensor<6x5xbf16>
  %1 = ckopt.cast %0 : (tensor<6x5xbf16>) -> tensor<6x5xf32>
  // expected-remark @+1 {{cross entropy of 6 rows over 5 classes in chunks of 2 rows}}
  %loss, %lse, %lse_lost = ckopt.cross_entropy %1, %t {axis = 1 : i64} : (tensor<6x5xf32>, tensor<6xi64>) -> (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>)
  return %loss : tensor<6xf32>
}

// -----

// The gradient of a trained one would be rounded for each chunk.
// CHECK-LABEL: func.func @forward({{.*}}"parameter"
// CHECK-NOT:     linear_cross_entropy
func.func @forward(%x: tensor<6x4xbf16>, %w: tensor<5x4xbf16> {ckopt.role = "parameter"}, %t: tensor<6xi64>) -> tensor<6xf32> {
  %0 = ckopt.matmul %x, %w {transpose_rhs} : (tensor<6x4xbf16>, tensor<5x4xbf16>) -> tensor<6x5xbf16>
  %1 = ckopt.cast %0 : (tensor<6x5xbf16>) -> tensor<6x5xf32>
  // expected-remark @+1 {{are kept whole}}
  %loss, %lse, %lse_lost = ckopt.cross_entropy %1, %t {axis = 1 : i64} : (tensor<6x5xf32>, tensor<6xi64>) -> (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>)
  return %loss : tensor<6xf32>
}
