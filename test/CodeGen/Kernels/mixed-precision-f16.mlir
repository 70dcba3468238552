// The rules of f16 are those of bf16 (mixed-precision.mlir), where there are products of f16 and where
// there are none. The scale of the loss, an f32 that all gradients come from, makes none of them f32.
// RUN: ckopt-opt %s --fuse --mixed-precision='type=f16 products=f16' | FileCheck %s
// RUN: ckopt-opt %s --fuse --mixed-precision='type=f16' | FileCheck %s --check-prefix=WIDE
// RUN: not ckopt-opt %s --mixed-precision='type=f8' 2>&1 | FileCheck %s --check-prefix=TYPE
// TYPE: 16-bit floats of type 'f8': they are bf16 or f16
// RUN: not ckopt-opt %s --mixed-precision='type=f16 products=bf16' 2>&1 | FileCheck %s --check-prefix=PRODUCTS
// PRODUCTS: products by 'bf16': they are by auto, f16 or f32

// CHECK-LABEL: func.func @layer
// CHECK-SAME: ckopt.f16_products

// On the CPU all products are of f32, from operands that are stored in f16.
// WIDE-LABEL: func.func @layer
// WIDE: %[[P:.*]] = ckopt.kernel_call @k_library_0(%arg0, %arg1) {{.*}} -> tensor<8x48xf32>
// WIDE-NEXT: %[[H:.*]] = ckopt.kernel_call @k_cast(%[[P]]) : (tensor<8x48xf32>) -> tensor<8x48xf16>
// WIDE: %[[D:.*]] = ckopt.kernel_call @k_elementwise_{{[0-9]*}}_f16(%[[H]], %arg2) : (tensor<8x48xf16>, tensor<f32>) -> tensor<8x48xf16>
// WIDE: %[[DW:.*]] = ckopt.kernel_call @k_cast_{{[0-9]*}}(%[[D]]) : (tensor<8x48xf16>) -> tensor<8x48xf32>
// WIDE: ckopt.kernel_call @k_library_1(%arg0, %[[DW]]) {{.*}} -> tensor<32x48xf32>
func.func @layer(%x: tensor<8x32xf32> {ckopt.role = "input"}, %w: tensor<32x48xf32> {ckopt.role = "parameter"},
    %scale: tensor<f32> {ckopt.name = "optimizer/loss_scale", ckopt.role = "optimizer_state"}) -> tensor<32x48xf32> {
  %h = ckopt.matmul %x, %w : (tensor<8x32xf32>, tensor<32x48xf32>) -> tensor<8x48xf32>
  %r = ckopt.tanh %h : (tensor<8x48xf32>) -> tensor<8x48xf32>
  %d = ckopt.mul %r, %scale : (tensor<8x48xf32>, tensor<f32>) -> tensor<8x48xf32>
  %dw = ckopt.matmul %x, %d {transpose_lhs} : (tensor<8x32xf32>, tensor<8x48xf32>) -> tensor<32x48xf32>
  return %dw : tensor<32x48xf32>
}
