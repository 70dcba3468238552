// RUN: ckopt-opt %s --split-input-file --repeat-weights | FileCheck %s
// RUN: ckopt-opt %s --split-input-file --repeat-weights='target=cuda' | FileCheck %s
// RUN: ckopt-opt %s --split-input-file --repeat-weights --annotate-kernels | FileCheck %s --check-prefix=BYTES
// RUN: ckopt-opt %s --split-input-file --repeat-weights='target=cuda' --annotate-kernels='target=cuda' | FileCheck %s --check-prefix=DEVICE
// RUN: not ckopt-opt %s --split-input-file --repeat-weights='target=abacus' 2>&1 | FileCheck %s --check-prefix=TARGET
// TARGET: abacus

// What makes a weight wide becomes part of both products. The workspace is one block: 1,024 rows of
// 8 KiB, of 3,000. On a GPU it is 2,048 rows, or 1,344 columns of 12,000 B, and partial sums; two
// blocks are six launches, as sums are divided.
// CHECK-LABEL: func.func @both
// CHECK-NOT: kernel_call @widen
// CHECK: %[[Y:.*]] = ckopt.kernel_call @forward_stored(%arg0, %arg1) : (tensor<16x2048xf32>, tensor<3000x2048xbf16>) -> tensor<16x3000xf32>
// CHECK: %[[X:.*]] = ckopt.kernel_call @backward_stored(%[[Y]], %arg1) : (tensor<16x3000xf32>, tensor<3000x2048xbf16>) -> tensor<16x2048xf32>
// CHECK: func.func private @forward_stored
// CHECK-NEXT: ckopt.cast
// CHECK-NEXT: ckopt.matmul %{{.*}} {transpose_rhs}
// BYTES-LABEL: func.func @both
// BYTES: @forward_stored(%arg0, %arg1) {{{.*}}workspace = 83{{[0-9]+}} : i64}
// DEVICE-LABEL: func.func @both
// DEVICE: @forward_stored(%arg0, %arg1) {workspace = 20971520 : i64}
// DEVICE: @backward_stored(%{{.*}}, %arg1) {workspace = 20256768 : i64}
// DEVICE: func.func private @forward_stored{{.*}}ckopt.launches = 6
func.func @both(%x: tensor<16x2048xf32> {ckopt.role = "input"}, %w: tensor<3000x2048xbf16> {ckopt.role = "frozen"}) -> tensor<16x2048xf32> {
  %wide = ckopt.kernel_call @widen(%w) : (tensor<3000x2048xbf16>) -> tensor<3000x2048xf32>
  %y = ckopt.kernel_call @forward(%x, %wide) : (tensor<16x2048xf32>, tensor<3000x2048xf32>) -> tensor<16x3000xf32>
  %dx = ckopt.kernel_call @backward(%y, %wide) : (tensor<16x3000xf32>, tensor<3000x2048xf32>) -> tensor<16x2048xf32>
  return %dx : tensor<16x2048xf32>
}
func.func private @widen(%w: tensor<3000x2048xbf16>) -> tensor<3000x2048xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.cast %w : (tensor<3000x2048xbf16>) -> tensor<3000x2048xf32>
  return %0 : tensor<3000x2048xf32>
}
func.func private @forward(%x: tensor<16x2048xf32>, %w: tensor<3000x2048xf32>) -> tensor<16x3000xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.matmul %x, %w {transpose_rhs} : (tensor<16x2048xf32>, tensor<3000x2048xf32>) -> tensor<16x3000xf32>
  return %0 : tensor<16x3000xf32>
}
func.func private @backward(%y: tensor<16x3000xf32>, %w: tensor<3000x2048xf32>) -> tensor<16x2048xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.matmul %y, %w : (tensor<16x3000xf32>, tensor<3000x2048xf32>) -> tensor<16x2048xf32>
  return %0 : tensor<16x2048xf32>
}

// -----

