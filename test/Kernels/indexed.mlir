// Ops that move elements: each result is an element from another index.
// RUN: ckopt-opt %s --test-kernels-against-reference -o /dev/null | FileCheck %s

// CHECK: @transposes: 5 kernels, 5 as code of the CPU, 5 as PTX
func.func @transposes(%a: tensor<3x40xf32>, %b: tensor<33x40xf32>, %c: tensor<2x3x4x5xf64>, %d: tensor<2x7x3x32xf32>,
    %e: tensor<6x5x4xi64>) {
  %0 = ckopt.transpose %a {permutation = array<i64: 1, 0>} : (tensor<3x40xf32>) -> tensor<40x3xf32>
  %1 = ckopt.transpose %b {permutation = array<i64: 1, 0>} : (tensor<33x40xf32>) -> tensor<40x33xf32>
  %2 = ckopt.transpose %c {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x3x4x5xf64>) -> tensor<2x4x3x5xf64>
  %3 = ckopt.transpose %d {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x7x3x32xf32>) -> tensor<2x3x7x32xf32>
  %4 = ckopt.transpose %e {permutation = array<i64: 2, 0, 1>} : (tensor<6x5x4xi64>) -> tensor<4x6x5xi64>
  return
}

// CHECK: @views: 7 kernels, 7 as code of the CPU, 7 as PTX
func.func @views(%a: tensor<5x40xf32>, %b: tensor<3x1x20xf32>, %c: tensor<1xf32>, %d: tensor<6x20xf32>,
    %e: tensor<2x20x3x5xf32>) {
  %0 = ckopt.slice %a {starts = array<i64: 1, 3>, sizes = array<i64: 3, 20>, steps = array<i64: 1, 1>} : (tensor<5x40xf32>) -> tensor<3x20xf32>
  %1 = ckopt.slice %a {starts = array<i64: 4, 39>, sizes = array<i64: 5, 13>, steps = array<i64: -1, -3>} : (tensor<5x40xf32>) -> tensor<5x13xf32>
  %2 = ckopt.expand %b : (tensor<3x1x20xf32>) -> tensor<2x3x4x20xf32>
  %3 = ckopt.expand %c : (tensor<1xf32>) -> tensor<3x33xf32>
  %4 = ckopt.reshape %b : (tensor<3x1x20xf32>) -> tensor<1x3x20x1xf32>
  %5 = ckopt.reshape %d : (tensor<6x20xf32>) -> tensor<4x30xf32>
  %6 = ckopt.relayout %e : (tensor<2x20x3x5xf32>) -> tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>
  return
}

// CHECK: @pads: 3 kernels, 3 as code of the CPU, 3 as PTX
func.func @pads(%a: tensor<3x20xf32>, %b: tensor<2x20x3x3xf32>) {
  %0 = ckopt.pad %a {low = array<i64: 1, 2>, high = array<i64: 2, 3>, interior = array<i64: 0, 0>, value = 7.0 : f64} : (tensor<3x20xf32>) -> tensor<6x25xf32>
  %1 = ckopt.pad %a {low = array<i64: 1, 0>, high = array<i64: 2, 0>, interior = array<i64: 1, 2>} : (tensor<3x20xf32>) -> tensor<8x58xf32>
  %2 = ckopt.pad %b {low = array<i64: 0, 0, 1, 1>, high = array<i64: 0, 0, 1, 1>, interior = array<i64: 0, 0, 0, 0>} : (tensor<2x20x3x3xf32>) -> tensor<2x20x5x5xf32>
  return
}

// CHECK: @concatenations: 5 kernels, 5 as code of the CPU, 5 as PTX
func.func @concatenations(%a: tensor<2x5xf32>, %b: tensor<2x20xf32>, %c: tensor<2x3xf32>, %d: tensor<2x25xf32>,
    %e: tensor<1x25xf32>, %f: tensor<4x25xf32>, %g: tensor<2x16xf32>, %h: tensor<2x48xf32>, %i: tensor<3x64xf64>,
    %j: tensor<3x16xf64>, %k: tensor<3x100xf64>, %l: tensor<2x3x4xf32>, %m: tensor<2x1x4xf32>, %n: tensor<2x2x4xf32>) {
  %0 = ckopt.concat %a, %b, %c {axis = 1 : i64} : (tensor<2x5xf32>, tensor<2x20xf32>, tensor<2x3xf32>) -> tensor<2x28xf32>
  %1 = ckopt.concat %d, %e, %f {axis = 0 : i64} : (tensor<2x25xf32>, tensor<1x25xf32>, tensor<4x25xf32>) -> tensor<7x25xf32>
  %2 = ckopt.concat %g, %h, %c {axis = 1 : i64} : (tensor<2x16xf32>, tensor<2x48xf32>, tensor<2x3xf32>) -> tensor<2x67xf32>
  %3 = ckopt.concat %i, %j, %k {axis = 1 : i64} : (tensor<3x64xf64>, tensor<3x16xf64>, tensor<3x100xf64>) -> tensor<3x180xf64>
  %4 = ckopt.concat %l, %m, %n {axis = 1 : i64} : (tensor<2x3x4xf32>, tensor<2x1x4xf32>, tensor<2x2x4xf32>) -> tensor<2x6x4xf32>
  return
}

