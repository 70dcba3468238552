// REQUIRES: cpu-bf16
// RUN: ckopt-opt %s --fuse --mixed-precision='products=bf16' --split-input-file | FileCheck %s
// RUN: ckopt-opt %s --fuse --mixed-precision='products=bf16 keep-f32=second' --split-input-file 2>&1 | FileCheck %s --check-prefix=KEEP
// RUN: ckopt-opt %s --fuse --mixed-precision='products=f32' --split-input-file | FileCheck %s --check-prefix=WIDE
// RUN: not ckopt-opt %s --mixed-precision='products=tf32' 2>&1 | FileCheck %s --check-prefix=PRODUCTS
// PRODUCTS: products by 'tf32': they are by auto, bf16 or f32

// A layer and its gradient. Operands of products are bf16; data and parameters are cast first, the
// bias is read as it is. What is stored between kernels is bf16, what kernels compute is f32.
// Gradients of parameters are f32 as the products and sums give them.
// CHECK-LABEL: func.func @layer
// CHECK-SAME: %[[X:[^:]*]]: tensor<64x32xf32>{{.*}}, %[[W:[^:]*]]: tensor<32x48xf32>{{.*}}, %[[B:[^:]*]]: tensor<48xf32>{{.*}}, %[[V:[^:]*]]: tensor<48x64xf32>
// CHECK-SAME: ckopt.bf16_products
// CHECK: %[[XL:.*]] = ckopt.kernel_call @k_cast(%[[X]]) : (tensor<64x32xf32>) -> tensor<64x32xbf16>
// CHECK: %[[WL:.*]] = ckopt.kernel_call @k_cast_0(%[[W]])
// CHECK: %[[H:.*]] = ckopt.kernel_call @k_library_0_bf16(%[[XL]], %[[WL]]) {{.*}} -> tensor<64x48xbf16>
// CHECK: %[[R:.*]] = ckopt.kernel_call @k_elementwise_0_bf16(%[[H]], %[[B]]) : (tensor<64x48xbf16>, tensor<48xf32>) -> tensor<64x48xbf16>
// CHECK: %[[VL:.*]] = ckopt.kernel_call @k_cast_1(%[[V]])
// CHECK: %[[Y:.*]] = ckopt.kernel_call @k_library_1_bf16(%[[R]], %[[VL]])
// CHECK: %[[D:.*]] = ckopt.kernel_call @k_elementwise_1_bf16(%[[Y]], %{{.*}}) : (tensor<64x64xbf16>, tensor<64x64xf32>) -> tensor<64x64xbf16>
// CHECK: %[[DV:.*]] = ckopt.kernel_call @k_library_2_bf16_f32(%[[R]], %[[D]]) {{.*}} -> tensor<48x64xf32>
// CHECK: %[[DR:.*]] = ckopt.kernel_call @k_library_3_bf16(%[[D]], %[[VL]])
// CHECK: %[[DA:.*]] = ckopt.kernel_call @k_elementwise_2_bf16(%[[H]], %[[B]], %[[DR]])
// CHECK: %[[DW:.*]] = ckopt.kernel_call @k_library_4_bf16_f32(%[[XL]], %[[DA]]) {{.*}} -> tensor<32x48xf32>
// CHECK: %[[DB:.*]] = ckopt.kernel_call @k_reduction_0_bf16(%[[DA]]) : (tensor<64x48xbf16>) -> tensor<48xf32>
// CHECK: return %[[DW]], %[[DB]], %[[DV]]
// CHECK-NOT: func.func private @k_library_0(
// CHECK: func.func private @k_elementwise_0_bf16
// CHECK: ckopt.cast %{{.*}} : (tensor<64x48xbf16>) -> tensor<64x48xf32>
// CHECK-NEXT: ckopt.add %{{.*}} : (tensor<64x48xf32>, tensor<48xf32>) -> tensor<64x48xf32>
// CHECK-NEXT: ckopt.relu %{{.*}} : (tensor<64x48xf32>) -> tensor<64x48xf32>
// CHECK-NEXT: ckopt.cast %{{.*}} : (tensor<64x48xf32>) -> tensor<64x48xbf16>
// CHECK: func.func private @k_library_2_bf16_f32
// CHECK-NEXT: ckopt.matmul {{.*}} : (tensor<64x48xbf16>, tensor<64x64xbf16>) -> tensor<48x64xf32>

