// REQUIRES: landing
// Attention and its gradient on tensor cores, which round scores, probabilities and
// their gradients, too: within what that takes of products of a few hundred terms.
// RUN: ckopt-opt %s --test-kernels-against-reference=precision=tf32 -o /dev/null | FileCheck %s

// f32 whose operands are rounded on their way.
// CHECK: @rounded: 8 kernels, 0 as code of the CPU, 8 as PTX
func.func @rounded(%a: tensor<1x2x70x20xf32>, %b: tensor<1x1x67x20xf32>, %c: tensor<1x1x67x9xf32>,
    %d: tensor<1x2x70x9xf32>, %e: tensor<1x1x130x80xf32>, %f: tensor<1x1x130x80xf32>,
    %g: tensor<1x1x130x72xf32>, %h: tensor<1x1x130x72xf32>, %i: tensor<1x2x66x8xf32>,
    %j: tensor<1x2x70x8xf32>, %k: tensor<1x2x70x8xf32>, %l: tensor<1x2x66x8xf32>, %m: tensor<70xf32>,
    %n: tensor<1x2x1x70xi1> {test.range = array<f64: 0.0, 2.0>}, %o: tensor<1x1x33x12xf32>,
    %p: tensor<1x1x66x12xf32>, %q: tensor<1x1x66x16xf32>, %r: tensor<1x1x33x16xf32>,
    %s: tensor<i64> {test.value = dense<77309411335> : tensor<i64>},
    %t: tensor<i64> {test.value = dense<11> : tensor<i64>}) attributes {test.tolerance = array<f64: 1.0e-3, 1.0e-3>} {
  %0, %l0 = ckopt.attention %a, %b, %c {scale = 0.3 : f64} : (tensor<1x2x70x20xf32>, tensor<1x1x67x20xf32>, tensor<1x1x67x9xf32>) -> (tensor<1x2x70x9xf32>, tensor<1x2x70x2xf32>)
  %1:3 = ckopt.attention_grad %a, %b, %c of %0, %l0 by %d {scale = 0.3 : f64} : (tensor<1x2x70x20xf32>, tensor<1x1x67x20xf32>, tensor<1x1x67x9xf32>, tensor<1x2x70x9xf32>, tensor<1x2x70x2xf32>, tensor<1x2x70x9xf32>) -> (tensor<1x2x70x20xf32>, tensor<1x1x67x20xf32>, tensor<1x1x67x9xf32>)
  %2, %l2 = ckopt.attention %e, %f, %g {scale = 0.3 : f64, causal = 0 : i64} : (tensor<1x1x130x80xf32>, tensor<1x1x130x80xf32>, tensor<1x1x130x72xf32>) -> (tensor<1x1x130x72xf32>, tensor<1x1x130x2xf32>)
  %3:3 = ckopt.attention_grad %e, %f, %g of %2, %l2 by %h {scale = 0.3 : f64, causal = 0 : i64} : (tensor<1x1x130x80xf32>, tensor<1x1x130x80xf32>, tensor<1x1x130x72xf32>, tensor<1x1x130x72xf32>, tensor<1x1x130x2xf32>, tensor<1x1x130x72xf32>) -> (tensor<1x1x130x80xf32>, tensor<1x1x130x80xf32>, tensor<1x1x130x72xf32>)
  %4, %l4 = ckopt.attention %i, %j, %k bias %m mask %n {scale = 0.3 : f64, zero_empty_rows} : (tensor<1x2x66x8xf32>, tensor<1x2x70x8xf32>, tensor<1x2x70x8xf32>, tensor<70xf32>, tensor<1x2x1x70xi1>) -> (tensor<1x2x66x8xf32>, tensor<1x2x66x2xf32>)
  %5:3 = ckopt.attention_grad %i, %j, %k bias %m mask %n of %4, %l4 by %l {scale = 0.3 : f64, zero_empty_rows} : (tensor<1x2x66x8xf32>, tensor<1x2x70x8xf32>, tensor<1x2x70x8xf32>, tensor<70xf32>, tensor<1x2x1x70xi1>, tensor<1x2x66x8xf32>, tensor<1x2x66x2xf32>, tensor<1x2x66x8xf32>) -> (tensor<1x2x66x8xf32>, tensor<1x2x70x8xf32>, tensor<1x2x70x8xf32>)
  %6, %l6 = ckopt.attention %o, %p, %q dropout %s, %t {scale = 0.3 : f64, ratio = 0.3 : f64, site = 3 : i64} : (tensor<1x1x33x12xf32>, tensor<1x1x66x12xf32>, tensor<1x1x66x16xf32>, tensor<i64>, tensor<i64>) -> (tensor<1x1x33x16xf32>, tensor<1x1x33x2xf32>)
  %7:3 = ckopt.attention_grad %o, %p, %q dropout %s, %t of %6, %l6 by %r {scale = 0.3 : f64, ratio = 0.3 : f64, site = 3 : i64} : (tensor<1x1x33x12xf32>, tensor<1x1x66x12xf32>, tensor<1x1x66x16xf32>, tensor<i64>, tensor<i64>, tensor<1x1x33x16xf32>, tensor<1x1x33x2xf32>, tensor<1x1x33x16xf32>) -> (tensor<1x1x33x12xf32>, tensor<1x1x66x12xf32>, tensor<1x1x66x16xf32>)
  return
}

