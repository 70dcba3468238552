// RUN: %if cpu-bf16 %{ ckopt-opt %s --fuse --round-products='precision=medium storage=bf16' --split-input-file | FileCheck %s -DTYPE=bf16 %}
// RUN: ckopt-opt %s --fuse --round-products='precision=bf16 storage=f32' --split-input-file | FileCheck %s -DTYPE=f32
// RUN: ckopt-opt %s --fuse --round-products='precision=bf16 storage=f32' --split-input-file | FileCheck %s --check-prefix=WIDE
// RUN: ckopt-opt %s --fuse --round-products='precision=highest' --split-input-file | FileCheck %s --check-prefix=NONE --implicit-check-not=round
// RUN: not ckopt-opt %s --round-products='storage=f64' 2>&1 | FileCheck %s --check-prefix=STORAGE
// RUN: not ckopt-opt %s --round-products='precision=f16' 2>&1 | FileCheck %s --check-prefix=CLASS
// RUN: not ckopt-opt %s --round-products='precision=high target=cuda' 2>&1 | FileCheck %s --check-prefix=CUDA
// STORAGE: storage 'f64': it is auto, bf16 or f32
// CLASS: products by f16 are for target cuda alone
// CUDA: products by tf32 round in their kernels

// A layer and its gradients, which share rounded operands: each value is rounded once, below views
// of it; by its maker, which makes nothing else where only products read the value.
// CHECK-LABEL: func.func @layer
// CHECK: %[[X:.*]] = ckopt.kernel_call @k_round(%arg0) : (tensor<64x32xf32>) -> tensor<64x32x[[TYPE]]>
// CHECK: %[[W:.*]] = ckopt.kernel_call @k_round_0(%arg1)
// CHECK: %[[H:.*]] = ckopt.kernel_call @k_library_0_by_bf16(%[[X]], %[[W]]) : (tensor<64x32x[[TYPE]]>, tensor<32x48x[[TYPE]]>) -> tensor<64x48xf32>
// CHECK: %[[R:.*]] = ckopt.kernel_call @k_elementwise_0_round(%[[H]]) : (tensor<64x48xf32>) -> tensor<64x48x[[TYPE]]>
// CHECK: %[[V:.*]] = ckopt.kernel_call @k_round_1(%arg2) : (tensor<4x12x64xf32>) -> tensor<4x12x64x[[TYPE]]>
// CHECK: %[[U:.*]] = ckopt.reshape %[[V]] : (tensor<4x12x64x[[TYPE]]>) -> tensor<48x64x[[TYPE]]>
// CHECK: %[[Y:.*]] = ckopt.kernel_call @k_library_1_by_bf16(%[[R]], %[[U]])
// CHECK: %[[YR:.*]] = ckopt.kernel_call @k_round{{.*}}(%[[Y]])
// CHECK: ckopt.kernel_call @k_library_2_by_bf16(%[[YR]], %[[U]])
// CHECK: ckopt.kernel_call @k_library_3_by_bf16(%[[R]], %[[YR]])
// CHECK: func.func private @k_library_0_by_bf16(%{{.*}}: tensor<64x32x[[TYPE]]>, %{{.*}}: tensor<32x48x[[TYPE]]>) -> tensor<64x48xf32> attributes {ckopt.kernel = "library", ckopt.products = "bf16"}
// CHECK-NEXT: ckopt.matmul %arg0, %arg1 :
// CHECK: func.func private @k_elementwise_0_round
// CHECK: %[[RELU:.*]] = ckopt.relu
// CHECK-NEXT: ckopt.cast %[[RELU]] : (tensor<64x48xf32>) -> tensor<64x48xbf16>
// CHECK-NOT: func.func private @k_library_0(

// Where rounded values are stored as f32, they are widened in the kernel that rounds.
// WIDE-LABEL: func.func @layer
// WIDE: func.func private @k_round(
// WIDE-NEXT: %[[P:.*]] = ckopt.cast %arg0 : (tensor<64x32xf32>) -> tensor<64x32xbf16>
// WIDE-NEXT: ckopt.cast %[[P]] : (tensor<64x32xbf16>) -> tensor<64x32xf32>