// The second layer's products stay f32, forward and backward; what the first one stores is bf16.
// KEEP-LABEL: func.func @layer
// KEEP: %[[H:.*]] = ckopt.kernel_call @k_library_0_bf16(
// KEEP: %[[R:.*]] = ckopt.kernel_call @k_elementwise_0_bf16(%[[H]], {{.*}} -> tensor<64x48xbf16>
// KEEP: %[[RW:.*]] = ckopt.kernel_call @k_cast{{.*}}(%[[R]]) : (tensor<64x48xbf16>) -> tensor<64x48xf32>
// KEEP: ckopt.kernel_call @k_library_1(%[[RW]], %arg3) : (tensor<64x48xf32>, tensor<48x64xf32>) -> tensor<64x64xf32>
// KEEP: ckopt.kernel_call @k_library_2({{.*}} -> tensor<48x64xf32>
// KEEP: ckopt.kernel_call @k_library_3({{.*}} -> tensor<64x48xf32>
// KEEP: ckopt.kernel_call @k_library_4_bf16_f32(

// Without instructions for bf16 a product reads f32, and its result is cast.
// WIDE-LABEL: func.func @layer
// WIDE: %[[P:.*]] = ckopt.kernel_call @k_library_0(%arg0, %arg1) : (tensor<64x32xf32>, tensor<32x48xf32>) -> tensor<64x48xf32>
// WIDE-NEXT: %[[H:.*]] = ckopt.kernel_call @k_cast(%[[P]]) : (tensor<64x48xf32>) -> tensor<64x48xbf16>
// WIDE-NEXT: %[[R:.*]] = ckopt.kernel_call @k_elementwise_0_bf16(%[[H]], %arg2) : (tensor<64x48xbf16>, tensor<48xf32>) -> tensor<64x48xbf16>
// WIDE-NEXT: %[[RW:.*]] = ckopt.kernel_call @k_cast_0(%[[R]]) : (tensor<64x48xbf16>) -> tensor<64x48xf32>
// WIDE-NEXT: ckopt.kernel_call @k_library_1(%[[RW]], %arg3)
func.func @layer(%x: tensor<64x32xf32> {ckopt.role = "input"}, %w: tensor<32x48xf32> {ckopt.role = "parameter"},
    %b: tensor<48xf32> {ckopt.role = "parameter"}, %v: tensor<48x64xf32> {ckopt.role = "parameter"},
    %t: tensor<64x64xf32> {ckopt.role = "target"})
    -> (tensor<32x48xf32>, tensor<48xf32>, tensor<48x64xf32>) {
  %zero = ckopt.constant dense<0.0> : tensor<f32>
  %h = ckopt.matmul %x, %w : (tensor<64x32xf32>, tensor<32x48xf32>) -> tensor<64x48xf32> loc("first")
  %a = ckopt.add %h, %b : (tensor<64x48xf32>, tensor<48xf32>) -> tensor<64x48xf32>
  %r = ckopt.relu %a : (tensor<64x48xf32>) -> tensor<64x48xf32>
  %y = ckopt.matmul %r, %v : (tensor<64x48xf32>, tensor<48x64xf32>) -> tensor<64x64xf32> loc("second")
  %d = ckopt.sub %y, %t : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %dv = ckopt.matmul %r, %d {transpose_lhs} : (tensor<64x48xf32>, tensor<64x64xf32>) -> tensor<48x64xf32> loc("second")
  %dr = ckopt.matmul %d, %v {transpose_rhs} : (tensor<64x64xf32>, tensor<48x64xf32>) -> tensor<64x48xf32> loc("second")
  %m = ckopt.compare gt %a, %zero : (tensor<64x48xf32>, tensor<f32>) -> tensor<64x48xi1>
  %da = ckopt.select %m, %dr, %zero : (tensor<64x48xi1>, tensor<64x48xf32>, tensor<f32>) -> tensor<64x48xf32>
  %dw = ckopt.matmul %x, %da {transpose_lhs} : (tensor<64x32xf32>, tensor<64x48xf32>) -> tensor<32x48xf32> loc("first")
  %db = ckopt.reduce sum %da {axes = array<i64: 0>, keepdims = false} : (tensor<64x48xf32>) -> tensor<48xf32>
  return %dw, %db, %dv : tensor<32x48xf32>, tensor<48xf32>, tensor<48x64xf32>
}

// -----

