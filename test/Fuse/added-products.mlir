// Products that only a kernel of additions reads are added as they are stored, where that moves
// fewer bytes.
// RUN: ckopt-opt %s --fuse='adds-products' --split-input-file | FileCheck %s --check-prefixes=CHECK,WHOLE
// RUN: ckopt-opt %s --fuse='adds-products rounds' --split-input-file | FileCheck %s --check-prefixes=CHECK,ROUNDS
// RUN: ckopt-opt %s --fuse --split-input-file | FileCheck %s --check-prefix=APART
// APART-NOT: matmul_add

// A residual: the stream is a matrix for the product. The next one adds to the first.
// CHECK-LABEL: func.func @stream
// CHECK: %[[X:.*]] = ckopt.reshape %arg0 : (tensor<2x8x16xf32>) -> tensor<16x16xf32>
// CHECK: %[[F:.*]] = ckopt.kernel_call @k_library_0(%arg1, %arg2, %[[X]])
// CHECK: %[[S:.*]] = ckopt.reshape %[[F]] : (tensor<16x16xf32>) -> tensor<2x8x16xf32>
// CHECK: %[[N:.*]] = ckopt.kernel_call @k_row_0(%[[S]])
// CHECK: %[[M:.*]] = ckopt.reshape %[[N]]
// CHECK: %[[Y:.*]] = ckopt.reshape %[[S]] : (tensor<2x8x16xf32>) -> tensor<16x16xf32>
// CHECK: ckopt.kernel_call @k_library_0(%[[M]], %arg2, %[[Y]]) {ckopt.remat = "save"}
// CHECK-NOT: kernel_call
// CHECK: func.func private @k_library_0
// CHECK-NEXT: ckopt.matmul_add %arg0, %arg1, %arg2 {transpose_rhs}
func.func @stream(%x: tensor<2x8x16xf32>, %n: tensor<16x16xf32>, %w: tensor<16x16xf32>) -> tensor<2x8x16xf32> {
  %p = ckopt.matmul %n, %w {transpose_rhs} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %q = ckopt.reshape %p : (tensor<16x16xf32>) -> tensor<2x8x16xf32>
  %s = ckopt.add %q, %x : (tensor<2x8x16xf32>, tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  %m = ckopt.softmax %s {axis = 2} : (tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  %l = ckopt.reshape %m : (tensor<2x8x16xf32>) -> tensor<16x16xf32>
  %r = ckopt.matmul %l, %w {transpose_rhs} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %t = ckopt.reshape %r : (tensor<16x16xf32>) -> tensor<2x8x16xf32>
  %u = ckopt.add %s, %t {ckopt.remat = "save"} : (tensor<2x8x16xf32>, tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  return %u : tensor<2x8x16xf32>
}

// -----

// The first of three products takes the others.
// CHECK-LABEL: func.func @three
// CHECK: %[[A:.*]] = ckopt.kernel_call @[[P:.*]](%arg0, %arg3)
// CHECK: %[[B:.*]] = ckopt.kernel_call @[[Q:.*]](%arg1, %arg3, %[[A]])
// CHECK: %[[C:.*]] = ckopt.kernel_call @[[Q]](%arg2, %arg3, %[[B]])
// CHECK-NEXT: return %[[C]]
func.func @three(%a: tensor<8x16xf32>, %b: tensor<8x16xf32>, %c: tensor<8x16xf32>, %w: tensor<16x4xf32>) -> tensor<8x4xf32> {
  %0 = ckopt.matmul %a, %w : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %1 = ckopt.matmul %b, %w : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %2 = ckopt.matmul %c, %w : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %3 = ckopt.add %0, %1 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %4 = ckopt.add %3, %2 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %4 : tensor<8x4xf32>
}

// -----

// Two products of 16 bits beside a stream of 32 move as many bytes by themselves.
// CHECK-LABEL: func.func @beside
// WHOLE-NOT: @k_elementwise
// ROUNDS: ckopt.kernel_call @k_elementwise_0(%arg2,
// CHECK: return
func.func @beside(%a: tensor<8x16xf32>, %b: tensor<8x16xf32>, %x: tensor<8x4xf32>, %w: tensor<16x4xf32>) -> tensor<8x4xf32> {
  %0 = ckopt.matmul %a, %w : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %1 = ckopt.matmul %b, %w : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %2 = ckopt.add %x, %0 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %3 = ckopt.add %2, %1 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %3 : tensor<8x4xf32>
}

// -----

// Where factors are rounded, a sum that is one would be copied in 16 bits.
// CHECK-LABEL: func.func @multiplied
// WHOLE: ckopt.kernel_call @k_library_0(%arg0, %arg2, %arg1)
// WHOLE-NOT: @k_elementwise
// ROUNDS: ckopt.kernel_call @k_elementwise_0(%arg1,
// CHECK: return
func.func @multiplied(%a: tensor<8x8xf32>, %x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = ckopt.matmul %a, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = ckopt.add %x, %0 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = ckopt.reshape %1 : (tensor<8x8xf32>) -> tensor<1x8x8xf32>
  %3 = ckopt.reshape %2 : (tensor<1x8x8xf32>) -> tensor<8x8xf32>
  %4 = ckopt.matmul %3, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1, %4 : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// What another op reads is stored anyway.
// CHECK-LABEL: func.func @two_uses
// CHECK-NOT: matmul_add
func.func @two_uses(%a: tensor<8x16xf32>, %x: tensor<8x4xf32>, %w: tensor<16x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = ckopt.matmul %a, %w : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %1 = ckopt.add %x, %0 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0, %1 : tensor<8x4xf32>, tensor<8x4xf32>
}

// -----

// A linear layer's bias goes along with its product, in any shape that is one row.
// CHECK-LABEL: func.func @linear
// CHECK: %[[X:.*]] = ckopt.reshape %arg2 : (tensor<2x4x6xf32>) -> tensor<8x6xf32>
// CHECK: ckopt.kernel_call @[[LINEAR:k_library_[0-9]+]](%arg0, %arg1, %[[X]], %arg3)
// CHECK: %[[ROW:.*]] = ckopt.reshape %arg4 : (tensor<1x6xf32>) -> tensor<6xf32>
// CHECK: ckopt.kernel_call @[[LINEAR]](%{{.*}}, %{{.*}}, %{{.*}}, %[[ROW]])
// CHECK: %[[HEADS:.*]] = ckopt.reshape %arg5 : (tensor<3x2xf32>) -> tensor<6xf32>
// CHECK: ckopt.kernel_call @[[LINEAR]](%{{.*}}, %{{.*}}, %{{.*}}, %[[HEADS]])
// CHECK-NOT: @k_elementwise
// CHECK: func.func private @[[LINEAR]]
// CHECK-NEXT: ckopt.matmul_add %arg0, %arg1, %arg2 bias %arg3 :
func.func @linear(%a: tensor<8x16xf32>, %w: tensor<16x6xf32>, %x: tensor<2x4x6xf32>, %b: tensor<6xf32>, %c: tensor<1x6xf32>, %d: tensor<3x2xf32>, %y: tensor<2x4x3x2xf32>) -> (tensor<2x4x6xf32>, tensor<2x4x6xf32>, tensor<2x4x3x2xf32>) {
  %0 = ckopt.matmul %a, %w : (tensor<8x16xf32>, tensor<16x6xf32>) -> tensor<8x6xf32>
  %1 = ckopt.reshape %0 : (tensor<8x6xf32>) -> tensor<2x4x6xf32>
  %2 = ckopt.add %b, %1 : (tensor<6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %3 = ckopt.add %x, %2 : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %4 = ckopt.matmul %a, %w : (tensor<8x16xf32>, tensor<16x6xf32>) -> tensor<8x6xf32>
  %5 = ckopt.reshape %4 : (tensor<8x6xf32>) -> tensor<2x4x6xf32>
  %6 = ckopt.add %5, %c : (tensor<2x4x6xf32>, tensor<1x6xf32>) -> tensor<2x4x6xf32>
  %7 = ckopt.add %6, %3 : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %8 = ckopt.matmul %a, %w : (tensor<8x16xf32>, tensor<16x6xf32>) -> tensor<8x6xf32>
  %9 = ckopt.reshape %8 : (tensor<8x6xf32>) -> tensor<2x4x3x2xf32>
  %10 = ckopt.add %9, %d : (tensor<2x4x3x2xf32>, tensor<3x2xf32>) -> tensor<2x4x3x2xf32>
  %11 = ckopt.add %y, %10 : (tensor<2x4x3x2xf32>, tensor<2x4x3x2xf32>) -> tensor<2x4x3x2xf32>
  return %3, %7, %11 : tensor<2x4x6xf32>, tensor<2x4x6xf32>, tensor<2x4x3x2xf32>
}

// -----

// What repeats along rows, or along some of the product's columns, is no bias of it.
// CHECK-LABEL: func.func @rows
// CHECK-NOT: matmul_add
func.func @rows(%a: tensor<8x16xf32>, %w: tensor<16x8xf32>, %x: tensor<8x8xf32>, %y: tensor<8x4x2xf32>, %b: tensor<8x1xf32>, %c: tensor<2xf32>) -> (tensor<8x8xf32>, tensor<8x4x2xf32>) {
  %0 = ckopt.matmul %a, %w : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %1 = ckopt.add %0, %b : (tensor<8x8xf32>, tensor<8x1xf32>) -> tensor<8x8xf32>
  %2 = ckopt.add %x, %1 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = ckopt.matmul %a, %w : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %4 = ckopt.reshape %3 : (tensor<8x8xf32>) -> tensor<8x4x2xf32>
  %5 = ckopt.add %4, %c : (tensor<8x4x2xf32>, tensor<2xf32>) -> tensor<8x4x2xf32>
  %6 = ckopt.add %y, %5 : (tensor<8x4x2xf32>, tensor<8x4x2xf32>) -> tensor<8x4x2xf32>
  return %2, %6 : tensor<8x8xf32>, tensor<8x4x2xf32>
}

// -----

// A bias of the tensor that is added to, or of the whole sum, would change the order of additions.
// CHECK-LABEL: func.func @order
// CHECK-NOT: matmul_add
func.func @order(%a: tensor<8x16xf32>, %w: tensor<16x4xf32>, %x: tensor<8x4xf32>, %b: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = ckopt.matmul %a, %w : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %1 = ckopt.add %x, %b : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %2 = ckopt.add %1, %0 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %3 = ckopt.matmul %a, %w : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %4 = ckopt.add %x, %3 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %5 = ckopt.add %4, %b : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  return %2, %5 : tensor<8x4xf32>, tensor<8x4xf32>
}

// -----

// Two products with biases, or one of them with one, stay.
// CHECK-LABEL: func.func @biases
// CHECK-NOT: matmul_add
func.func @biases(%a: tensor<8x16xf32>, %w: tensor<16x4xf32>, %x: tensor<8x4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>) -> tensor<8x4xf32> {
  %0 = ckopt.matmul %a, %w : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %1 = ckopt.add %0, %b : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %2 = ckopt.matmul %a, %w : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %3 = ckopt.add %2, %c : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %4 = ckopt.add %1, %3 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %5 = ckopt.add %x, %4 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %5 : tensor<8x4xf32>
}

// -----

// A kernel that does more than to add tensors stays: a bias alone has no tensor to add to.
// CHECK-LABEL: func.func @bias
// CHECK-NOT: matmul_add
func.func @bias(%a: tensor<8x16xf32>, %b: tensor<4xf32>, %x: tensor<8x4xf32>, %y: tensor<8x4xf32>, %w: tensor<16x4xf32>) -> tensor<8x4xf32> {
  %0 = ckopt.matmul %a, %w : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %1 = ckopt.add %0, %b : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

// -----

// It computes a function of the sum.
// CHECK-LABEL: func.func @function
// CHECK-NOT: matmul_add
func.func @function(%a: tensor<8x16xf32>, %b: tensor<4xf32>, %x: tensor<8x4xf32>, %y: tensor<8x4xf32>, %w: tensor<16x4xf32>) -> tensor<8x4xf32> {
  %0 = ckopt.matmul %a, %w : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %1 = ckopt.add %0, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = ckopt.relu %1 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}

// -----

// It makes the other term, which nothing stores.
// CHECK-LABEL: func.func @made
// CHECK-NOT: matmul_add
func.func @made(%a: tensor<8x16xf32>, %b: tensor<4xf32>, %x: tensor<8x4xf32>, %y: tensor<8x4xf32>, %w: tensor<16x4xf32>) -> tensor<8x4xf32> {
  %0 = ckopt.matmul %a, %w : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %1 = ckopt.relu %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = ckopt.add %1, %0 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}

// -----

// It adds two tensors beside the product.
// CHECK-LABEL: func.func @two
// CHECK-NOT: matmul_add
func.func @two(%a: tensor<8x16xf32>, %b: tensor<4xf32>, %x: tensor<8x4xf32>, %y: tensor<8x4xf32>, %w: tensor<16x4xf32>) -> tensor<8x4xf32> {
  %0 = ckopt.matmul %a, %w : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %1 = ckopt.add %x, %y : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = ckopt.add %1, %0 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}

// -----

// A sum of f32 adds no product of f16.
// CHECK-LABEL: func.func @types
// CHECK-NOT: matmul_add
func.func @types(%a: tensor<8x16xf16>, %x: tensor<8x4xf32>, %w: tensor<16x4xf16>) -> tensor<8x4xf32> {
  %0 = ckopt.matmul %a, %w : (tensor<8x16xf16>, tensor<16x4xf16>) -> tensor<8x4xf16>
  %1 = ckopt.cast %0 : (tensor<8x4xf16>) -> tensor<8x4xf32>
  %2 = ckopt.add %x, %1 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}

// -----

// A batch of products is none of matrices.
// CHECK-LABEL: func.func @batch
// CHECK-NOT: matmul_add
func.func @batch(%a: tensor<2x8x16xf32>, %x: tensor<2x8x4xf32>, %w: tensor<2x16x4xf32>) -> tensor<2x8x4xf32> {
  %0 = ckopt.matmul %a, %w : (tensor<2x8x16xf32>, tensor<2x16x4xf32>) -> tensor<2x8x4xf32>
  %1 = ckopt.add %x, %0 : (tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  return %1 : tensor<2x8x4xf32>
}

// -----

// What a user wants of a product is wanted of the sum that it is part of, as of each fused op.
// CHECK-LABEL: func.func @wanted
// CHECK: @k_library_0(%arg0, %arg2, %arg1) {ckopt.checkpoint = "layer", ckopt.remat = "recompute"}
func.func @wanted(%a: tensor<8x16xf32>, %x: tensor<8x4xf32>, %w: tensor<16x4xf32>) -> tensor<8x4xf32> {
  %0 = ckopt.matmul %a, %w {ckopt.remat = "save", ckopt.checkpoint = "layer"} : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %1 = ckopt.add %x, %0 {ckopt.remat = "recompute"} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
