// Attention with a cap of its scores on a GPU, and its gradient, against the interpreter.
// RUN: ckopt-opt %s --test-kernels-against-reference -o /dev/null | FileCheck %s

// Tiles that are not full, and full; more than 64 columns; a bias, which is added behind the cap,
// and a mask with a number; a dropout.
// CHECK: @caps: 10 kernels, 0 as code of the CPU, 10 as PTX
func.func @caps(%q0: tensor<1x2x70x20xf32>, %k0: tensor<1x1x67x20xf32>, %v0: tensor<1x1x67x9xf32>, %d0: tensor<1x2x70x9xf32>, %q1: tensor<1x1x64x64xf32>, %k1: tensor<1x1x64x64xf32>, %v1: tensor<1x1x64x64xf32>, %d1: tensor<1x1x64x64xf32>, %q2: tensor<1x1x70x80xf32>, %k2: tensor<1x1x70x80xf32>, %v2: tensor<1x1x70x80xf32>, %d2: tensor<1x1x70x80xf32>, %q3: tensor<1x2x66x8xf32>, %k3: tensor<1x2x70x8xf32>, %v3: tensor<1x2x70x8xf32>, %d3: tensor<1x2x66x8xf32>, %b3: tensor<2x1x70xf32>, %m3: tensor<66x70xi1> {test.range = array<f64: 0.0, 2.0>}, %q4: tensor<1x1x33x12xf32>, %k4: tensor<1x1x66x12xf32>, %v4: tensor<1x1x66x16xf32>, %d4: tensor<1x1x33x16xf32>, %s: tensor<i64> {test.value = dense<77309411335> : tensor<i64>}, %t: tensor<i64> {test.value = dense<11> : tensor<i64>}) attributes {test.tolerance = array<f64: 1.0e-5, 1.0e-5>} {
  %o0, %l0 = ckopt.attention %q0, %k0, %v0 {scale = 0.8 : f64, softcap = 0.5 : f64} : (tensor<1x2x70x20xf32>, tensor<1x1x67x20xf32>, tensor<1x1x67x9xf32>) -> (tensor<1x2x70x9xf32>, tensor<1x2x70x2xf32>)
  %g0:3 = ckopt.attention_grad %q0, %k0, %v0 of %o0, %l0 by %d0 {scale = 0.8 : f64, softcap = 0.5 : f64} : (tensor<1x2x70x20xf32>, tensor<1x1x67x20xf32>, tensor<1x1x67x9xf32>, tensor<1x2x70x9xf32>, tensor<1x2x70x2xf32>, tensor<1x2x70x9xf32>) -> (tensor<1x2x70x20xf32>, tensor<1x1x67x20xf32>, tensor<1x1x67x9xf32>)
  %o1, %l1 = ckopt.attention %q1, %k1, %v1 {scale = 0.3 : f64, softcap = 50.0 : f64, causal = 0 : i64} : (tensor<1x1x64x64xf32>, tensor<1x1x64x64xf32>, tensor<1x1x64x64xf32>) -> (tensor<1x1x64x64xf32>, tensor<1x1x64x2xf32>)
  %g1:3 = ckopt.attention_grad %q1, %k1, %v1 of %o1, %l1 by %d1 {scale = 0.3 : f64, softcap = 50.0 : f64, causal = 0 : i64} : (tensor<1x1x64x64xf32>, tensor<1x1x64x64xf32>, tensor<1x1x64x64xf32>, tensor<1x1x64x64xf32>, tensor<1x1x64x2xf32>, tensor<1x1x64x64xf32>) -> (tensor<1x1x64x64xf32>, tensor<1x1x64x64xf32>, tensor<1x1x64x64xf32>)
  %o2, %l2 = ckopt.attention %q2, %k2, %v2 {scale = 0.3 : f64, softcap = 1.0 : f64, causal = 0 : i64, window = 30 : i64} : (tensor<1x1x70x80xf32>, tensor<1x1x70x80xf32>, tensor<1x1x70x80xf32>) -> (tensor<1x1x70x80xf32>, tensor<1x1x70x2xf32>)
  %g2:3 = ckopt.attention_grad %q2, %k2, %v2 of %o2, %l2 by %d2 {scale = 0.3 : f64, softcap = 1.0 : f64, causal = 0 : i64, window = 30 : i64} : (tensor<1x1x70x80xf32>, tensor<1x1x70x80xf32>, tensor<1x1x70x80xf32>, tensor<1x1x70x80xf32>, tensor<1x1x70x2xf32>, tensor<1x1x70x80xf32>) -> (tensor<1x1x70x80xf32>, tensor<1x1x70x80xf32>, tensor<1x1x70x80xf32>)
  %o3, %l3 = ckopt.attention %q3, %k3, %v3 bias %b3 mask %m3 {scale = 0.8 : f64, softcap = 0.7 : f64, fill = -1.5 : f64} : (tensor<1x2x66x8xf32>, tensor<1x2x70x8xf32>, tensor<1x2x70x8xf32>, tensor<2x1x70xf32>, tensor<66x70xi1>) -> (tensor<1x2x66x8xf32>, tensor<1x2x66x2xf32>)
  %g3:3 = ckopt.attention_grad %q3, %k3, %v3 bias %b3 mask %m3 of %o3, %l3 by %d3 {scale = 0.8 : f64, softcap = 0.7 : f64, fill = -1.5 : f64} : (tensor<1x2x66x8xf32>, tensor<1x2x70x8xf32>, tensor<1x2x70x8xf32>, tensor<2x1x70xf32>, tensor<66x70xi1>, tensor<1x2x66x8xf32>, tensor<1x2x66x2xf32>, tensor<1x2x66x8xf32>) -> (tensor<1x2x66x8xf32>, tensor<1x2x70x8xf32>, tensor<1x2x70x8xf32>)
  %o4, %l4 = ckopt.attention %q4, %k4, %v4 dropout %s, %t {scale = 0.8 : f64, softcap = 0.7 : f64, ratio = 0.3 : f64, site = 3 : i64} : (tensor<1x1x33x12xf32>, tensor<1x1x66x12xf32>, tensor<1x1x66x16xf32>, tensor<i64>, tensor<i64>) -> (tensor<1x1x33x16xf32>, tensor<1x1x33x2xf32>)
  %g4:3 = ckopt.attention_grad %q4, %k4, %v4 dropout %s, %t of %o4, %l4 by %d4 {scale = 0.8 : f64, softcap = 0.7 : f64, ratio = 0.3 : f64, site = 3 : i64} : (tensor<1x1x33x12xf32>, tensor<1x1x66x12xf32>, tensor<1x1x66x16xf32>, tensor<i64>, tensor<i64>, tensor<1x1x33x16xf32>, tensor<1x1x33x2xf32>, tensor<1x1x33x16xf32>) -> (tensor<1x1x33x12xf32>, tensor<1x1x66x12xf32>, tensor<1x1x66x16xf32>)
  return
}