// A residual stream that begins in f32 stays f32; the norm and what else only products read is
// bf16, and the gradient that is read by both comes in both types from one kernel.
// CHECK-LABEL: func.func @residual
// CHECK: %[[N:.*]] = ckopt.kernel_call @k_row_0_bf16(%arg0, %arg1) : (tensor<16x64xf32>, tensor<64xf32>) -> tensor<16x64xbf16>
// CHECK: %[[P:.*]] = ckopt.kernel_call @k_library_0_bf16(%[[N]],
// CHECK: %[[R:.*]]:3 = ckopt.kernel_call @k_elementwise_0_bf16(%arg0, %[[P]], %arg3)
// CHECK-SAME: -> (tensor<16x64xf32>, tensor<16x64xf32>, tensor<16x64xbf16>)
// CHECK: %[[DW:.*]] = ckopt.kernel_call @k_library_1_bf16_f32(%[[N]], %[[R]]#2)
// CHECK: %[[DB:.*]] = ckopt.kernel_call @k_reduction_0(%[[R]]#1)
// CHECK: return %[[R]]#0, %[[DW]], %[[DB]]
// CHECK: func.func private @k_row_0_bf16
// CHECK: ckopt.layer_norm {{.*}} -> (tensor<16x64xbf16>, tensor<16xf32>, tensor<16xf32>)
func.func @residual(%x: tensor<16x64xf32> {ckopt.role = "input"}, %s: tensor<64xf32> {ckopt.role = "parameter"},
    %w: tensor<64x64xf32> {ckopt.role = "parameter"}, %g: tensor<16x64xf32> {ckopt.role = "input"})
    -> (tensor<16x64xf32>, tensor<64x64xf32>, tensor<64xf32>) {
  %n, %mean, %rstd = ckopt.layer_norm %x scale %s {axis = 1 : i64, epsilon = 1.0e-5 : f64}
      : (tensor<16x64xf32>, tensor<64xf32>) -> (tensor<16x64xf32>, tensor<16xf32>, tensor<16xf32>)
  %p = ckopt.matmul %n, %w : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32> loc("second")
  %r = ckopt.add %x, %p : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  %d = ckopt.mul %r, %g : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  %dw = ckopt.matmul %n, %d {transpose_lhs} : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<64x64xf32>
  %db = ckopt.reduce sum %d {axes = array<i64: 0>, keepdims = false} : (tensor<16x64xf32>) -> tensor<64xf32>
  return %r, %dw, %db : tensor<16x64xf32>, tensor<64x64xf32>, tensor<64xf32>
}

// -----

// Attention: scores and probabilities are bf16, computed in f32; a mask of few elements does not
// count. What moves elements moves bf16.
// CHECK-LABEL: func.func @attention
// CHECK: %[[QKV:.*]] = ckopt.kernel_call @k_library_0_bf16
// CHECK: %[[S:.*]]:3 = ckopt.kernel_call @k_elementwise_0_bf16(%[[QKV]]) : (tensor<32x48xbf16>) -> (tensor<32x16xbf16>, tensor<32x16xbf16>, tensor<32x16xbf16>)
// CHECK: %[[T:.*]] = ckopt.kernel_call @k_library_1_bf16(%[[S]]#0, %[[S]]#1)
// CHECK: %[[P:.*]] = ckopt.kernel_call @k_row_0_bf16(%[[T]], %arg2) : (tensor<32x32xbf16>, tensor<1x32xf32>) -> tensor<32x32xbf16>
// CHECK: %[[O:.*]] = ckopt.kernel_call @k_library_2_bf16_f32(%[[P]], %[[S]]#2) {{.*}} -> tensor<32x16xf32>
// CHECK: return %[[O]]
// CHECK: func.func private @k_elementwise_0_bf16
// CHECK-NOT: ckopt.cast
// CHECK: func.func private @k_row_0_bf16
// CHECK: ckopt.softmax %{{.*}} : (tensor<32x32xf32>) -> tensor<32x32xbf16>
func.func @attention(%q: tensor<32x16xf32> {ckopt.role = "input"}, %w: tensor<16x48xf32> {ckopt.role = "parameter"},
    %mask: tensor<1x32xf32> {ckopt.role = "input"}) -> tensor<32x16xf32> {
  %qkv = ckopt.matmul %q, %w : (tensor<32x16xf32>, tensor<16x48xf32>) -> tensor<32x48xf32>
  %0 = ckopt.slice %qkv {starts = array<i64: 0, 0>, sizes = array<i64: 32, 16>, steps = array<i64: 1, 1>} : (tensor<32x48xf32>) -> tensor<32x16xf32>
  %1 = ckopt.slice %qkv {starts = array<i64: 0, 16>, sizes = array<i64: 32, 16>, steps = array<i64: 1, 1>} : (tensor<32x48xf32>) -> tensor<32x16xf32>
  %2 = ckopt.slice %qkv {starts = array<i64: 0, 32>, sizes = array<i64: 32, 16>, steps = array<i64: 1, 1>} : (tensor<32x48xf32>) -> tensor<32x16xf32>
  %s = ckopt.matmul %0, %1 {transpose_rhs} : (tensor<32x16xf32>, tensor<32x16xf32>) -> tensor<32x32xf32>
  %m = ckopt.add %s, %mask : (tensor<32x32xf32>, tensor<1x32xf32>) -> tensor<32x32xf32>
  %p = ckopt.softmax %m {axis = 1} : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %o = ckopt.matmul %p, %2 : (tensor<32x32xf32>, tensor<32x16xf32>) -> tensor<32x16xf32>
  return %o : tensor<32x16xf32>
}