// Tensors of bf16.
// CHECK: @bf16: 8 kernels, 0 as code of the CPU, 8 as PTX
func.func @bf16(%a: tensor<1x1x1x1xbf16>, %b: tensor<1x1x1x1xbf16>, %c: tensor<1x1x1x1xbf16>,
    %d: tensor<1x1x1x1xbf16>, %e: tensor<1x2x70x20xbf16>, %f: tensor<1x1x67x20xbf16>,
    %g: tensor<1x1x67x9xbf16>, %h: tensor<1x2x70x9xbf16>, %i: tensor<1x1x130x64xbf16>,
    %j: tensor<1x1x70x64xbf16>, %k: tensor<1x1x70x80xbf16>, %l: tensor<1x1x130x80xbf16>,
    %m: tensor<1x1x33x16xbf16>, %n: tensor<1x1x66x16xbf16>, %o: tensor<1x1x66x16xbf16>,
    %p: tensor<1x1x33x16xbf16>, %q: tensor<33x66xi1> {test.range = array<f64: 0.0, 2.0>}) attributes {test.tolerance = array<f64: 5.0e-3, 5.0e-3>} {
  %0, %l0 = ckopt.attention %a, %b, %c {scale = 0.3 : f64} : (tensor<1x1x1x1xbf16>, tensor<1x1x1x1xbf16>, tensor<1x1x1x1xbf16>) -> (tensor<1x1x1x1xbf16>, tensor<1x1x1x2xf32>)
  %1:3 = ckopt.attention_grad %a, %b, %c of %0, %l0 by %d {scale = 0.3 : f64} : (tensor<1x1x1x1xbf16>, tensor<1x1x1x1xbf16>, tensor<1x1x1x1xbf16>, tensor<1x1x1x1xbf16>, tensor<1x1x1x2xf32>, tensor<1x1x1x1xbf16>) -> (tensor<1x1x1x1xbf16>, tensor<1x1x1x1xbf16>, tensor<1x1x1x1xbf16>)
  %2, %l2 = ckopt.attention %e, %f, %g {scale = 0.3 : f64} : (tensor<1x2x70x20xbf16>, tensor<1x1x67x20xbf16>, tensor<1x1x67x9xbf16>) -> (tensor<1x2x70x9xbf16>, tensor<1x2x70x2xf32>)
  %3:3 = ckopt.attention_grad %e, %f, %g of %2, %l2 by %h {scale = 0.3 : f64} : (tensor<1x2x70x20xbf16>, tensor<1x1x67x20xbf16>, tensor<1x1x67x9xbf16>, tensor<1x2x70x9xbf16>, tensor<1x2x70x2xf32>, tensor<1x2x70x9xbf16>) -> (tensor<1x2x70x20xbf16>, tensor<1x1x67x20xbf16>, tensor<1x1x67x9xbf16>)
  %4, %l4 = ckopt.attention %i, %j, %k {scale = 0.3 : f64, causal = 0 : i64} : (tensor<1x1x130x64xbf16>, tensor<1x1x70x64xbf16>, tensor<1x1x70x80xbf16>) -> (tensor<1x1x130x80xbf16>, tensor<1x1x130x2xf32>)
  %5:3 = ckopt.attention_grad %i, %j, %k of %4, %l4 by %l {scale = 0.3 : f64, causal = 0 : i64} : (tensor<1x1x130x64xbf16>, tensor<1x1x70x64xbf16>, tensor<1x1x70x80xbf16>, tensor<1x1x130x80xbf16>, tensor<1x1x130x2xf32>, tensor<1x1x130x80xbf16>) -> (tensor<1x1x130x64xbf16>, tensor<1x1x70x64xbf16>, tensor<1x1x70x80xbf16>)
  %6, %l6 = ckopt.attention %m, %n, %o mask %q {scale = 0.3 : f64, fill = -1.0e9 : f64} : (tensor<1x1x33x16xbf16>, tensor<1x1x66x16xbf16>, tensor<1x1x66x16xbf16>, tensor<33x66xi1>) -> (tensor<1x1x33x16xbf16>, tensor<1x1x33x2xf32>)
  %7:3 = ckopt.attention_grad %m, %n, %o mask %q of %6, %l6 by %p {scale = 0.3 : f64, fill = -1.0e9 : f64} : (tensor<1x1x33x16xbf16>, tensor<1x1x66x16xbf16>, tensor<1x1x66x16xbf16>, tensor<33x66xi1>, tensor<1x1x33x16xbf16>, tensor<1x1x33x2xf32>, tensor<1x1x33x16xbf16>) -> (tensor<1x1x33x16xbf16>, tensor<1x1x66x16xbf16>, tensor<1x1x66x16xbf16>)
  return
}

