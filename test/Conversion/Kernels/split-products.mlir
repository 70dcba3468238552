// REQUIRES: cpu-bf16
// RUN: ckopt-opt %s --fuse --split-products='precision=bf16x3 pieces=bf16' --split-input-file | FileCheck %s --check-prefixes=CHECK,THREE
// RUN: ckopt-opt %s --fuse --split-products='precision=bf16x6 pieces=bf16' --split-input-file | FileCheck %s --check-prefix=SIX
// RUN: ckopt-opt %s --fuse --split-products='precision=medium pieces=bf16' --split-input-file | FileCheck %s --check-prefix=ONE
// RUN: ckopt-opt %s --fuse --split-products='precision=bf16x3 pieces=f32' --split-input-file | FileCheck %s --check-prefix=WIDE
// RUN: ckopt-opt %s --fuse --split-products='precision=bf16 pieces=f32' --split-input-file | FileCheck %s --check-prefix=ROUND
// RUN: ckopt-opt %s --fuse --split-products='precision=highest' --split-input-file | FileCheck %s --check-prefix=NONE --implicit-check-not=split
// RUN: not ckopt-opt %s --split-products='pieces=f64' 2>&1 | FileCheck %s --check-prefix=PIECES
// RUN: not ckopt-opt %s --split-products='precision=f16' 2>&1 | FileCheck %s --check-prefix=CLASS
// RUN: not ckopt-opt %s --split-products='precision=bf16x3 target=cuda' 2>&1 | FileCheck %s --check-prefix=CUDA
// PIECES: pieces of 'f64': they are of auto, bf16 or f32
// CLASS: products by f16 are for target cuda alone
// CUDA: products by bf16x3 are for target cpu alone

// A layer and its gradients, which share pieces: each value is split once, below views of it; by
// its maker, which makes nothing else where only products read the value.
// CHECK-LABEL: func.func @layer
// CHECK-SAME: %[[X:[^:]*]]: tensor<64x32xf32>{{.*}}, %[[W:[^:]*]]: tensor<32x48xf32>{{.*}}, %[[V:[^:]*]]: tensor<4x12x64xf32>
// THREE: %[[XS:.*]]:2 = ckopt.kernel_call @k_split(%[[X]]) : (tensor<64x32xf32>) -> (tensor<64x32xbf16>, tensor<64x32xbf16>)
// THREE: %[[WS:.*]]:2 = ckopt.kernel_call @k_split_0(%[[W]])
// THREE: %[[H:.*]] = ckopt.kernel_call @k_library_0_bf16x3(%[[XS]]#0, %[[XS]]#1, %[[WS]]#0, %[[WS]]#1) : ({{.*}}) -> tensor<64x48xf32>
// THREE: %[[RS:.*]]:2 = ckopt.kernel_call @k_elementwise_0_split(%[[H]]) : (tensor<64x48xf32>) -> (tensor<64x48xbf16>, tensor<64x48xbf16>)
// THREE: %[[VS:.*]]:2 = ckopt.kernel_call @k_split_1(%[[V]]) : (tensor<4x12x64xf32>) -> (tensor<4x12x64xbf16>, tensor<4x12x64xbf16>)
// THREE: %[[V0:.*]] = ckopt.reshape %[[VS]]#0 : (tensor<4x12x64xbf16>) -> tensor<48x64xbf16>
// THREE: %[[V1:.*]] = ckopt.reshape %[[VS]]#1
// THREE: %[[Y:.*]] = ckopt.kernel_call @k_library_1_bf16x3(%[[RS]]#0, %[[RS]]#1, %[[V0]], %[[V1]])
// THREE: %[[YS:.*]]:2 = ckopt.kernel_call @k_split{{.*}}(%[[Y]])
// THREE: ckopt.kernel_call @k_library_2_bf16x3(%[[YS]]#0, %[[YS]]#1, %[[V0]], %[[V1]])
// THREE: ckopt.kernel_call @k_library_3_bf16x3(%[[RS]]#0, %[[RS]]#1, %[[YS]]#0, %[[YS]]#1)
// THREE: func.func private @k_library_0_bf16x3(%{{.*}}: tensor<64x32xbf16>, %{{.*}}: tensor<64x32xbf16>, %{{.*}}: tensor<32x48xbf16>, %{{.*}}: tensor<32x48xbf16>) -> tensor<64x48xf32> attributes {ckopt.kernel = "library", ckopt.products = "bf16x3"}
// THREE-NEXT: ckopt.split_matmul(%arg0, %arg1), (%arg2, %arg3) :
// THREE: func.func private @k_elementwise_0_split
// THREE: %[[RELU:.*]] = ckopt.relu
// THREE-NEXT: %[[RP:.*]]:2 = ckopt.split_bf16 %[[RELU]]
// THREE-NEXT: return %[[RP]]#0, %[[RP]]#1
// THREE: func.func private @k_library_3_bf16x3
// THREE-NEXT: ckopt.split_matmul(%arg0, %arg1), (%arg2, %arg3) {transpose_lhs} :
// THREE-NOT: func.func private @k_library_0(
// THREE: func.func private @k_split(%arg0: tensor<64x32xf32>) -> (tensor<64x32xbf16>, tensor<64x32xbf16>) attributes {ckopt.kernel = "elementwise"}
// THREE-NEXT: ckopt.split_bf16 %arg0

