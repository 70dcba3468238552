// Softmax, layer norm and cross entropy, which go over a row several times.
// RUN: ckopt-opt %s --test-kernels-against-reference -o /dev/null | FileCheck %s

// CHECK: @softmax: 14 kernels, 14 as code of the CPU, 12 as PTX
func.func @softmax(%a: tensor<5x1xf32> {test.range = array<f64: -5.0, 5.0>},
    %b: tensor<5x10xf32> {test.range = array<f64: -5.0, 5.0>},
    %c: tensor<3x16xf32> {test.range = array<f64: -5.0, 5.0>},
    %d: tensor<3x100xf32> {test.range = array<f64: -5.0, 5.0>},
    %e: tensor<2x3x65xf32> {test.range = array<f64: -5.0, 5.0>},
    %f: tensor<2x1000xf32> {test.range = array<f64: -5.0, 5.0>},
    %g: tensor<5x33xf64> {test.range = array<f64: -5.0, 5.0>}) attributes {test.tolerance = array<f64: 1.0e-6, 1.0e-5>} {
  %0 = ckopt.softmax %a {axis = 1 : i64} : (tensor<5x1xf32>) -> tensor<5x1xf32>
  %1 = ckopt.log_softmax %a {axis = 1 : i64} : (tensor<5x1xf32>) -> tensor<5x1xf32>
  %2 = ckopt.softmax %b {axis = 1 : i64} : (tensor<5x10xf32>) -> tensor<5x10xf32>
  %3 = ckopt.log_softmax %b {axis = 1 : i64} : (tensor<5x10xf32>) -> tensor<5x10xf32>
  %4 = ckopt.softmax %c {axis = 1 : i64} : (tensor<3x16xf32>) -> tensor<3x16xf32>
  %5 = ckopt.log_softmax %c {axis = 1 : i64} : (tensor<3x16xf32>) -> tensor<3x16xf32>
  %6 = ckopt.softmax %d {axis = 1 : i64} : (tensor<3x100xf32>) -> tensor<3x100xf32>
  %7 = ckopt.log_softmax %d {axis = 1 : i64} : (tensor<3x100xf32>) -> tensor<3x100xf32>
  %8 = ckopt.softmax %e {axis = 2 : i64} : (tensor<2x3x65xf32>) -> tensor<2x3x65xf32>
  %9 = ckopt.log_softmax %e {axis = 2 : i64} : (tensor<2x3x65xf32>) -> tensor<2x3x65xf32>
  %10 = ckopt.softmax %f {axis = 1 : i64} : (tensor<2x1000xf32>) -> tensor<2x1000xf32>
  %11 = ckopt.log_softmax %f {axis = 1 : i64} : (tensor<2x1000xf32>) -> tensor<2x1000xf32>
  %12 = ckopt.softmax %g {axis = 1 : i64} : (tensor<5x33xf64>) -> tensor<5x33xf64>
  %13 = ckopt.log_softmax %g {axis = 1 : i64} : (tensor<5x33xf64>) -> tensor<5x33xf64>
  return
}

