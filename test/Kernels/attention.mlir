// Attention and its gradient as blocks of a GPU, against the interpreter.
// RUN: ckopt-opt %s --test-kernels-against-reference -o /dev/null | FileCheck %s

// One row and one key; tiles that are not full; one row of several tiles; tiles that are
// full.
// CHECK: @sizes: 8 kernels, 0 as code of the CPU, 8 as PTX
func.func @sizes(%a: tensor<1x1x1x1xf32>, %b: tensor<1x1x1x1xf32>, %c: tensor<1x1x1x1xf32>, %d: tensor<1x1x1x1xf32>,
    %e: tensor<1x2x70x20xf32>, %f: tensor<1x2x67x20xf32>, %g: tensor<1x2x67x9xf32>,
    %h: tensor<1x2x70x9xf32>, %i: tensor<1x1x1x32xf32>, %j: tensor<1x1x130x32xf32>,
    %k: tensor<1x1x130x32xf32>, %l: tensor<1x1x1x32xf32>, %m: tensor<2x1x64x64xf32>,
    %n: tensor<2x1x64x64xf32>, %o: tensor<2x1x64x64xf32>, %p: tensor<2x1x64x64xf32>) attributes {test.tolerance = array<f64: 1.0e-5, 1.0e-5>} {
  %0, %l0 = ckopt.attention %a, %b, %c {scale = 0.3 : f64} : (tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>) -> (tensor<1x1x1x1xf32>, tensor<1x1x1x2xf32>)
  %1:3 = ckopt.attention_grad %a, %b, %c of %0, %l0 by %d {scale = 0.3 : f64} : (tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>, tensor<1x1x1x2xf32>, tensor<1x1x1x1xf32>) -> (tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>)
  %2, %l2 = ckopt.attention %e, %f, %g {scale = 0.3 : f64} : (tensor<1x2x70x20xf32>, tensor<1x2x67x20xf32>, tensor<1x2x67x9xf32>) -> (tensor<1x2x70x9xf32>, tensor<1x2x70x2xf32>)
  %3:3 = ckopt.attention_grad %e, %f, %g of %2, %l2 by %h {scale = 0.3 : f64} : (tensor<1x2x70x20xf32>, tensor<1x2x67x20xf32>, tensor<1x2x67x9xf32>, tensor<1x2x70x9xf32>, tensor<1x2x70x2xf32>, tensor<1x2x70x9xf32>) -> (tensor<1x2x70x20xf32>, tensor<1x2x67x20xf32>, tensor<1x2x67x9xf32>)
  %4, %l4 = ckopt.attention %i, %j, %k {scale = 0.3 : f64} : (tensor<1x1x1x32xf32>, tensor<1x1x130x32xf32>, tensor<1x1x130x32xf32>) -> (tensor<1x1x1x32xf32>, tensor<1x1x1x2xf32>)
  %5:3 = ckopt.attention_grad %i, %j, %k of %4, %l4 by %l {scale = 0.3 : f64} : (tensor<1x1x1x32xf32>, tensor<1x1x130x32xf32>, tensor<1x1x130x32xf32>, tensor<1x1x1x32xf32>, tensor<1x1x1x2xf32>, tensor<1x1x1x32xf32>) -> (tensor<1x1x1x32xf32>, tensor<1x1x130x32xf32>, tensor<1x1x130x32xf32>)
  %6, %l6 = ckopt.attention %m, %n, %o {scale = 0.3 : f64} : (tensor<2x1x64x64xf32>, tensor<2x1x64x64xf32>, tensor<2x1x64x64xf32>) -> (tensor<2x1x64x64xf32>, tensor<2x1x64x2xf32>)
  %7:3 = ckopt.attention_grad %m, %n, %o of %6, %l6 by %p {scale = 0.3 : f64} : (tensor<2x1x64x64xf32>, tensor<2x1x64x64xf32>, tensor<2x1x64x64xf32>, tensor<2x1x64x64xf32>, tensor<2x1x64x2xf32>, tensor<2x1x64x64xf32>) -> (tensor<2x1x64x64xf32>, tensor<2x1x64x64xf32>, tensor<2x1x64x64xf32>)
  return
}