// CHECK: @triangles: 2 kernels, 2 as code of the CPU, 2 as PTX
func.func @triangles(%a: tensor<2x20x20xf32>, %b: tensor<2x20x33xf32>) {
  %0 = ckopt.trilu %a {upper = true, k = 1 : i64} : (tensor<2x20x20xf32>) -> tensor<2x20x20xf32>
  %1 = ckopt.trilu %b {upper = false} : (tensor<2x20x33xf32>) -> tensor<2x20x33xf32>
  return
}

// Constants and counts are made inside of the kernel.
// CHECK: @constants: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func private @constants(%x: tensor<3x20xf32>) -> tensor<3x20xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.iota {axis = 1 : i64, start = 2.0 : f64, delta = 0.5 : f64} : tensor<3x20xf32>
  %c = ckopt.constant dense<[[1.0], [2.0], [3.0]]> : tensor<3x1xf32>
  %s = ckopt.constant dense<0.5> : tensor<f32>
  %1 = ckopt.mul %0, %x : (tensor<3x20xf32>, tensor<3x20xf32>) -> tensor<3x20xf32>
  %2 = ckopt.add %1, %c : (tensor<3x20xf32>, tensor<3x1xf32>) -> tensor<3x20xf32>
  %3 = ckopt.mul %2, %s : (tensor<3x20xf32>, tensor<f32>) -> tensor<3x20xf32>
  return %3 : tensor<3x20xf32>
}

// CHECK: @counts: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func private @counts() -> tensor<7x9xi64> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.iota {axis = 0 : i64, start = 3.0 : f64, delta = -2.0 : f64} : tensor<7x9xi64>
  return %0 : tensor<7x9xi64>
}

// Rows; lanes over the gathered dimension itself, scalars, indices of both widths.
// CHECK: @gathers: 12 kernels, 12 as code of the CPU, 12 as PTX
func.func @gathers(%a: tensor<9x37xf32>, %b: tensor<2x3xi64> {test.range = array<f64: -9.0, 9.0>},
    %c: tensor<4x9xf32>, %d: tensor<21xi32> {test.range = array<f64: -9.0, 9.0>}, %e: tensor<9xf32>,
    %f: tensor<70xi32> {test.range = array<f64: -9.0, 9.0>}, %g: tensor<9xi64>,
    %h: tensor<i32> {test.range = array<f64: -9.0, 9.0>}, %i: tensor<3x9xf32>, %j: tensor<5x2x9xf16>,
    %k: tensor<17xi32> {test.range = array<f64: -9.0, 9.0>}, %l: tensor<9x3xf32>,
    %m: tensor<0xi32> {test.range = array<f64: -9.0, 9.0>}, %n: tensor<70xi64> {test.range = array<f64: -9.0, 9.0>},
    %o: tensor<i64> {test.range = array<f64: -9.0, 9.0>}, %p: tensor<17xi64> {test.range = array<f64: -9.0, 9.0>},
    %q: tensor<0xi64> {test.range = array<f64: -9.0, 9.0>}) {
  %0 = ckopt.gather %a, %b {axis = 0 : i64} : (tensor<9x37xf32>, tensor<2x3xi64>) -> tensor<2x3x37xf32>
  %1 = ckopt.gather %c, %d {axis = 1 : i64} : (tensor<4x9xf32>, tensor<21xi32>) -> tensor<4x21xf32>
  %2 = ckopt.gather %e, %f {axis = 0 : i64} : (tensor<9xf32>, tensor<70xi32>) -> tensor<70xf32>
  %3 = ckopt.gather %g, %h {axis = 0 : i64} : (tensor<9xi64>, tensor<i32>) -> tensor<i64>
  %4 = ckopt.gather %i, %h {axis = 1 : i64} : (tensor<3x9xf32>, tensor<i32>) -> tensor<3xf32>
  %5 = ckopt.gather %j, %k {axis = 2 : i64} : (tensor<5x2x9xf16>, tensor<17xi32>) -> tensor<5x2x17xf16>
  %6 = ckopt.gather %l, %m {axis = 0 : i64} : (tensor<9x3xf32>, tensor<0xi32>) -> tensor<0x3xf32>
  %7 = ckopt.gather %e, %n {axis = 0 : i64} : (tensor<9xf32>, tensor<70xi64>) -> tensor<70xf32>
  %8 = ckopt.gather %g, %o {axis = 0 : i64} : (tensor<9xi64>, tensor<i64>) -> tensor<i64>
  %9 = ckopt.gather %i, %o {axis = 1 : i64} : (tensor<3x9xf32>, tensor<i64>) -> tensor<3xf32>
  %10 = ckopt.gather %j, %p {axis = 2 : i64} : (tensor<5x2x9xf16>, tensor<17xi64>) -> tensor<5x2x17xf16>
  %11 = ckopt.gather %l, %q {axis = 0 : i64} : (tensor<9x3xf32>, tensor<0xi64>) -> tensor<0x3xf32>
  return
}