// NONE-LABEL: func.func @layer
// NONE: ckopt.kernel_call @k_library_0(%arg0, %arg1)
func.func @layer(%x: tensor<64x32xf32> {ckopt.role = "input"}, %w: tensor<32x48xf32> {ckopt.role = "parameter"},
    %v: tensor<4x12x64xf32> {ckopt.role = "parameter"}) -> (tensor<64x48xf32>, tensor<48x64xf32>) {
  %h = ckopt.matmul %x, %w : (tensor<64x32xf32>, tensor<32x48xf32>) -> tensor<64x48xf32>
  %r = ckopt.relu %h : (tensor<64x48xf32>) -> tensor<64x48xf32>
  %u = ckopt.reshape %v : (tensor<4x12x64xf32>) -> tensor<48x64xf32>
  %y = ckopt.matmul %r, %u : (tensor<64x48xf32>, tensor<48x64xf32>) -> tensor<64x64xf32>
  %dr = ckopt.matmul %y, %u {transpose_rhs} : (tensor<64x64xf32>, tensor<48x64xf32>) -> tensor<64x48xf32>
  %dv = ckopt.matmul %r, %y {transpose_lhs} : (tensor<64x48xf32>, tensor<64x64xf32>) -> tensor<48x64xf32>
  return %dr, %dv : tensor<64x48xf32>, tensor<48x64xf32>
}

// -----

// The addend of a sum is f32, a square is rounded once; f64 stays.
// CHECK-LABEL: func.func @others
// CHECK: ckopt.kernel_call @k_library_0_by_bf16(%[[S:.*]], %arg1)
func.func @others(%x: tensor<16x16xf32>, %c: tensor<16x16xf32>, %d: tensor<16x16xf64>) -> (tensor<16x16xf32>, tensor<16x16xf64>) {
  %0 = ckopt.matmul_add %x, %x, %c {transpose_lhs} : (tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %1 = ckopt.matmul %d, %d : (tensor<16x16xf64>, tensor<16x16xf64>) -> tensor<16x16xf64>
  return %0, %1 : tensor<16x16xf32>, tensor<16x16xf64>
}

// -----

// In the order of steps: kernels of bf16 are not known for all of both orders.
// CHECK-LABEL: func.func @convolution
// CHECK: ckopt.kernel_call @k_library_0_by_bf16(%{{.*}}, %{{.*}}) : (tensor<1x16x6x6x[[TYPE]], #ckopt.layout<[0, 2, 3, 1]>>, tensor<16x16x3x3x[[TYPE]], #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<1x16x6x6xf32, #ckopt.layout<[0, 2, 3, 1]>>
func.func @convolution(%x: tensor<1x16x6x6xf32, #ckopt.layout<[0, 2, 3, 1]>>, %w: tensor<16x16x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<1x16x6x6xf32, #ckopt.layout<[0, 2, 3, 1]>> {
  %0 = ckopt.conv %x, %w {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x16x6x6xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<16x16x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<1x16x6x6xf32, #ckopt.layout<[0, 2, 3, 1]>>
  return %0 : tensor<1x16x6x6xf32, #ckopt.layout<[0, 2, 3, 1]>>
}

// -----

// A maker of two values that products read: one that others read, too, stays beside the rounded one.
// CHECK-LABEL: func.func @maker
// CHECK: %[[M:.*]]:3 = ckopt.kernel_call @k_elementwise_0_round(%arg0)
// CHECK: ckopt.kernel_call @k_library_0_by_bf16(%[[M]]#1, %[[M]]#2)
func.func @maker(%x: tensor<16x16xf32>) -> (tensor<16x16xf32>, tensor<16x16xf32>) {
  %0 = ckopt.exp %x : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %1 = ckopt.tanh %x : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %2 = ckopt.matmul %0, %1 : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  return %2, %1 : tensor<16x16xf32>, tensor<16x16xf32>
}