// CHECK: @softmax_gradients: 14 kernels, 14 as code of the CPU, 13 as PTX
func.func @softmax_gradients(%a: tensor<5x1xf32>, %b: tensor<5x1xf32> {test.range = array<f64: -2.0, 1.0>},
    %c: tensor<5x10xf32>, %d: tensor<5x10xf32> {test.range = array<f64: -2.0, 1.0>}, %e: tensor<3x16xf32>,
    %f: tensor<3x16xf32> {test.range = array<f64: -2.0, 1.0>}, %g: tensor<3x100xf32>,
    %h: tensor<3x100xf32> {test.range = array<f64: -2.0, 1.0>}, %i: tensor<2x3x65xf32>,
    %j: tensor<2x3x65xf32> {test.range = array<f64: -2.0, 1.0>}, %k: tensor<2x1000xf32>,
    %l: tensor<2x1000xf32> {test.range = array<f64: -2.0, 1.0>}, %m: tensor<5x33xf64>,
    %n: tensor<5x33xf64> {test.range = array<f64: -2.0, 1.0>}) attributes {test.tolerance = array<f64: 1.0e-4, 1.0e-5>} {
  %0 = ckopt.softmax_grad %a, %b {axis = 1 : i64} : (tensor<5x1xf32>, tensor<5x1xf32>) -> tensor<5x1xf32>
  %1 = ckopt.log_softmax_grad %a, %b {axis = 1 : i64} : (tensor<5x1xf32>, tensor<5x1xf32>) -> tensor<5x1xf32>
  %2 = ckopt.softmax_grad %c, %d {axis = 1 : i64} : (tensor<5x10xf32>, tensor<5x10xf32>) -> tensor<5x10xf32>
  %3 = ckopt.log_softmax_grad %c, %d {axis = 1 : i64} : (tensor<5x10xf32>, tensor<5x10xf32>) -> tensor<5x10xf32>
  %4 = ckopt.softmax_grad %e, %f {axis = 1 : i64} : (tensor<3x16xf32>, tensor<3x16xf32>) -> tensor<3x16xf32>
  %5 = ckopt.log_softmax_grad %e, %f {axis = 1 : i64} : (tensor<3x16xf32>, tensor<3x16xf32>) -> tensor<3x16xf32>
  %6 = ckopt.softmax_grad %g, %h {axis = 1 : i64} : (tensor<3x100xf32>, tensor<3x100xf32>) -> tensor<3x100xf32>
  %7 = ckopt.log_softmax_grad %g, %h {axis = 1 : i64} : (tensor<3x100xf32>, tensor<3x100xf32>) -> tensor<3x100xf32>
  %8 = ckopt.softmax_grad %i, %j {axis = 2 : i64} : (tensor<2x3x65xf32>, tensor<2x3x65xf32>) -> tensor<2x3x65xf32>
  %9 = ckopt.log_softmax_grad %i, %j {axis = 2 : i64} : (tensor<2x3x65xf32>, tensor<2x3x65xf32>) -> tensor<2x3x65xf32>
  %10 = ckopt.softmax_grad %k, %l {axis = 1 : i64} : (tensor<2x1000xf32>, tensor<2x1000xf32>) -> tensor<2x1000xf32>
  %11 = ckopt.log_softmax_grad %k, %l {axis = 1 : i64} : (tensor<2x1000xf32>, tensor<2x1000xf32>) -> tensor<2x1000xf32>
  %12 = ckopt.softmax_grad %m, %n {axis = 1 : i64} : (tensor<5x33xf64>, tensor<5x33xf64>) -> tensor<5x33xf64>
  %13 = ckopt.log_softmax_grad %m, %n {axis = 1 : i64} : (tensor<5x33xf64>, tensor<5x33xf64>) -> tensor<5x33xf64>
  return
}

