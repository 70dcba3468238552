// Products that are added to a tensor, in 16 bits: the sum has the addend's type, as an elementwise
// sum would. Where the target adds to a tensor as it stores, that type is the product's own.
// RUN: ckopt-opt %s --fuse --mixed-precision='target=cuda' --split-input-file | FileCheck %s --check-prefixes=CHECK,CUDA
// RUN: ckopt-opt %s --fuse --mixed-precision='target=cuda type=f16' --split-input-file | FileCheck %s --check-prefix=HALF
// RUN: %if cpu-bf16 %{ ckopt-opt %s --fuse --mixed-precision='products=bf16' --split-input-file | FileCheck %s --check-prefixes=CHECK,CPU %}
// RUN: ckopt-opt %s --fuse --mixed-precision='products=f32' --split-input-file | FileCheck %s --check-prefix=WIDE

// A chain of products that another kernel reads. The CPU's library sums in f32, and so does the
// whole chain, which is rounded once; where it multiplies f32, too.
// CHECK-LABEL: func.func @chain
// CUDA: %[[A:.*]] = ckopt.kernel_call @k_library_0_bf16(%{{.*}} -> tensor<16x32xbf16>
// CUDA-NOT: @k_cast{{.*}} -> tensor<16x32xf32>
// CUDA: %[[B:.*]] = ckopt.kernel_call @k_library_1_bf16(%{{.*}}, %{{.*}}, %[[A]]) : (tensor<16x64xbf16>, tensor<64x32xbf16>, tensor<16x32xbf16>) -> tensor<16x32xbf16>
// CUDA-NEXT: ckopt.kernel_call @k_row_0_bf16(%[[B]])
// CPU: %[[A:.*]] = ckopt.kernel_call @k_library_0_bf16_f32(%{{.*}} -> tensor<16x32xf32>
// CPU: %[[B:.*]] = ckopt.kernel_call @k_library_1_bf16_f32(%{{.*}}, %{{.*}}, %[[A]]) : (tensor<16x64xbf16>, tensor<64x32xbf16>, tensor<16x32xf32>) -> tensor<16x32xf32>
// CPU-NEXT: %[[L:.*]] = ckopt.kernel_call @k_cast{{.*}}(%[[B]]) : (tensor<16x32xf32>) -> tensor<16x32xbf16>
// CPU-NEXT: ckopt.kernel_call @k_row_0_bf16(%[[L]])
// WIDE-LABEL: func.func @chain
// WIDE: %[[A:.*]] = ckopt.kernel_call @k_library_0(%{{.*}} -> tensor<16x32xf32>
// WIDE-NEXT: %[[B:.*]] = ckopt.kernel_call @k_library_1(%{{.*}}, %{{.*}}, %[[A]])
// WIDE-NEXT: ckopt.kernel_call @k_cast{{.*}}(%[[B]]) : (tensor<16x32xf32>) -> tensor<16x32xbf16>
// HALF-LABEL: func.func @chain
// HALF: ckopt.kernel_call @k_library_1_f16({{.*}} : (tensor<16x64xf16>, tensor<64x32xf16>, tensor<16x32xf16>) -> tensor<16x32xf16>
func.func @chain(%a: tensor<16x64xf32> {ckopt.role = "input"}, %b: tensor<16x64xf32> {ckopt.role = "input"},
    %w: tensor<64x32xf32> {ckopt.role = "parameter"}, %v: tensor<32x8xf32> {ckopt.role = "parameter"}) -> tensor<16x8xf32> {
  %0 = ckopt.matmul %a, %w : (tensor<16x64xf32>, tensor<64x32xf32>) -> tensor<16x32xf32>
  %1 = ckopt.matmul_add %b, %w, %0 : (tensor<16x64xf32>, tensor<64x32xf32>, tensor<16x32xf32>) -> tensor<16x32xf32>
  %2 = ckopt.softmax %1 {axis = 1} : (tensor<16x32xf32>) -> tensor<16x32xf32>
  %3 = ckopt.matmul %2, %v : (tensor<16x32xf32>, tensor<32x8xf32>) -> tensor<16x8xf32>
  return %3 : tensor<16x8xf32>
}

// -----