// SIX-LABEL: func.func @layer
// SIX: %[[XS:.*]]:3 = ckopt.kernel_call @k_split(
// SIX: ckopt.kernel_call @k_library_0_bf16x6(%[[XS]]#0, %[[XS]]#1, %[[XS]]#2, %{{.*}}#0, %{{.*}}#1, %{{.*}}#2)
// SIX: ckopt.products = "bf16x6"

// Operands that are rounded are bf16, their products f32.
// ONE-LABEL: func.func @layer
// ONE: %[[XR:.*]] = ckopt.kernel_call @k_round(%arg0) : (tensor<64x32xf32>) -> tensor<64x32xbf16>
// ONE: ckopt.kernel_call @k_library_0_by_bf16(%[[XR]], %{{.*}}) : (tensor<64x32xbf16>, tensor<32x48xbf16>) -> tensor<64x48xf32>

// Pieces as f32: the numbers of bf16.
// WIDE-LABEL: func.func @layer
// WIDE: ckopt.kernel_call @k_split(%arg0) : (tensor<64x32xf32>) -> (tensor<64x32xf32>, tensor<64x32xf32>)
// WIDE: func.func private @k_split(
// WIDE-NEXT: %[[P:.*]]:2 = ckopt.split_bf16 %arg0 : (tensor<64x32xf32>) -> (tensor<64x32xbf16>, tensor<64x32xbf16>)
// WIDE-NEXT: ckopt.cast %[[P]]#0 : (tensor<64x32xbf16>) -> tensor<64x32xf32>

// ROUND-LABEL: func.func @layer
// ROUND: %[[XR:.*]] = ckopt.kernel_call @k_round(%arg0) : (tensor<64x32xf32>) -> tensor<64x32xf32>
// ROUND: ckopt.kernel_call @k_library_0_by_bf16(%[[XR]],
// ROUND: ckopt.products = "bf16"
// ROUND: func.func private @k_round(
// ROUND-NEXT: %[[P:.*]] = ckopt.cast %arg0 : (tensor<64x32xf32>) -> tensor<64x32xbf16>
// ROUND-NEXT: ckopt.cast %[[P]] : (tensor<64x32xbf16>) -> tensor<64x32xf32>

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

// The addend of a sum is f32, a square has the same pieces twice; f64 stays.
// CHECK-LABEL: func.func @others
// THREE: %[[S:.*]]:2 = ckopt.kernel_call @k_split(%arg0)
// THREE: ckopt.kernel_call @k_library_0_bf16x3(%[[S]]#0, %[[S]]#1, %[[S]]#0, %[[S]]#1, %arg1)
// THREE: ckopt.kernel_call @k_library_1(%arg2) : (tensor<16x16xf64>)
// THREE: ckopt.split_matmul(%arg0, %arg1), (%arg2, %arg3) plus %arg4 {transpose_lhs} :
// ONE-LABEL: func.func @others
// ONE: ckopt.kernel_call @k_library_0_by_bf16(%[[S:.*]], %arg1)
func.func @others(%x: tensor<16x16xf32>, %c: tensor<16x16xf32>, %d: tensor<16x16xf64>) -> (tensor<16x16xf32>, tensor<16x16xf64>) {
  %0 = ckopt.matmul_add %x, %x, %c {transpose_lhs} : (tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %1 = ckopt.matmul %d, %d : (tensor<16x16xf64>, tensor<16x16xf64>) -> tensor<16x16xf64>
  return %0, %1 : tensor<16x16xf32>, tensor<16x16xf64>
}

// -----

// Convolutions take operands that are rounded; they are not split.
// CHECK-LABEL: func.func @convolution
// THREE: ckopt.kernel_call @k_library_0(%arg0, %arg1)
// ONE-LABEL: func.func @convolution
// ONE: ckopt.kernel_call @k_library_0_by_bf16(%{{.*}}, %{{.*}}) : (tensor<1x16x6x6xbf16>, tensor<16x16x3x3xbf16>) -> tensor<1x16x6x6xf32>
func.func @convolution(%x: tensor<1x16x6x6xf32>, %w: tensor<16x16x3x3xf32>) -> tensor<1x16x6x6xf32> {
  %0 = ckopt.conv %x, %w {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x16x6x6xf32>, tensor<16x16x3x3xf32>) -> tensor<1x16x6x6xf32>
  return %0 : tensor<1x16x6x6xf32>
}

// -----

// A maker of two values that products read: one that others read, too, stays beside its pieces.
// CHECK-LABEL: func.func @maker
// THREE: %[[M:.*]]:5 = ckopt.kernel_call @k_elementwise_0_split(%arg0) : (tensor<16x16xf32>) -> (tensor<16x16xf32>, tensor<16x16xbf16>, tensor<16x16xbf16>, tensor<16x16xbf16>, tensor<16x16xbf16>)
// THREE: %[[P:.*]] = ckopt.kernel_call @k_library_0_bf16x3(%[[M]]#1, %[[M]]#2, %[[M]]#3, %[[M]]#4)
// THREE: return %[[P]], %[[M]]#0
// ONE-LABEL: func.func @maker
// ONE: %[[M:.*]]:3 = ckopt.kernel_call @k_elementwise_0_round(%arg0)
// ONE: ckopt.kernel_call @k_library_0_by_bf16(%[[M]]#1, %[[M]]#2)
func.func @maker(%x: tensor<16x16xf32>) -> (tensor<16x16xf32>, tensor<16x16xf32>) {
  %0 = ckopt.exp %x : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %1 = ckopt.tanh %x : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %2 = ckopt.matmul %0, %1 : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  return %2, %1 : tensor<16x16xf32>, tensor<16x16xf32>
}