// The axis is not the innermost dimension: lanes run over columns.
// CHECK: @softmax_along_channels: 8 kernels, 8 as code of the CPU, 6 as PTX
func.func @softmax_along_channels(%a: tensor<2x10x5x5xf32>, %b: tensor<2x10x37xf64>, %c: tensor<7x3xf32>,
    %d: tensor<2x20x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>, %e: tensor<2x10x37xf32>,
    %f: tensor<2x10x37xf32> {test.range = array<f64: -2.0, 1.0>}) attributes {test.tolerance = array<f64: 1.0e-6, 1.0e-5>} {
  %0 = ckopt.softmax %a {axis = 1 : i64} : (tensor<2x10x5x5xf32>) -> tensor<2x10x5x5xf32>
  %1 = ckopt.softmax %b {axis = 1 : i64} : (tensor<2x10x37xf64>) -> tensor<2x10x37xf64>
  %2 = ckopt.softmax %c {axis = 0 : i64} : (tensor<7x3xf32>) -> tensor<7x3xf32>
  %3 = ckopt.log_softmax %a {axis = 1 : i64} : (tensor<2x10x5x5xf32>) -> tensor<2x10x5x5xf32>
  %4 = ckopt.log_softmax %b {axis = 1 : i64} : (tensor<2x10x37xf64>) -> tensor<2x10x37xf64>
  %5 = ckopt.log_softmax %c {axis = 0 : i64} : (tensor<7x3xf32>) -> tensor<7x3xf32>
  %6 = ckopt.softmax %d {axis = 1 : i64} : (tensor<2x20x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<2x20x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %7 = ckopt.softmax_grad %e, %f {axis = 1 : i64} : (tensor<2x10x37xf32>, tensor<2x10x37xf32>) -> tensor<2x10x37xf32>
  return
}

// Attention's mask and scale inside of the softmax kernel.
// CHECK: @softmax_with_prologue: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func private @softmax_with_prologue(%x: tensor<2x3x8x40xf32>, %m: tensor<8x40xf32>) -> tensor<2x3x8x40xf32>
    attributes {ckopt.kernel = "row", test.tolerance = array<f64: 1.0e-6, 1.0e-5>} {
  %s = ckopt.constant dense<0.125> : tensor<f32>
  %0 = ckopt.mul %x, %s : (tensor<2x3x8x40xf32>, tensor<f32>) -> tensor<2x3x8x40xf32>
  %1 = ckopt.add %0, %m : (tensor<2x3x8x40xf32>, tensor<8x40xf32>) -> tensor<2x3x8x40xf32>
  %2 = ckopt.softmax %1 {axis = 3 : i64} : (tensor<2x3x8x40xf32>) -> tensor<2x3x8x40xf32>
  return %2 : tensor<2x3x8x40xf32>
}

// The last one has rows of two dimensions and no scale.
// CHECK: @layer_norm: 9 kernels, 9 as code of the CPU, 9 as PTX
func.func @layer_norm(%a: tensor<4x5x3xf32>, %b: tensor<3xf32>,
    %c: tensor<3xf32> {test.range = array<f64: -2.0, 2.0>}, %d: tensor<4x5x3xf64>, %e: tensor<3xf64>,
    %f: tensor<3xf64> {test.range = array<f64: -2.0, 2.0>}, %g: tensor<4x5x16xf32>, %h: tensor<16xf32>,
    %i: tensor<16xf32> {test.range = array<f64: -2.0, 2.0>}, %j: tensor<4x5x16xf64>, %k: tensor<16xf64>,
    %l: tensor<16xf64> {test.range = array<f64: -2.0, 2.0>}, %m: tensor<4x5x70xf32>, %n: tensor<70xf32>,
    %o: tensor<70xf32> {test.range = array<f64: -2.0, 2.0>}, %p: tensor<4x5x70xf64>, %q: tensor<70xf64>,
    %r: tensor<70xf64> {test.range = array<f64: -2.0, 2.0>}, %s: tensor<4x5x768xf32>, %t: tensor<768xf32>,
    %u: tensor<768xf32> {test.range = array<f64: -2.0, 2.0>}, %v: tensor<4x5x768xf64>, %w: tensor<768xf64>,
    %x: tensor<768xf64> {test.range = array<f64: -2.0, 2.0>}, %y: tensor<4x5x33xf32>) attributes {test.tolerance = array<f64: 2.0e-5, 1.0e-4>} {
  %0:3 = ckopt.layer_norm %a scale %b bias %c {axis = 2 : i64, epsilon = 1.0e-5 : f64} : (tensor<4x5x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x5x3xf32>, tensor<4x5xf32>, tensor<4x5xf32>)
  %1:3 = ckopt.layer_norm %d scale %e bias %f {axis = 2 : i64, epsilon = 1.0e-5 : f64} : (tensor<4x5x3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<4x5x3xf64>, tensor<4x5xf64>, tensor<4x5xf64>)
  %2:3 = ckopt.layer_norm %g scale %h bias %i {axis = 2 : i64, epsilon = 1.0e-5 : f64} : (tensor<4x5x16xf32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<4x5x16xf32>, tensor<4x5xf32>, tensor<4x5xf32>)
  %3:3 = ckopt.layer_norm %j scale %k bias %l {axis = 2 : i64, epsilon = 1.0e-5 : f64} : (tensor<4x5x16xf64>, tensor<16xf64>, tensor<16xf64>) -> (tensor<4x5x16xf64>, tensor<4x5xf64>, tensor<4x5xf64>)
  %4:3 = ckopt.layer_norm %m scale %n bias %o {axis = 2 : i64, epsilon = 1.0e-5 : f64} : (tensor<4x5x70xf32>, tensor<70xf32>, tensor<70xf32>) -> (tensor<4x5x70xf32>, tensor<4x5xf32>, tensor<4x5xf32>)
  %5:3 = ckopt.layer_norm %p scale %q bias %r {axis = 2 : i64, epsilon = 1.0e-5 : f64} : (tensor<4x5x70xf64>, tensor<70xf64>, tensor<70xf64>) -> (tensor<4x5x70xf64>, tensor<4x5xf64>, tensor<4x5xf64>)
  %6:3 = ckopt.layer_norm %s scale %t bias %u {axis = 2 : i64, epsilon = 1.0e-5 : f64} : (tensor<4x5x768xf32>, tensor<768xf32>, tensor<768xf32>) -> (tensor<4x5x768xf32>, tensor<4x5xf32>, tensor<4x5xf32>)
  %7:3 = ckopt.layer_norm %v scale %w bias %x {axis = 2 : i64, epsilon = 1.0e-5 : f64} : (tensor<4x5x768xf64>, tensor<768xf64>, tensor<768xf64>) -> (tensor<4x5x768xf64>, tensor<4x5xf64>, tensor<4x5xf64>)
  %8:3 = ckopt.layer_norm %y {axis = 1 : i64, epsilon = 1.0e-5 : f64} : (tensor<4x5x33xf32>) -> (tensor<4x5x33xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// CHECK: @layer_norm_gradient: 8 kernels, 8 as code of the CPU, 8 as PTX
func.func @layer_norm_gradient(%a: tensor<4x5x3xf32> {test.range = array<f64: 0.1, 1.0>},
    %b: tensor<4x5x3xf32> {test.range = array<f64: 0.2, 1.0>},
    %c: tensor<4x5xf32> {test.range = array<f64: 0.1, 1.0>}, %d: tensor<4x5xf32> {test.range = array<f64: 0.2, 1.0>},
    %e: tensor<3xf32> {test.range = array<f64: 0.1, 1.0>}, %f: tensor<4x5x3xf64> {test.range = array<f64: 0.1, 1.0>},
    %g: tensor<4x5x3xf64> {test.range = array<f64: 0.2, 1.0>},
    %h: tensor<4x5xf64> {test.range = array<f64: 0.1, 1.0>}, %i: tensor<4x5xf64> {test.range = array<f64: 0.2, 1.0>},
    %j: tensor<3xf64> {test.range = array<f64: 0.1, 1.0>},
    %k: tensor<4x5x16xf32> {test.range = array<f64: 0.1, 1.0>},
    %l: tensor<4x5x16xf32> {test.range = array<f64: 0.2, 1.0>},
    %m: tensor<16xf32> {test.range = array<f64: 0.1, 1.0>},
    %n: tensor<4x5x16xf64> {test.range = array<f64: 0.1, 1.0>},
    %o: tensor<4x5x16xf64> {test.range = array<f64: 0.2, 1.0>},
    %p: tensor<16xf64> {test.range = array<f64: 0.1, 1.0>},
    %q: tensor<4x5x70xf32> {test.range = array<f64: 0.1, 1.0>},
    %r: tensor<4x5x70xf32> {test.range = array<f64: 0.2, 1.0>},
    %s: tensor<70xf32> {test.range = array<f64: 0.1, 1.0>},
    %t: tensor<4x5x70xf64> {test.range = array<f64: 0.1, 1.0>},
    %u: tensor<4x5x70xf64> {test.range = array<f64: 0.2, 1.0>},
    %v: tensor<70xf64> {test.range = array<f64: 0.1, 1.0>},
    %w: tensor<4x5x768xf32> {test.range = array<f64: 0.1, 1.0>},
    %x: tensor<4x5x768xf32> {test.range = array<f64: 0.2, 1.0>},
    %y: tensor<768xf32> {test.range = array<f64: 0.1, 1.0>},
    %z: tensor<4x5x768xf64> {test.range = array<f64: 0.1, 1.0>},
    %aa: tensor<4x5x768xf64> {test.range = array<f64: 0.2, 1.0>},
    %ab: tensor<768xf64> {test.range = array<f64: 0.1, 1.0>}) attributes {test.tolerance = array<f64: 1.0e-4, 1.0e-4>} {
  %0 = ckopt.layer_norm_grad %a, %b, %c, %d scale %e {axis = 2 : i64} : (tensor<4x5x3xf32>, tensor<4x5x3xf32>, tensor<4x5xf32>, tensor<4x5xf32>, tensor<3xf32>) -> tensor<4x5x3xf32>
  %1 = ckopt.layer_norm_grad %f, %g, %h, %i scale %j {axis = 2 : i64} : (tensor<4x5x3xf64>, tensor<4x5x3xf64>, tensor<4x5xf64>, tensor<4x5xf64>, tensor<3xf64>) -> tensor<4x5x3xf64>
  %2 = ckopt.layer_norm_grad %k, %l, %c, %d scale %m {axis = 2 : i64} : (tensor<4x5x16xf32>, tensor<4x5x16xf32>, tensor<4x5xf32>, tensor<4x5xf32>, tensor<16xf32>) -> tensor<4x5x16xf32>
  %3 = ckopt.layer_norm_grad %n, %o, %h, %i scale %p {axis = 2 : i64} : (tensor<4x5x16xf64>, tensor<4x5x16xf64>, tensor<4x5xf64>, tensor<4x5xf64>, tensor<16xf64>) -> tensor<4x5x16xf64>
  %4 = ckopt.layer_norm_grad %q, %r, %c, %d scale %s {axis = 2 : i64} : (tensor<4x5x70xf32>, tensor<4x5x70xf32>, tensor<4x5xf32>, tensor<4x5xf32>, tensor<70xf32>) -> tensor<4x5x70xf32>
  %5 = ckopt.layer_norm_grad %t, %u, %h, %i scale %v {axis = 2 : i64} : (tensor<4x5x70xf64>, tensor<4x5x70xf64>, tensor<4x5xf64>, tensor<4x5xf64>, tensor<70xf64>) -> tensor<4x5x70xf64>
  %6 = ckopt.layer_norm_grad %w, %x, %c, %d scale %y {axis = 2 : i64} : (tensor<4x5x768xf32>, tensor<4x5x768xf32>, tensor<4x5xf32>, tensor<4x5xf32>, tensor<768xf32>) -> tensor<4x5x768xf32>
  %7 = ckopt.layer_norm_grad %z, %aa, %h, %i scale %ab {axis = 2 : i64} : (tensor<4x5x768xf64>, tensor<4x5x768xf64>, tensor<4x5xf64>, tensor<4x5xf64>, tensor<768xf64>) -> tensor<4x5x768xf64>
  return
}

// Rows of vectors, with a rest, short ones, columns of two dimensions, and long ones.
// CHECK: @rms_norm: 10 kernels, 10 as code of the CPU, 10 as PTX
func.func @rms_norm(%a: tensor<4x5x16xf32>, %b: tensor<16xf32>, %c: tensor<4x5x70xf32>, %d: tensor<70xf32>,
    %e: tensor<4x5x3xf64>, %f: tensor<3xf64>, %g: tensor<4x5x33xf32>, %h: tensor<4x5x768xf32>, %i: tensor<768xf32>,
    %r: tensor<4x5xf32> {test.range = array<f64: 0.2, 1.0>}, %t: tensor<4xf32> {test.range = array<f64: 0.2, 1.0>},
    %u: tensor<4x5xf64> {test.range = array<f64: 0.2, 1.0>}) attributes {test.tolerance = array<f64: 2.0e-5, 1.0e-4>} {
  %0:2 = ckopt.rms_norm %a scale %b {axis = 2 : i64, epsilon = 1.0e-5 : f64} : (tensor<4x5x16xf32>, tensor<16xf32>) -> (tensor<4x5x16xf32>, tensor<4x5xf32>)
  %1:2 = ckopt.rms_norm %c scale %d {axis = 2 : i64, epsilon = 1.0e-5 : f64} : (tensor<4x5x70xf32>, tensor<70xf32>) -> (tensor<4x5x70xf32>, tensor<4x5xf32>)
  %2:2 = ckopt.rms_norm %e scale %f {axis = 2 : i64, epsilon = 1.0e-5 : f64} : (tensor<4x5x3xf64>, tensor<3xf64>) -> (tensor<4x5x3xf64>, tensor<4x5xf64>)
  %3:2 = ckopt.rms_norm %g {axis = 1 : i64, epsilon = 1.0e-5 : f64} : (tensor<4x5x33xf32>) -> (tensor<4x5x33xf32>, tensor<4xf32>)
  %4:2 = ckopt.rms_norm %h scale %i {axis = 2 : i64, epsilon = 1.0e-5 : f64} : (tensor<4x5x768xf32>, tensor<768xf32>) -> (tensor<4x5x768xf32>, tensor<4x5xf32>)
  %5 = ckopt.rms_norm_grad %0#0, %a, %r scale %b {axis = 2 : i64} : (tensor<4x5x16xf32>, tensor<4x5x16xf32>, tensor<4x5xf32>, tensor<16xf32>) -> tensor<4x5x16xf32>
  %6 = ckopt.rms_norm_grad %1#0, %c, %r scale %d {axis = 2 : i64} : (tensor<4x5x70xf32>, tensor<4x5x70xf32>, tensor<4x5xf32>, tensor<70xf32>) -> tensor<4x5x70xf32>
  %7 = ckopt.rms_norm_grad %2#0, %e, %u scale %f {axis = 2 : i64} : (tensor<4x5x3xf64>, tensor<4x5x3xf64>, tensor<4x5xf64>, tensor<3xf64>) -> tensor<4x5x3xf64>
  %8 = ckopt.rms_norm_grad %3#0, %g, %t {axis = 1 : i64} : (tensor<4x5x33xf32>, tensor<4x5x33xf32>, tensor<4xf32>) -> tensor<4x5x33xf32>
  %9 = ckopt.rms_norm_grad %4#0, %h, %r scale %i {axis = 2 : i64} : (tensor<4x5x768xf32>, tensor<4x5x768xf32>, tensor<4x5xf32>, tensor<768xf32>) -> tensor<4x5x768xf32>
  return
}

// One label in five is ignored.
// CHECK: @cross_entropy: 10 kernels, 10 as code of the CPU, 10 as PTX
func.func @cross_entropy(%a: tensor<6x5xf32> {test.range = array<f64: -4.0, 4.0>},
    %b: tensor<6xi64> {test.range = array<f64: 0.0, 5.0>}, %c: tensor<6xf32>,
    %d: tensor<6xf32> {test.range = array<f64: -4.0, 4.0>},
    %e: tensor<6x37xf32> {test.range = array<f64: -4.0, 4.0>},
    %f: tensor<2x3x100xf32> {test.range = array<f64: -4.0, 4.0>},
    %g: tensor<2x3xi64> {test.range = array<f64: 0.0, 5.0>}, %h: tensor<2x3xf32>,
    %i: tensor<2x3xf32> {test.range = array<f64: -4.0, 4.0>},
    %j: tensor<2x7x4x5xf32> {test.range = array<f64: -4.0, 4.0>},
    %k: tensor<2x4x5xi64> {test.range = array<f64: 0.0, 5.0>}, %l: tensor<2x4x5xf32>,
    %m: tensor<2x4x5xf32> {test.range = array<f64: -4.0, 4.0>},
    %n: tensor<2x7x4x5xf32, #ckopt.layout<[0, 2, 3, 1]>> {test.range = array<f64: -4.0, 4.0>}) attributes {test.tolerance = array<f64: 1.0e-6, 2.0e-5>} {
  %0:3 = ckopt.cross_entropy %a, %b {axis = 1 : i64, ignore_index = 2 : i64} : (tensor<6x5xf32>, tensor<6xi64>) -> (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>)
  %1 = ckopt.cross_entropy_grad %c, %a, %b, %d, %d {axis = 1 : i64, ignore_index = 2 : i64} : (tensor<6xf32>, tensor<6x5xf32>, tensor<6xi64>, tensor<6xf32>, tensor<6xf32>) -> tensor<6x5xf32>
  %2:3 = ckopt.cross_entropy %e, %b {axis = 1 : i64, ignore_index = 2 : i64} : (tensor<6x37xf32>, tensor<6xi64>) -> (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>)
  %3 = ckopt.cross_entropy_grad %c, %e, %b, %d, %d {axis = 1 : i64, ignore_index = 2 : i64} : (tensor<6xf32>, tensor<6x37xf32>, tensor<6xi64>, tensor<6xf32>, tensor<6xf32>) -> tensor<6x37xf32>
  %4:3 = ckopt.cross_entropy %f, %g {axis = 2 : i64, ignore_index = 2 : i64} : (tensor<2x3x100xf32>, tensor<2x3xi64>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  %5 = ckopt.cross_entropy_grad %h, %f, %g, %i, %i {axis = 2 : i64, ignore_index = 2 : i64} : (tensor<2x3xf32>, tensor<2x3x100xf32>, tensor<2x3xi64>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3x100xf32>
  %6:3 = ckopt.cross_entropy %j, %k {axis = 1 : i64, ignore_index = 2 : i64} : (tensor<2x7x4x5xf32>, tensor<2x4x5xi64>) -> (tensor<2x4x5xf32>, tensor<2x4x5xf32>, tensor<2x4x5xf32>)
  %7 = ckopt.cross_entropy_grad %l, %j, %k, %m, %m {axis = 1 : i64, ignore_index = 2 : i64} : (tensor<2x4x5xf32>, tensor<2x7x4x5xf32>, tensor<2x4x5xi64>, tensor<2x4x5xf32>, tensor<2x4x5xf32>) -> tensor<2x7x4x5xf32>
  %8:3 = ckopt.cross_entropy %n, %k {axis = 1 : i64, ignore_index = 2 : i64} : (tensor<2x7x4x5xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x4x5xi64>) -> (tensor<2x4x5xf32>, tensor<2x4x5xf32>, tensor<2x4x5xf32>)
  %9 = ckopt.cross_entropy_grad %l, %n, %k, %m, %m {axis = 1 : i64, ignore_index = 2 : i64} : (tensor<2x4x5xf32>, tensor<2x7x4x5xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x4x5xi64>, tensor<2x4x5xf32>, tensor<2x4x5xf32>) -> tensor<2x7x4x5xf32, #ckopt.layout<[0, 2, 3, 1]>>
  return
}
