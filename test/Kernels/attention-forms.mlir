// REQUIRES: landing
// More forms of attention on a GPU than attention.mlir has: columns, causality, dropouts.
// RUN: ckopt-opt %s --test-kernels-against-reference -o /dev/null | FileCheck %s

// Columns that are no multiple of a tile, and the most.
// CHECK: @columns: 6 kernels, 0 as code of the CPU, 6 as PTX
func.func @columns(%a: tensor<1x1x33x80xf32>, %b: tensor<1x1x66x80xf32>, %c: tensor<1x1x66x80xf32>,
    %d: tensor<1x1x33x80xf32>, %e: tensor<1x1x65x128xf32>, %f: tensor<1x1x40x128xf32>,
    %g: tensor<1x1x40x128xf32>, %h: tensor<1x1x65x128xf32>, %i: tensor<1x1x10x40xf32>,
    %j: tensor<1x1x70x40xf32>, %k: tensor<1x1x70x96xf32>, %l: tensor<1x1x10x96xf32>) attributes {test.tolerance = array<f64: 1.0e-5, 1.0e-5>} {
  %0, %l0 = ckopt.attention %a, %b, %c {scale = 0.3 : f64} : (tensor<1x1x33x80xf32>, tensor<1x1x66x80xf32>, tensor<1x1x66x80xf32>) -> (tensor<1x1x33x80xf32>, tensor<1x1x33x2xf32>)
  %1:3 = ckopt.attention_grad %a, %b, %c of %0, %l0 by %d {scale = 0.3 : f64} : (tensor<1x1x33x80xf32>, tensor<1x1x66x80xf32>, tensor<1x1x66x80xf32>, tensor<1x1x33x80xf32>, tensor<1x1x33x2xf32>, tensor<1x1x33x80xf32>) -> (tensor<1x1x33x80xf32>, tensor<1x1x66x80xf32>, tensor<1x1x66x80xf32>)
  %2, %l2 = ckopt.attention %e, %f, %g {scale = 0.3 : f64} : (tensor<1x1x65x128xf32>, tensor<1x1x40x128xf32>, tensor<1x1x40x128xf32>) -> (tensor<1x1x65x128xf32>, tensor<1x1x65x2xf32>)
  %3:3 = ckopt.attention_grad %e, %f, %g of %2, %l2 by %h {scale = 0.3 : f64} : (tensor<1x1x65x128xf32>, tensor<1x1x40x128xf32>, tensor<1x1x40x128xf32>, tensor<1x1x65x128xf32>, tensor<1x1x65x2xf32>, tensor<1x1x65x128xf32>) -> (tensor<1x1x65x128xf32>, tensor<1x1x40x128xf32>, tensor<1x1x40x128xf32>)
  %4, %l4 = ckopt.attention %i, %j, %k {scale = 0.3 : f64} : (tensor<1x1x10x40xf32>, tensor<1x1x70x40xf32>, tensor<1x1x70x96xf32>) -> (tensor<1x1x10x96xf32>, tensor<1x1x10x2xf32>)
  %5:3 = ckopt.attention_grad %i, %j, %k of %4, %l4 by %l {scale = 0.3 : f64} : (tensor<1x1x10x40xf32>, tensor<1x1x70x40xf32>, tensor<1x1x70x96xf32>, tensor<1x1x10x96xf32>, tensor<1x1x10x2xf32>, tensor<1x1x10x96xf32>) -> (tensor<1x1x10x40xf32>, tensor<1x1x70x40xf32>, tensor<1x1x70x96xf32>)
  return
}