// What no block of whole rows or columns makes is made before each product.
// CHECK-LABEL: func.func @copies
// CHECK: %[[W:.*]] = ckopt.kernel_call @widen(%arg1)
// CHECK-NEXT: %[[R:.*]] = ckopt.reshape %[[W]]
// CHECK-NEXT: ckopt.kernel_call @forward(%arg0, %[[R]])
func.func @copies(%x: tensor<16x2048xf32> {ckopt.role = "input"}, %w: tensor<96000x64xbf16> {ckopt.role = "frozen"}) -> tensor<16x3000xf32> {
  %made = ckopt.kernel_call @widen(%w) : (tensor<96000x64xbf16>) -> tensor<96000x64xf32>
  %wide = ckopt.reshape %made : (tensor<96000x64xf32>) -> tensor<3000x2048xf32>
  %y = ckopt.kernel_call @forward(%x, %wide) : (tensor<16x2048xf32>, tensor<3000x2048xf32>) -> tensor<16x3000xf32>
  return %y : tensor<16x3000xf32>
}
func.func private @widen(%w: tensor<96000x64xbf16>) -> tensor<96000x64xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.cast %w : (tensor<96000x64xbf16>) -> tensor<96000x64xf32>
  return %0 : tensor<96000x64xf32>
}
func.func private @forward(%x: tensor<16x2048xf32>, %w: tensor<3000x2048xf32>) -> tensor<16x3000xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.matmul %x, %w {transpose_rhs} : (tensor<16x2048xf32>, tensor<3000x2048xf32>) -> tensor<16x3000xf32>
  return %0 : tensor<16x3000xf32>
}

// -----

// A trained weight of bf16 is read as it is stored, too. A state, and what follows from data, stays
// as it is made; so does what other kernels read.
// CHECK-LABEL: func.func @trained
// CHECK: %[[A:.*]] = ckopt.kernel_call @widen(%arg0)
// CHECK: ckopt.kernel_call @product_stored(%[[A]], %arg1)
func.func @trained(%x: tensor<8x8xbf16> {ckopt.role = "input"}, %w: tensor<8x8xbf16> {ckopt.role = "parameter"}) -> tensor<8x8xf32> {
  %a = ckopt.kernel_call @widen(%x) : (tensor<8x8xbf16>) -> tensor<8x8xf32>
  %b = ckopt.kernel_call @widen(%w) : (tensor<8x8xbf16>) -> tensor<8x8xf32>
  %c = ckopt.kernel_call @product(%a, %b) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %c : tensor<8x8xf32>
}
// CHECK-LABEL: func.func @others
// CHECK: %[[A:.*]] = ckopt.kernel_call @widen(%arg0)
// CHECK: %[[B:.*]] = ckopt.kernel_call @widen(%arg1)
// CHECK: ckopt.kernel_call @product(%[[A]], %[[B]])
// CHECK: %[[C:.*]] = ckopt.kernel_call @widen(%arg2)
// CHECK: ckopt.kernel_call @root(%[[C]])
func.func @others(%x: tensor<8x8xbf16> {ckopt.role = "input"}, %w: tensor<8x8xbf16> {ckopt.role = "state"}, %v: tensor<8x8xbf16> {ckopt.role = "frozen"}) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %a = ckopt.kernel_call @widen(%x) : (tensor<8x8xbf16>) -> tensor<8x8xf32>
  %b = ckopt.kernel_call @widen(%w) : (tensor<8x8xbf16>) -> tensor<8x8xf32>
  %c = ckopt.kernel_call @product(%a, %b) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %d = ckopt.kernel_call @widen(%v) : (tensor<8x8xbf16>) -> tensor<8x8xf32>
  %e = ckopt.kernel_call @root(%d) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %c, %e : tensor<8x8xf32>, tensor<8x8xf32>
}
func.func private @widen(%w: tensor<8x8xbf16>) -> tensor<8x8xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.cast %w : (tensor<8x8xbf16>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
func.func private @product(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.matmul %x, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
func.func private @root(%x: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.sqrt %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// What rounds a weight to other 16 bits, and what widens these for a library that multiplies f32,
// become part of the product one after the other, so that its numbers are those of both kernels.
// CHECK-LABEL: func.func @chain
// CHECK-NEXT: %[[A:.*]] = ckopt.kernel_call @product_stored(%arg0, %arg1) : (tensor<16x2048xf32>, tensor<3000x2048xbf16>) -> tensor<16x3000xf32>
// CHECK-NEXT: ckopt.kernel_call @gradient_stored(%[[A]], %arg1) : (tensor<16x3000xf32>, tensor<3000x2048xbf16>) -> tensor<16x2048xf32>
// CHECK: func.func private @product_stored
// CHECK-NEXT: ckopt.cast {{.*}} -> tensor<3000x2048xf32>
// CHECK-NEXT: ckopt.cast {{.*}} -> tensor<3000x2048xf16>
// CHECK-NEXT: ckopt.cast {{.*}} -> tensor<3000x2048xf32>
// CHECK-NEXT: ckopt.matmul %{{.*}} {transpose_rhs}
// BYTES-LABEL: func.func @chain
// BYTES: @product_stored(%arg0, %arg1) {{{.*}}workspace = 83{{[0-9]+}} : i64}
// BYTES: @gradient_stored(%{{.*}}, %arg1) {{{.*}}workspace = 8{{[0-9]+}} : i64}
func.func @chain(%x: tensor<16x2048xf32> {ckopt.role = "input"}, %w: tensor<3000x2048xbf16> {ckopt.role = "frozen"}) -> tensor<16x2048xf32> {
  %half = ckopt.kernel_call @round(%w) : (tensor<3000x2048xbf16>) -> tensor<3000x2048xf16>
  %wide = ckopt.kernel_call @widen(%half) : (tensor<3000x2048xf16>) -> tensor<3000x2048xf32>
  %y = ckopt.kernel_call @product(%x, %wide) : (tensor<16x2048xf32>, tensor<3000x2048xf32>) -> tensor<16x3000xf32>
  %dx = ckopt.kernel_call @gradient(%y, %wide) : (tensor<16x3000xf32>, tensor<3000x2048xf32>) -> tensor<16x2048xf32>
  return %dx : tensor<16x2048xf32>
}
func.func private @round(%w: tensor<3000x2048xbf16>) -> tensor<3000x2048xf16> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.cast %w : (tensor<3000x2048xbf16>) -> tensor<3000x2048xf32>
  %1 = ckopt.cast %0 : (tensor<3000x2048xf32>) -> tensor<3000x2048xf16>
  return %1 : tensor<3000x2048xf16>
}
func.func private @widen(%w: tensor<3000x2048xf16>) -> tensor<3000x2048xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.cast %w : (tensor<3000x2048xf16>) -> tensor<3000x2048xf32>
  return %0 : tensor<3000x2048xf32>
}
func.func private @product(%x: tensor<16x2048xf32>, %w: tensor<3000x2048xf32>) -> tensor<16x3000xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.matmul %x, %w {transpose_rhs} : (tensor<16x2048xf32>, tensor<3000x2048xf32>) -> tensor<16x3000xf32>
  return %0 : tensor<16x3000xf32>
}
func.func private @gradient(%y: tensor<16x3000xf32>, %w: tensor<3000x2048xf32>) -> tensor<16x2048xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.matmul %y, %w : (tensor<16x3000xf32>, tensor<3000x2048xf32>) -> tensor<16x2048xf32>
  return %0 : tensor<16x2048xf32>
}