// Tensors of bf16.
// CHECK: @bf16: 2 kernels, 0 as code of the CPU, 2 as PTX
func.func @bf16(%q0: tensor<1x2x70x20xbf16>, %k0: tensor<1x1x67x20xbf16>, %v0: tensor<1x1x67x9xbf16>, %d0: tensor<1x2x70x9xbf16>) attributes {test.tolerance = array<f64: 1.0e-3, 1.0e-3>} {
  %o0, %l0 = ckopt.attention %q0, %k0, %v0 {scale = 0.8 : f64, softcap = 0.5 : f64} : (tensor<1x2x70x20xbf16>, tensor<1x1x67x20xbf16>, tensor<1x1x67x9xbf16>) -> (tensor<1x2x70x9xbf16>, tensor<1x2x70x2xf32>)
  %g0:3 = ckopt.attention_grad %q0, %k0, %v0 of %o0, %l0 by %d0 {scale = 0.8 : f64, softcap = 0.5 : f64} : (tensor<1x2x70x20xbf16>, tensor<1x1x67x20xbf16>, tensor<1x1x67x9xbf16>, tensor<1x2x70x9xbf16>, tensor<1x2x70x2xf32>, tensor<1x2x70x9xbf16>) -> (tensor<1x2x70x20xbf16>, tensor<1x1x67x20xbf16>, tensor<1x1x67x9xbf16>)
  return
}