// What is added to f32 is f32: nothing rounds a residual stream.
// CHECK-LABEL: func.func @stream
// CHECK: %[[S:.*]] = ckopt.kernel_call @k_library_0_bf16_f32(%{{.*}}, %{{.*}}, %arg0) : (tensor<16x64xbf16>, tensor<64x32xbf16>, tensor<16x32xf32>) -> tensor<16x32xf32>
// CHECK-NEXT: ckopt.kernel_call @k_row_0_bf16(%[[S]]) : (tensor<16x32xf32>) -> tensor<16x32xbf16>
func.func @stream(%x: tensor<16x32xf32> {ckopt.role = "input"}, %a: tensor<16x64xf32> {ckopt.role = "input"},
    %w: tensor<64x32xf32> {ckopt.role = "parameter"}, %v: tensor<32x8xf32> {ckopt.role = "parameter"}) -> tensor<16x8xf32> {
  %0 = ckopt.matmul_add %a, %w, %x : (tensor<16x64xf32>, tensor<64x32xf32>, tensor<16x32xf32>) -> tensor<16x32xf32>
  %1 = ckopt.softmax %0 {axis = 1} : (tensor<16x32xf32>) -> tensor<16x32xf32>
  %2 = ckopt.matmul %1, %v : (tensor<16x32xf32>, tensor<32x8xf32>) -> tensor<16x8xf32>
  return %2 : tensor<16x8xf32>
}

// -----

// A bias has the type of the sum: f32 beside a stream of f32, and beside one of 16 bits that, for
// which the library has no other.
// CUDA-LABEL: func.func @bias
// CUDA: %[[S:.*]] = ckopt.kernel_call @k_library_0_bf16_f32(%{{.*}}, %{{.*}}, %arg0, %arg4) : (tensor<16x64xbf16>, tensor<64x32xbf16>, tensor<16x32xf32>, tensor<32xf32>) -> tensor<16x32xf32>
// CUDA: %[[P:.*]] = ckopt.kernel_call @k_library_1_bf16(%{{.*}}) {{.*}} -> tensor<16x32xbf16>
// CUDA: %[[B:.*]] = ckopt.kernel_call @k_cast{{.*}}(%arg4) : (tensor<32xf32>) -> tensor<32xbf16>
// CUDA: ckopt.kernel_call @k_library_0_bf16(%{{.*}}, %{{.*}}, %[[P]], %[[B]]) : (tensor<16x64xbf16>, tensor<64x32xbf16>, tensor<16x32xbf16>, tensor<32xbf16>) -> tensor<16x32xbf16>
// HALF-LABEL: func.func @bias
// HALF: ckopt.kernel_call @k_library_0_f16_f32({{.*}} : (tensor<16x64xf16>, tensor<64x32xf16>, tensor<16x32xf32>, tensor<32xf32>) -> tensor<16x32xf32>
func.func @bias(%x: tensor<16x32xf32> {ckopt.role = "input"}, %a: tensor<16x64xf32> {ckopt.role = "input"},
    %w: tensor<64x32xf32> {ckopt.role = "parameter"}, %v: tensor<32x32xf32> {ckopt.role = "parameter"},
    %b: tensor<32xf32> {ckopt.role = "parameter"}) -> tensor<16x32xf32> {
  %0 = ckopt.matmul_add %a, %w, %x bias %b : (tensor<16x64xf32>, tensor<64x32xf32>, tensor<16x32xf32>, tensor<32xf32>) -> tensor<16x32xf32>
  %1 = ckopt.softmax %0 {axis = 1} : (tensor<16x32xf32>) -> tensor<16x32xf32>
  %2 = ckopt.matmul %1, %v : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
  %3 = ckopt.matmul_add %a, %w, %2 bias %b : (tensor<16x64xf32>, tensor<64x32xf32>, tensor<16x32xf32>, tensor<32xf32>) -> tensor<16x32xf32>
  %4 = ckopt.softmax %3 {axis = 1} : (tensor<16x32xf32>) -> tensor<16x32xf32>
  return %4 : tensor<16x32xf32>
}

// -----

// A value that is multiplied, and added as it is: in 16 bits and in f32.
// CHECK-LABEL: func.func @both
// CHECK: %[[X:.*]] = ckopt.kernel_call @k_cast(%arg0) : (tensor<16x16xf32>) -> tensor<16x16xbf16>
// CHECK: ckopt.kernel_call @k_library_0_bf16_f32(%[[X]], %{{.*}}, %arg0) : (tensor<16x16xbf16>, tensor<16x16xbf16>, tensor<16x16xf32>) -> tensor<16x16xf32>
// CHECK: func.func private @k_library_0_bf16_f32
// CHECK-NEXT: ckopt.matmul_add %arg0, %arg1, %arg2 : (tensor<16x16xbf16>, tensor<16x16xbf16>, tensor<16x16xf32>)
func.func @both(%x: tensor<16x16xf32> {ckopt.role = "input"}, %w: tensor<16x16xf32> {ckopt.role = "parameter"}) -> tensor<16x16xf32> {
  %0 = ckopt.matmul_add %x, %w, %x : (tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  return %0 : tensor<16x16xf32>
}