// Causality from the first key on, with keys of before, and with rows that have no keys,
// whole tiles of them; groups of heads that share keys.
// CHECK: @causal: 8 kernels, 0 as code of the CPU, 8 as PTX
func.func @causal(%a: tensor<1x1x130x8xf32>, %b: tensor<1x1x130x8xf32>, %c: tensor<1x1x130x8xf32>,
    %d: tensor<1x1x130x8xf32>, %e: tensor<1x1x66x8xf32>, %f: tensor<1x1x200x8xf32>,
    %g: tensor<1x1x200x8xf32>, %h: tensor<1x1x66x8xf32>, %i: tensor<1x1x140x8xf32>,
    %j: tensor<1x1x70x8xf32>, %k: tensor<1x1x70x8xf32>, %l: tensor<1x1x140x8xf32>,
    %m: tensor<1x4x70x8xf32>, %n: tensor<1x2x70x8xf32>, %o: tensor<1x2x70x8xf32>,
    %p: tensor<1x4x70x8xf32>) attributes {test.tolerance = array<f64: 1.0e-5, 1.0e-5>} {
  %0, %l0 = ckopt.attention %a, %b, %c {scale = 0.3 : f64, causal = 0 : i64} : (tensor<1x1x130x8xf32>, tensor<1x1x130x8xf32>, tensor<1x1x130x8xf32>) -> (tensor<1x1x130x8xf32>, tensor<1x1x130x2xf32>)
  %1:3 = ckopt.attention_grad %a, %b, %c of %0, %l0 by %d {scale = 0.3 : f64, causal = 0 : i64} : (tensor<1x1x130x8xf32>, tensor<1x1x130x8xf32>, tensor<1x1x130x8xf32>, tensor<1x1x130x8xf32>, tensor<1x1x130x2xf32>, tensor<1x1x130x8xf32>) -> (tensor<1x1x130x8xf32>, tensor<1x1x130x8xf32>, tensor<1x1x130x8xf32>)
  %2, %l2 = ckopt.attention %e, %f, %g {scale = 0.3 : f64, causal = 134 : i64} : (tensor<1x1x66x8xf32>, tensor<1x1x200x8xf32>, tensor<1x1x200x8xf32>) -> (tensor<1x1x66x8xf32>, tensor<1x1x66x2xf32>)
  %3:3 = ckopt.attention_grad %e, %f, %g of %2, %l2 by %h {scale = 0.3 : f64, causal = 134 : i64} : (tensor<1x1x66x8xf32>, tensor<1x1x200x8xf32>, tensor<1x1x200x8xf32>, tensor<1x1x66x8xf32>, tensor<1x1x66x2xf32>, tensor<1x1x66x8xf32>) -> (tensor<1x1x66x8xf32>, tensor<1x1x200x8xf32>, tensor<1x1x200x8xf32>)
  %4, %l4 = ckopt.attention %i, %j, %k {scale = 0.3 : f64, causal = -60 : i64, zero_empty_rows} : (tensor<1x1x140x8xf32>, tensor<1x1x70x8xf32>, tensor<1x1x70x8xf32>) -> (tensor<1x1x140x8xf32>, tensor<1x1x140x2xf32>)
  %5:3 = ckopt.attention_grad %i, %j, %k of %4, %l4 by %l {scale = 0.3 : f64, causal = -60 : i64, zero_empty_rows} : (tensor<1x1x140x8xf32>, tensor<1x1x70x8xf32>, tensor<1x1x70x8xf32>, tensor<1x1x140x8xf32>, tensor<1x1x140x2xf32>, tensor<1x1x140x8xf32>) -> (tensor<1x1x140x8xf32>, tensor<1x1x70x8xf32>, tensor<1x1x70x8xf32>)
  %6, %l6 = ckopt.attention %m, %n, %o {scale = 0.3 : f64, causal = 0 : i64} : (tensor<1x4x70x8xf32>, tensor<1x2x70x8xf32>, tensor<1x2x70x8xf32>) -> (tensor<1x4x70x8xf32>, tensor<1x4x70x2xf32>)
  %7:3 = ckopt.attention_grad %m, %n, %o of %6, %l6 by %p {scale = 0.3 : f64, causal = 0 : i64} : (tensor<1x4x70x8xf32>, tensor<1x2x70x8xf32>, tensor<1x2x70x8xf32>, tensor<1x4x70x8xf32>, tensor<1x4x70x2xf32>, tensor<1x4x70x8xf32>) -> (tensor<1x4x70x8xf32>, tensor<1x2x70x8xf32>, tensor<1x2x70x8xf32>)
  return
}

// Dropouts of probabilities.
// CHECK: @dropouts: 4 kernels, 0 as code of the CPU, 4 as PTX
func.func @dropouts(%a: tensor<1x2x70x8xf32>, %b: tensor<1x2x66x8xf32>, %c: tensor<1x2x66x8xf32>,
    %d: tensor<1x2x70x8xf32>, %e: tensor<i64> {test.value = dense<77309411335> : tensor<i64>},
    %f: tensor<i64> {test.value = dense<11> : tensor<i64>}, %g: tensor<1x4x66x8xf32>,
    %h: tensor<1x2x131x8xf32>, %i: tensor<1x2x131x8xf32>, %j: tensor<1x4x66x8xf32>,
    %k: tensor<i64> {test.value = dense<77309411335> : tensor<i64>},
    %l: tensor<i64> {test.value = dense<11> : tensor<i64>}) attributes {test.tolerance = array<f64: 1.0e-5, 1.0e-5>} {
  %0, %l0 = ckopt.attention %a, %b, %c dropout %e, %f {scale = 0.3 : f64, ratio = 0.3 : f64, site = 3 : i64} : (tensor<1x2x70x8xf32>, tensor<1x2x66x8xf32>, tensor<1x2x66x8xf32>, tensor<i64>, tensor<i64>) -> (tensor<1x2x70x8xf32>, tensor<1x2x70x2xf32>)
  %1:3 = ckopt.attention_grad %a, %b, %c dropout %e, %f of %0, %l0 by %d {scale = 0.3 : f64, ratio = 0.3 : f64, site = 3 : i64} : (tensor<1x2x70x8xf32>, tensor<1x2x66x8xf32>, tensor<1x2x66x8xf32>, tensor<i64>, tensor<i64>, tensor<1x2x70x8xf32>, tensor<1x2x70x2xf32>, tensor<1x2x70x8xf32>) -> (tensor<1x2x70x8xf32>, tensor<1x2x66x8xf32>, tensor<1x2x66x8xf32>)
  %2, %l2 = ckopt.attention %g, %h, %i dropout %k, %l {scale = 0.3 : f64, causal = 65 : i64, ratio = 0.5 : f64, site = 3 : i64} : (tensor<1x4x66x8xf32>, tensor<1x2x131x8xf32>, tensor<1x2x131x8xf32>, tensor<i64>, tensor<i64>) -> (tensor<1x4x66x8xf32>, tensor<1x4x66x2xf32>)
  %3:3 = ckopt.attention_grad %g, %h, %i dropout %k, %l of %2, %l2 by %j {scale = 0.3 : f64, causal = 65 : i64, ratio = 0.5 : f64, site = 3 : i64} : (tensor<1x4x66x8xf32>, tensor<1x2x131x8xf32>, tensor<1x2x131x8xf32>, tensor<i64>, tensor<i64>, tensor<1x4x66x8xf32>, tensor<1x4x66x2xf32>, tensor<1x4x66x8xf32>) -> (tensor<1x4x66x8xf32>, tensor<1x2x131x8xf32>, tensor<1x2x131x8xf32>)
  return
}
