// Dialects that ckopt-opt does not register: sparse tensors are refused, quantized elements have the
// bytes of their storage.
// REQUIRES: mlir-tools
// RUN: mlir-opt %s %load_remat --pass-pipeline="builtin.module(func.func(remat{budget=min}))" --split-input-file --verify-diagnostics | FileCheck %s

#csr = #sparse_tensor.encoding<{map = (i, j) -> (i : dense, j : compressed)}>
// expected-error @+1 {{planning needs dense tensors; the size of}}
func.func @sparse(%x: tensor<4x4xf32, #csr>) -> tensor<4x4xf32, #csr> {
  return %x : tensor<4x4xf32, #csr>
}

// -----

// CHECK-LABEL: func.func @quantized
// CHECK-SAME: arena = 128 : i64
func.func @quantized(%x: tensor<64x!quant.uniform<i8:f32, 0.5>>) -> tensor<64x!quant.uniform<i8:f32, 0.5>> {
  %0 = "tosa.abs"(%x) : (tensor<64x!quant.uniform<i8:f32, 0.5>>) -> tensor<64x!quant.uniform<i8:f32, 0.5>>
  return %0 : tensor<64x!quant.uniform<i8:f32, 0.5>>
}