// Fewer indices than elements along the other dimensions; data in another order than the
// result.
// CHECK: @gathered_elements: 15 kernels, 15 as code of the CPU, 15 as PTX
func.func @gathered_elements(%a: tensor<9x37xf32>, %b: tensor<20x37xi64> {test.range = array<f64: -9.0, 9.0>},
    %c: tensor<9x50xi32> {test.range = array<f64: -37.0, 37.0>}, %d: tensor<4x9x37xf32>,
    %e: tensor<3x5x33xi64> {test.range = array<f64: -9.0, 9.0>}, %f: tensor<4x9x37xf64>,
    %g: tensor<2x5x40xi32> {test.range = array<f64: -37.0, 37.0>}, %h: tensor<300xf32>,
    %i: tensor<40xi64> {test.range = array<f64: -300.0, 300.0>}, %j: tensor<7x3xf16>,
    %k: tensor<5x3xi64> {test.range = array<f64: -7.0, 7.0>}, %l: tensor<7x3xbf16>,
    %m: tensor<7x2xi32> {test.range = array<f64: -3.0, 3.0>}, %n: tensor<6x5xi64>,
    %o: tensor<6x20xi64> {test.range = array<f64: -5.0, 5.0>}, %p: tensor<6x5xi8>,
    %q: tensor<6x20xi32> {test.range = array<f64: -5.0, 5.0>}, %r: tensor<6x5xui16>,
    %s: tensor<9x5xi64> {test.range = array<f64: -6.0, 6.0>}, %t: tensor<6x20xi1>,
    %u: tensor<9x20xi64> {test.range = array<f64: -6.0, 6.0>}, %v: tensor<1x20xf32>,
    %w: tensor<9x20xi64> {test.range = array<f64: -1.0, 1.0>}, %x: tensor<6x20xf32>,
    %y: tensor<0x20xi64> {test.range = array<f64: -6.0, 6.0>}, %z: tensor<0x4xf32>,
    %aa: tensor<0x4xi64> {test.range = array<f64: -1.0, 1.0>}, %ab: tensor<2x5x3x4xf32, #ckopt.layout<[0, 2, 3, 1]>>,
    %ac: tensor<2x7x3x4xi64> {test.range = array<f64: -5.0, 5.0>}) {
  %0 = ckopt.gather_elements %a, %b {axis = 0 : i64} : (tensor<9x37xf32>, tensor<20x37xi64>) -> tensor<20x37xf32>
  %1 = ckopt.gather_elements %a, %c {axis = 1 : i64} : (tensor<9x37xf32>, tensor<9x50xi32>) -> tensor<9x50xf32>
  %2 = ckopt.gather_elements %d, %e {axis = 1 : i64} : (tensor<4x9x37xf32>, tensor<3x5x33xi64>) -> tensor<3x5x33xf32>
  %3 = ckopt.gather_elements %f, %g {axis = 2 : i64} : (tensor<4x9x37xf64>, tensor<2x5x40xi32>) -> tensor<2x5x40xf64>
  %4 = ckopt.gather_elements %h, %i {axis = 0 : i64} : (tensor<300xf32>, tensor<40xi64>) -> tensor<40xf32>
  %5 = ckopt.gather_elements %j, %k {axis = 0 : i64} : (tensor<7x3xf16>, tensor<5x3xi64>) -> tensor<5x3xf16>
  %6 = ckopt.gather_elements %l, %m {axis = 1 : i64} : (tensor<7x3xbf16>, tensor<7x2xi32>) -> tensor<7x2xbf16>
  %7 = ckopt.gather_elements %n, %o {axis = 1 : i64} : (tensor<6x5xi64>, tensor<6x20xi64>) -> tensor<6x20xi64>
  %8 = ckopt.gather_elements %p, %q {axis = 1 : i64} : (tensor<6x5xi8>, tensor<6x20xi32>) -> tensor<6x20xi8>
  %9 = ckopt.gather_elements %r, %s {axis = 0 : i64} : (tensor<6x5xui16>, tensor<9x5xi64>) -> tensor<9x5xui16>
  %10 = ckopt.gather_elements %t, %u {axis = 0 : i64} : (tensor<6x20xi1>, tensor<9x20xi64>) -> tensor<9x20xi1>
  %11 = ckopt.gather_elements %v, %w {axis = 0 : i64} : (tensor<1x20xf32>, tensor<9x20xi64>) -> tensor<9x20xf32>
  %12 = ckopt.gather_elements %x, %y {axis = 0 : i64} : (tensor<6x20xf32>, tensor<0x20xi64>) -> tensor<0x20xf32>
  %13 = ckopt.gather_elements %z, %aa {axis = 0 : i64} : (tensor<0x4xf32>, tensor<0x4xi64>) -> tensor<0x4xf32>
  %14 = ckopt.gather_elements %ab, %ac {axis = 1 : i64} : (tensor<2x5x3x4xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x7x3x4xi64>) -> tensor<2x7x3x4xf32>
  return
}