// -----

// Kernels that make small weights wide are merged into one; of it a product takes what makes its
// factor, and equal products share a kernel.
// CHECK-LABEL: func.func @merged
// CHECK-NEXT: %[[A:.*]] = ckopt.kernel_call @product_stored(%arg0, %arg1) : (tensor<8x8xf32>, tensor<8x8xbf16>) -> tensor<8x8xf32>
// CHECK-NEXT: ckopt.kernel_call @product_stored(%[[A]], %arg2) : (tensor<8x8xf32>, tensor<8x8xbf16>) -> tensor<8x8xf32>
// CHECK: func.func private @product_stored
// CHECK-NEXT: ckopt.cast
// CHECK-NEXT: ckopt.matmul
func.func @merged(%x: tensor<8x8xf32> {ckopt.role = "input"}, %v: tensor<8x8xbf16> {ckopt.role = "frozen"}, %w: tensor<8x8xbf16> {ckopt.role = "parameter"}) -> tensor<8x8xf32> {
  %wide:2 = ckopt.kernel_call @widen(%v, %w) : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
  %y = ckopt.kernel_call @product(%x, %wide#0) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %z = ckopt.kernel_call @product(%y, %wide#1) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %z : tensor<8x8xf32>
}
func.func private @widen(%v: tensor<8x8xbf16>, %w: tensor<8x8xbf16>) -> (tensor<8x8xf32>, tensor<8x8xf32>) attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.cast %v : (tensor<8x8xbf16>) -> tensor<8x8xf32>
  %1 = ckopt.cast %w : (tensor<8x8xbf16>) -> tensor<8x8xf32>
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
}
func.func private @product(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.matmul %x, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
