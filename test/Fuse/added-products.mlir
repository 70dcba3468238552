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

// A kernel that does more than to add tensors stays: one that repeats a bias.
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