// Biases and masks that broadcast; masks that leave no key, with zeros and with a number
// in its place.
// CHECK: @masks: 12 kernels, 0 as code of the CPU, 12 as PTX
func.func @masks(%a: tensor<2x3x70x8xf32>, %b: tensor<2x3x70x8xf32>, %c: tensor<2x3x70x8xf32>,
    %d: tensor<2x3x70x8xf32>, %e: tensor<3x1x70xf32>, %f: tensor<2x2x66x8xf32>,
    %g: tensor<2x2x66x8xf32>, %h: tensor<2x2x66x8xf32>, %i: tensor<2x2x66x8xf32>,
    %j: tensor<2x1x66x66xf32>, %k: tensor<2x2x66x8xf32>, %l: tensor<2x2x70x8xf32>,
    %m: tensor<2x2x70x8xf32>, %n: tensor<2x2x66x8xf32>,
    %o: tensor<2x1x1x70xi1> {test.range = array<f64: 0.0, 2.0>}, %p: tensor<1x2x40x8xf32>,
    %q: tensor<1x1x66x8xf32>, %r: tensor<1x1x66x8xf32>, %s: tensor<1x2x40x8xf32>,
    %t: tensor<1x2x40x66xi1> {test.range = array<f64: 0.0, 2.0>}, %u: tensor<1x1x5x8xf32>,
    %v: tensor<1x1x130x8xf32>, %w: tensor<1x1x130x8xf32>, %x: tensor<1x1x5x8xf32>,
    %y: tensor<130xi1> {test.value = dense<false> : tensor<130xi1>}, %z: tensor<1x1x5x8xf32>,
    %a26: tensor<1x1x70x8xf32>, %a27: tensor<1x1x70x8xf32>, %a28: tensor<1x1x5x8xf32>,
    %a29: tensor<70xi1> {test.value = dense<false> : tensor<70xi1>}) attributes {test.tolerance = array<f64: 1.0e-5, 1.0e-5>} {
  %0, %l0 = ckopt.attention %a, %b, %c bias %e {scale = 0.3 : f64} : (tensor<2x3x70x8xf32>, tensor<2x3x70x8xf32>, tensor<2x3x70x8xf32>, tensor<3x1x70xf32>) -> (tensor<2x3x70x8xf32>, tensor<2x3x70x2xf32>)
  %1:3 = ckopt.attention_grad %a, %b, %c bias %e of %0, %l0 by %d {scale = 0.3 : f64} : (tensor<2x3x70x8xf32>, tensor<2x3x70x8xf32>, tensor<2x3x70x8xf32>, tensor<3x1x70xf32>, tensor<2x3x70x8xf32>, tensor<2x3x70x2xf32>, tensor<2x3x70x8xf32>) -> (tensor<2x3x70x8xf32>, tensor<2x3x70x8xf32>, tensor<2x3x70x8xf32>)
  %2, %l2 = ckopt.attention %f, %g, %h bias %j {scale = 0.3 : f64, causal = 0 : i64} : (tensor<2x2x66x8xf32>, tensor<2x2x66x8xf32>, tensor<2x2x66x8xf32>, tensor<2x1x66x66xf32>) -> (tensor<2x2x66x8xf32>, tensor<2x2x66x2xf32>)
  %3:3 = ckopt.attention_grad %f, %g, %h bias %j of %2, %l2 by %i {scale = 0.3 : f64, causal = 0 : i64} : (tensor<2x2x66x8xf32>, tensor<2x2x66x8xf32>, tensor<2x2x66x8xf32>, tensor<2x1x66x66xf32>, tensor<2x2x66x8xf32>, tensor<2x2x66x2xf32>, tensor<2x2x66x8xf32>) -> (tensor<2x2x66x8xf32>, tensor<2x2x66x8xf32>, tensor<2x2x66x8xf32>)
  %4, %l4 = ckopt.attention %k, %l, %m mask %o {scale = 0.3 : f64, zero_empty_rows} : (tensor<2x2x66x8xf32>, tensor<2x2x70x8xf32>, tensor<2x2x70x8xf32>, tensor<2x1x1x70xi1>) -> (tensor<2x2x66x8xf32>, tensor<2x2x66x2xf32>)
  %5:3 = ckopt.attention_grad %k, %l, %m mask %o of %4, %l4 by %n {scale = 0.3 : f64, zero_empty_rows} : (tensor<2x2x66x8xf32>, tensor<2x2x70x8xf32>, tensor<2x2x70x8xf32>, tensor<2x1x1x70xi1>, tensor<2x2x66x8xf32>, tensor<2x2x66x2xf32>, tensor<2x2x66x8xf32>) -> (tensor<2x2x66x8xf32>, tensor<2x2x70x8xf32>, tensor<2x2x70x8xf32>)
  %6, %l6 = ckopt.attention %p, %q, %r mask %t {scale = 0.3 : f64, fill = -1.0e9 : f64} : (tensor<1x2x40x8xf32>, tensor<1x1x66x8xf32>, tensor<1x1x66x8xf32>, tensor<1x2x40x66xi1>) -> (tensor<1x2x40x8xf32>, tensor<1x2x40x2xf32>)
  %7:3 = ckopt.attention_grad %p, %q, %r mask %t of %6, %l6 by %s {scale = 0.3 : f64, fill = -1.0e9 : f64} : (tensor<1x2x40x8xf32>, tensor<1x1x66x8xf32>, tensor<1x1x66x8xf32>, tensor<1x2x40x66xi1>, tensor<1x2x40x8xf32>, tensor<1x2x40x2xf32>, tensor<1x2x40x8xf32>) -> (tensor<1x2x40x8xf32>, tensor<1x1x66x8xf32>, tensor<1x1x66x8xf32>)
  %8, %l8 = ckopt.attention %u, %v, %w mask %y {scale = 0.3 : f64, zero_empty_rows} : (tensor<1x1x5x8xf32>, tensor<1x1x130x8xf32>, tensor<1x1x130x8xf32>, tensor<130xi1>) -> (tensor<1x1x5x8xf32>, tensor<1x1x5x2xf32>)
  %9:3 = ckopt.attention_grad %u, %v, %w mask %y of %8, %l8 by %x {scale = 0.3 : f64, zero_empty_rows} : (tensor<1x1x5x8xf32>, tensor<1x1x130x8xf32>, tensor<1x1x130x8xf32>, tensor<130xi1>, tensor<1x1x5x8xf32>, tensor<1x1x5x2xf32>, tensor<1x1x5x8xf32>) -> (tensor<1x1x5x8xf32>, tensor<1x1x130x8xf32>, tensor<1x1x130x8xf32>)
  %10, %l10 = ckopt.attention %z, %a26, %a27 mask %a29 {scale = 0.3 : f64, fill = -1.0e9 : f64} : (tensor<1x1x5x8xf32>, tensor<1x1x70x8xf32>, tensor<1x1x70x8xf32>, tensor<70xi1>) -> (tensor<1x1x5x8xf32>, tensor<1x1x5x2xf32>)
  %11:3 = ckopt.attention_grad %z, %a26, %a27 mask %a29 of %10, %l10 by %a28 {scale = 0.3 : f64, fill = -1.0e9 : f64} : (tensor<1x1x5x8xf32>, tensor<1x1x70x8xf32>, tensor<1x1x70x8xf32>, tensor<70xi1>, tensor<1x1x5x8xf32>, tensor<1x1x5x2xf32>, tensor<1x1x5x8xf32>) -> (tensor<1x1x5x8xf32>, tensor<1x1x70x8xf32>, tensor<1x1x70x8xf32>)
  return
}