// Tensors of f16.
// CHECK: @f16: 4 kernels, 0 as code of the CPU, 4 as PTX
func.func @f16(%a: tensor<1x2x70x20xf16>, %b: tensor<1x1x67x20xf16>, %c: tensor<1x1x67x9xf16>,
    %d: tensor<1x2x70x9xf16>, %e: tensor<1x2x70x1xf32>, %f: tensor<1x1x64x64xf16>,
    %g: tensor<1x1x64x64xf16>, %h: tensor<1x1x64x64xf16>, %i: tensor<1x1x64x64xf16>,
    %j: tensor<i64> {test.value = dense<77309411335> : tensor<i64>},
    %k: tensor<i64> {test.value = dense<11> : tensor<i64>}) attributes {test.tolerance = array<f64: 1.0e-3, 1.0e-3>} {
  %0, %l0 = ckopt.attention %a, %b, %c bias %e {scale = 0.3 : f64} : (tensor<1x2x70x20xf16>, tensor<1x1x67x20xf16>, tensor<1x1x67x9xf16>, tensor<1x2x70x1xf32>) -> (tensor<1x2x70x9xf16>, tensor<1x2x70x2xf32>)
  %1:3 = ckopt.attention_grad %a, %b, %c bias %e of %0, %l0 by %d {scale = 0.3 : f64} : (tensor<1x2x70x20xf16>, tensor<1x1x67x20xf16>, tensor<1x1x67x9xf16>, tensor<1x2x70x1xf32>, tensor<1x2x70x9xf16>, tensor<1x2x70x2xf32>, tensor<1x2x70x9xf16>) -> (tensor<1x2x70x20xf16>, tensor<1x1x67x20xf16>, tensor<1x1x67x9xf16>)
  %2, %l2 = ckopt.attention %f, %g, %h dropout %j, %k {scale = 0.3 : f64, ratio = 0.5 : f64, site = 3 : i64} : (tensor<1x1x64x64xf16>, tensor<1x1x64x64xf16>, tensor<1x1x64x64xf16>, tensor<i64>, tensor<i64>) -> (tensor<1x1x64x64xf16>, tensor<1x1x64x2xf32>)
  %3:3 = ckopt.attention_grad %f, %g, %h dropout %j, %k of %2, %l2 by %i {scale = 0.3 : f64, ratio = 0.5 : f64, site = 3 : i64} : (tensor<1x1x64x64xf16>, tensor<1x1x64x64xf16>, tensor<1x1x64x64xf16>, tensor<i64>, tensor<i64>, tensor<1x1x64x64xf16>, tensor<1x1x64x2xf32>, tensor<1x1x64x64xf16>) -> (tensor<1x1x64x64xf16>, tensor<1x1x64x64xf16>, tensor<1x1x64x64xf16>)
  return
}