// Heads of up to 256 columns, shared by queries.
// CHECK: @wide: 2 kernels, 0 as code of the CPU, 2 as PTX
func.func @wide(%a: tensor<1x2x70x256xf32>, %b: tensor<1x1x130x256xf32>, %c: tensor<1x1x130x200xf32>, %d: tensor<1x2x70x200xf32>) attributes {test.tolerance = array<f64: 1.0e-5, 1.0e-5>} {
  %0, %l0 = ckopt.attention %a, %b, %c {causal = 3 : i64, scale = 0.1 : f64} : (tensor<1x2x70x256xf32>, tensor<1x1x130x256xf32>, tensor<1x1x130x200xf32>) -> (tensor<1x2x70x200xf32>, tensor<1x2x70x2xf32>)
  %1:3 = ckopt.attention_grad %a, %b, %c of %0, %l0 by %d {causal = 3 : i64, scale = 0.1 : f64} : (tensor<1x2x70x256xf32>, tensor<1x1x130x256xf32>, tensor<1x1x130x200xf32>, tensor<1x2x70x200xf32>, tensor<1x2x70x2xf32>, tensor<1x2x70x200xf32>) -> (tensor<1x2x70x256xf32>, tensor<1x1x130x256xf32>, tensor<1x1x130x200xf32>)
  return
}
