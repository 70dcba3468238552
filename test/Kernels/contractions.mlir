// Products and convolutions of our own, in block form. Shapes are chosen for their
// remainders: tiles, slices of k and parts of k that do not come out even, one row, one
// column, windows that leave the input.
// RUN: ckopt-opt %s --test-kernels-against-reference -o /dev/null | FileCheck %s

// Each pair of two of the sizes of m, n and k once.
// CHECK: @remainders: 12 kernels, 0 as code of the CPU, 12 as PTX
func.func @remainders(%a: tensor<1x1xf32>, %b: tensor<1x1xf32> {test.range = array<f64: -1.0, 1.5>},
    %c: tensor<1x16xf32>, %d: tensor<16x10xf32> {test.range = array<f64: -1.0, 1.5>}, %e: tensor<1x37xf32>,
    %f: tensor<37x65xf32> {test.range = array<f64: -1.0, 1.5>}, %g: tensor<7x16xf32>,
    %h: tensor<16x1xf32> {test.range = array<f64: -1.0, 1.5>}, %i: tensor<7x37xf32>,
    %j: tensor<37x10xf32> {test.range = array<f64: -1.0, 1.5>}, %k: tensor<7x1xf32>,
    %l: tensor<1x65xf32> {test.range = array<f64: -1.0, 1.5>}, %m: tensor<64x37xf32>,
    %n: tensor<37x1xf32> {test.range = array<f64: -1.0, 1.5>}, %o: tensor<64x1xf32>,
    %p: tensor<1x10xf32> {test.range = array<f64: -1.0, 1.5>}, %q: tensor<64x16xf32>,
    %r: tensor<16x65xf32> {test.range = array<f64: -1.0, 1.5>}, %s: tensor<70x1xf32>, %t: tensor<70x16xf32>,
    %u: tensor<70x37xf32>) attributes {test.tolerance = array<f64: 1.0e-5, 2.0e-6>} {
  %0 = ckopt.matmul %a, %b : (tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<1x1xf32>
  %1 = ckopt.matmul %c, %d : (tensor<1x16xf32>, tensor<16x10xf32>) -> tensor<1x10xf32>
  %2 = ckopt.matmul %e, %f : (tensor<1x37xf32>, tensor<37x65xf32>) -> tensor<1x65xf32>
  %3 = ckopt.matmul %g, %h : (tensor<7x16xf32>, tensor<16x1xf32>) -> tensor<7x1xf32>
  %4 = ckopt.matmul %i, %j : (tensor<7x37xf32>, tensor<37x10xf32>) -> tensor<7x10xf32>
  %5 = ckopt.matmul %k, %l : (tensor<7x1xf32>, tensor<1x65xf32>) -> tensor<7x65xf32>
  %6 = ckopt.matmul %m, %n : (tensor<64x37xf32>, tensor<37x1xf32>) -> tensor<64x1xf32>
  %7 = ckopt.matmul %o, %p : (tensor<64x1xf32>, tensor<1x10xf32>) -> tensor<64x10xf32>
  %8 = ckopt.matmul %q, %r : (tensor<64x16xf32>, tensor<16x65xf32>) -> tensor<64x65xf32>
  %9 = ckopt.matmul %s, %b : (tensor<70x1xf32>, tensor<1x1xf32>) -> tensor<70x1xf32>
  %10 = ckopt.matmul %t, %d : (tensor<70x16xf32>, tensor<16x10xf32>) -> tensor<70x10xf32>
  %11 = ckopt.matmul %u, %f : (tensor<70x37xf32>, tensor<37x65xf32>) -> tensor<70x65xf32>
  return
}

// The last one has vectors of neighbours along m, and along k of the second operand.
// CHECK: @transposed: 3 kernels, 0 as code of the CPU, 3 as PTX
func.func @transposed(%a: tensor<33x20xf32>, %b: tensor<33x9xf32> {test.range = array<f64: -1.0, 1.5>},
    %c: tensor<20x33xf32>, %d: tensor<9x33xf32> {test.range = array<f64: -1.0, 1.5>}, %e: tensor<36x68xf32>,
    %f: tensor<12x36xf32> {test.range = array<f64: -1.0, 1.5>}) attributes {test.tolerance = array<f64: 1.0e-5, 2.0e-6>} {
  %0 = ckopt.matmul %a, %b {transpose_lhs} : (tensor<33x20xf32>, tensor<33x9xf32>) -> tensor<20x9xf32>
  %1 = ckopt.matmul %c, %d {transpose_rhs} : (tensor<20x33xf32>, tensor<9x33xf32>) -> tensor<20x9xf32>
  %2 = ckopt.matmul %e, %f {transpose_lhs, transpose_rhs} : (tensor<36x68xf32>, tensor<12x36xf32>) -> tensor<68x12xf32>
  return
}

// As many tiles of 128 as fill a GPU; the last ones are not full. The same of
// convolutions: forward with few channels in, and the gradient of an input with many.
// CHECK: @large_tiles: 3 kernels, 0 as code of the CPU, 3 as PTX
func.func @large_tiles(%a: tensor<128x120x13xf32>, %b: tensor<128x13x116xf32> {test.range = array<f64: -1.0, 1.5>},
    %c: tensor<4x3x61x67xf32, #ckopt.layout<[0, 2, 3, 1]>>, %d: tensor<116x3x3x3xf32>, %f: tensor<4x116x2x2xf32>,
    %g: tensor<4x4x60x66xf32, #ckopt.layout<[0, 2, 3, 1]>>) attributes {test.tolerance = array<f64: 1.0e-5, 2.0e-6>} {
  %0 = ckopt.matmul %a, %b : (tensor<128x120x13xf32>, tensor<128x13x116xf32>) -> tensor<128x120x116xf32>
  %1 = ckopt.conv %c, %d {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<4x3x61x67xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<116x3x3x3xf32>) -> tensor<4x116x61x67xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %2 = ckopt.conv_input_grad %g, %f {strides = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<4x4x60x66xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<4x116x2x2xf32>) -> tensor<4x116x61x67xf32, #ckopt.layout<[0, 2, 3, 1]>>
  return
}

// Tiles of 128 x 64 and of 64 x 128, and what is left of them.
// CHECK: @oblong_tiles: 2 kernels, 0 as code of the CPU, 2 as PTX
func.func @oblong_tiles(%a: tensor<17000x36xf32>, %b: tensor<36x60xf32> {test.range = array<f64: -1.0, 1.5>},
    %c: tensor<60x36xf32>, %d: tensor<36x17000xf32> {test.range = array<f64: -1.0, 1.5>}) attributes {test.tolerance = array<f64: 1.0e-5, 2.0e-6>} {
  %0 = ckopt.matmul %a, %b : (tensor<17000x36xf32>, tensor<36x60xf32>) -> tensor<17000x60xf32>
  %1 = ckopt.matmul %c, %d : (tensor<60x36xf32>, tensor<36x17000xf32>) -> tensor<60x17000xf32>
  return
}

// k is cut into parts, whose sums a second launch adds.
// CHECK: @long_sums: 1 kernels, 0 as code of the CPU, 1 as PTX
func.func @long_sums(%a: tensor<5x3000xf32>, %b: tensor<3000x9xf32> {test.range = array<f64: -1.0, 1.5>}) attributes {test.tolerance = array<f64: 1.0e-3, 2.0e-6>} {
  %0 = ckopt.matmul %a, %b : (tensor<5x3000xf32>, tensor<3000x9xf32>) -> tensor<5x9xf32>
  return
}

// Batches, broadcasts, heads that stay where a [B, T, H, D] tensor has them; f64.
// CHECK: @batches: 4 kernels, 0 as code of the CPU, 4 as PTX
func.func @batches(%a: tensor<2x3x5x7xf32>, %b: tensor<2x3x7x9xf32> {test.range = array<f64: -1.0, 1.5>},
    %c: tensor<7x9xf32> {test.range = array<f64: -1.0, 1.5>}, %d: tensor<2x3x5x7xf32, #ckopt.layout<[0, 2, 1, 3]>>,
    %e: tensor<9x70xf64>, %f: tensor<70x6xf64> {test.range = array<f64: -1.0, 1.5>}) {
  %0 = ckopt.matmul %a, %b : (tensor<2x3x5x7xf32>, tensor<2x3x7x9xf32>) -> tensor<2x3x5x9xf32>
  %1 = ckopt.matmul %a, %c : (tensor<2x3x5x7xf32>, tensor<7x9xf32>) -> tensor<2x3x5x9xf32>
  %2 = ckopt.matmul %d, %b : (tensor<2x3x5x7xf32, #ckopt.layout<[0, 2, 1, 3]>>, tensor<2x3x7x9xf32>) -> tensor<2x3x5x9xf32>
  %3 = ckopt.matmul %e, %f : (tensor<9x70xf64>, tensor<70x6xf64>) -> tensor<9x6xf64>
  return
}

// Sums of halves are kept in f32 and rounded once. Even and odd rows, vectors along k, m
// and n, slices that are not full, parts of k, tiles of 128.
// CHECK: @halves: 9 kernels, 0 as code of the CPU, 9 as PTX
func.func @halves(%a: tensor<9x70xf16>, %b: tensor<70x6xf16> {test.range = array<f64: -1.0, 1.5>},
    %c: tensor<70x37xf16>, %d: tensor<37x65xf16> {test.range = array<f64: -1.0, 1.5>}, %e: tensor<72x64xf16>,
    %f: tensor<40x72xf16> {test.range = array<f64: -1.0, 1.5>}, %g: tensor<24x1040xf16>,
    %h: tensor<1040x16xf16> {test.range = array<f64: -1.0, 1.5>}, %i: tensor<9x70xbf16>,
    %j: tensor<70x6xbf16> {test.range = array<f64: -1.0, 1.5>}, %k: tensor<70x37xbf16>,
    %l: tensor<37x65xbf16> {test.range = array<f64: -1.0, 1.5>}, %m: tensor<72x64xbf16>,
    %n: tensor<40x72xbf16> {test.range = array<f64: -1.0, 1.5>}, %o: tensor<24x1040xbf16>,
    %p: tensor<1040x16xbf16> {test.range = array<f64: -1.0, 1.5>}, %q: tensor<128x120x13xbf16>,
    %r: tensor<128x13x116xbf16> {test.range = array<f64: -1.0, 1.5>})
    attributes {test.tolerance = array<f64: 1.0e-6, 6.5e-3>} {
  %0 = ckopt.matmul %a, %b : (tensor<9x70xf16>, tensor<70x6xf16>) -> tensor<9x6xf16>
  %1 = ckopt.matmul %c, %d : (tensor<70x37xf16>, tensor<37x65xf16>) -> tensor<70x65xf16>
  %2 = ckopt.matmul %e, %f {transpose_lhs, transpose_rhs} : (tensor<72x64xf16>, tensor<40x72xf16>) -> tensor<64x40xf16>
  %3 = ckopt.matmul %g, %h : (tensor<24x1040xf16>, tensor<1040x16xf16>) -> tensor<24x16xf16>
  %4 = ckopt.matmul %i, %j : (tensor<9x70xbf16>, tensor<70x6xbf16>) -> tensor<9x6xbf16>
  %5 = ckopt.matmul %k, %l : (tensor<70x37xbf16>, tensor<37x65xbf16>) -> tensor<70x65xbf16>
  %6 = ckopt.matmul %m, %n {transpose_lhs, transpose_rhs} : (tensor<72x64xbf16>, tensor<40x72xbf16>) -> tensor<64x40xbf16>
  %7 = ckopt.matmul %o, %p : (tensor<24x1040xbf16>, tensor<1040x16xbf16>) -> tensor<24x16xbf16>
  %8 = ckopt.matmul %q, %r : (tensor<128x120x13xbf16>, tensor<128x13x116xbf16>) -> tensor<128x120x116xbf16>
  return
}

// Forward and both gradients; strides, holes, groups, by depth, one dimension.
// CHECK: @convolutions: 15 kernels, 0 as code of the CPU, 15 as PTX
func.func @convolutions(%a: tensor<2x3x9x7xf32>, %b: tensor<5x3x3x3xf32>, %c: tensor<2x5x9x7xf32>,
    %d: tensor<2x4x9x8xf32>, %e: tensor<6x4x3x2xf32>, %f: tensor<2x6x4x4xf32>, %g: tensor<1x4x11x11xf32>,
    %h: tensor<6x2x3x3xf32>, %i: tensor<1x6x4x4xf32>, %j: tensor<2x6x5x5xf32>, %k: tensor<6x1x3x3xf32>,
    %l: tensor<2x3x17xf32>, %m: tensor<4x3x5xf32>, %n: tensor<2x4x6xf32>) attributes {test.tolerance = array<f64: 1.0e-4, 1.0e-5>} {
  %0 = ckopt.conv %a, %b {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x3x9x7xf32>, tensor<5x3x3x3xf32>) -> tensor<2x5x9x7xf32>
  %1 = ckopt.conv_input_grad %c, %b {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x5x9x7xf32>, tensor<5x3x3x3xf32>) -> tensor<2x3x9x7xf32>
  %2 = ckopt.conv_weight_grad %c, %a {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x5x9x7xf32>, tensor<2x3x9x7xf32>) -> tensor<5x3x3x3xf32>
  %3 = ckopt.conv %d, %e {strides = array<i64: 2, 2>, pads_low = array<i64: 0, 1>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x4x9x8xf32>, tensor<6x4x3x2xf32>) -> tensor<2x6x4x4xf32>
  %4 = ckopt.conv_input_grad %f, %e {strides = array<i64: 2, 2>, pads_low = array<i64: 0, 1>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x6x4x4xf32>, tensor<6x4x3x2xf32>) -> tensor<2x4x9x8xf32>
  %5 = ckopt.conv_weight_grad %f, %d {strides = array<i64: 2, 2>, pads_low = array<i64: 0, 1>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x6x4x4xf32>, tensor<2x4x9x8xf32>) -> tensor<6x4x3x2xf32>
  %6 = ckopt.conv %g, %h {strides = array<i64: 2, 2>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 2, 2>, groups = 2 : i64} : (tensor<1x4x11x11xf32>, tensor<6x2x3x3xf32>) -> tensor<1x6x4x4xf32>
  %7 = ckopt.conv_input_grad %i, %h {strides = array<i64: 2, 2>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 2, 2>, groups = 2 : i64} : (tensor<1x6x4x4xf32>, tensor<6x2x3x3xf32>) -> tensor<1x4x11x11xf32>
  %8 = ckopt.conv_weight_grad %i, %g {strides = array<i64: 2, 2>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 2, 2>, groups = 2 : i64} : (tensor<1x6x4x4xf32>, tensor<1x4x11x11xf32>) -> tensor<6x2x3x3xf32>
  %9 = ckopt.conv %j, %k {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 6 : i64} : (tensor<2x6x5x5xf32>, tensor<6x1x3x3xf32>) -> tensor<2x6x5x5xf32>
  %10 = ckopt.conv_input_grad %j, %k {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 6 : i64} : (tensor<2x6x5x5xf32>, tensor<6x1x3x3xf32>) -> tensor<2x6x5x5xf32>
  %11 = ckopt.conv_weight_grad %j, %j {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 6 : i64} : (tensor<2x6x5x5xf32>, tensor<2x6x5x5xf32>) -> tensor<6x1x3x3xf32>
  %12 = ckopt.conv %l, %m {strides = array<i64: 3>, pads_low = array<i64: 2>, pads_high = array<i64: 2>, dilations = array<i64: 1>, groups = 1 : i64} : (tensor<2x3x17xf32>, tensor<4x3x5xf32>) -> tensor<2x4x6xf32>
  %13 = ckopt.conv_input_grad %n, %m {strides = array<i64: 3>, pads_low = array<i64: 2>, pads_high = array<i64: 2>, dilations = array<i64: 1>, groups = 1 : i64} : (tensor<2x4x6xf32>, tensor<4x3x5xf32>) -> tensor<2x3x17xf32>
  %14 = ckopt.conv_weight_grad %n, %l {strides = array<i64: 3>, pads_low = array<i64: 2>, pads_high = array<i64: 2>, dilations = array<i64: 1>, groups = 1 : i64} : (tensor<2x4x6xf32>, tensor<2x3x17xf32>) -> tensor<4x3x5xf32>
  return
}

// CHECK: @convolutions_channels_last: 15 kernels, 0 as code of the CPU, 15 as PTX
func.func @convolutions_channels_last(%a: tensor<2x3x9x7xf32, #ckopt.layout<[0, 2, 3, 1]>>, %b: tensor<5x3x3x3xf32>,
    %c: tensor<2x5x9x7xf32, #ckopt.layout<[0, 2, 3, 1]>>, %d: tensor<2x4x9x8xf32, #ckopt.layout<[0, 2, 3, 1]>>,
    %e: tensor<6x4x3x2xf32>, %f: tensor<2x6x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>,
    %g: tensor<1x4x11x11xf32, #ckopt.layout<[0, 2, 3, 1]>>, %h: tensor<6x2x3x3xf32>,
    %i: tensor<1x6x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>, %j: tensor<2x6x5x5xf32, #ckopt.layout<[0, 2, 3, 1]>>,
    %k: tensor<6x1x3x3xf32>, %l: tensor<2x3x17xf32, #ckopt.layout<[0, 2, 1]>>, %m: tensor<4x3x5xf32>,
    %n: tensor<2x4x6xf32, #ckopt.layout<[0, 2, 1]>>) attributes {test.tolerance = array<f64: 1.0e-4, 1.0e-5>} {
  %0 = ckopt.conv %a, %b {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x3x9x7xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<5x3x3x3xf32>) -> tensor<2x5x9x7xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %1 = ckopt.conv_input_grad %c, %b {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x5x9x7xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<5x3x3x3xf32>) -> tensor<2x3x9x7xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %2 = ckopt.conv_weight_grad %c, %a {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x5x9x7xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x3x9x7xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<5x3x3x3xf32>
  %3 = ckopt.conv %d, %e {strides = array<i64: 2, 2>, pads_low = array<i64: 0, 1>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x4x9x8xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<6x4x3x2xf32>) -> tensor<2x6x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %4 = ckopt.conv_input_grad %f, %e {strides = array<i64: 2, 2>, pads_low = array<i64: 0, 1>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x6x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<6x4x3x2xf32>) -> tensor<2x4x9x8xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %5 = ckopt.conv_weight_grad %f, %d {strides = array<i64: 2, 2>, pads_low = array<i64: 0, 1>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x6x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x4x9x8xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<6x4x3x2xf32>
  %6 = ckopt.conv %g, %h {strides = array<i64: 2, 2>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 2, 2>, groups = 2 : i64} : (tensor<1x4x11x11xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<6x2x3x3xf32>) -> tensor<1x6x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %7 = ckopt.conv_input_grad %i, %h {strides = array<i64: 2, 2>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 2, 2>, groups = 2 : i64} : (tensor<1x6x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<6x2x3x3xf32>) -> tensor<1x4x11x11xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %8 = ckopt.conv_weight_grad %i, %g {strides = array<i64: 2, 2>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 2, 2>, groups = 2 : i64} : (tensor<1x6x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<1x4x11x11xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<6x2x3x3xf32>
  %9 = ckopt.conv %j, %k {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 6 : i64} : (tensor<2x6x5x5xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<6x1x3x3xf32>) -> tensor<2x6x5x5xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %10 = ckopt.conv_input_grad %j, %k {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 6 : i64} : (tensor<2x6x5x5xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<6x1x3x3xf32>) -> tensor<2x6x5x5xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %11 = ckopt.conv_weight_grad %j, %j {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 6 : i64} : (tensor<2x6x5x5xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x6x5x5xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<6x1x3x3xf32>
  %12 = ckopt.conv %l, %m {strides = array<i64: 3>, pads_low = array<i64: 2>, pads_high = array<i64: 2>, dilations = array<i64: 1>, groups = 1 : i64} : (tensor<2x3x17xf32, #ckopt.layout<[0, 2, 1]>>, tensor<4x3x5xf32>) -> tensor<2x4x6xf32, #ckopt.layout<[0, 2, 1]>>
  %13 = ckopt.conv_input_grad %n, %m {strides = array<i64: 3>, pads_low = array<i64: 2>, pads_high = array<i64: 2>, dilations = array<i64: 1>, groups = 1 : i64} : (tensor<2x4x6xf32, #ckopt.layout<[0, 2, 1]>>, tensor<4x3x5xf32>) -> tensor<2x3x17xf32, #ckopt.layout<[0, 2, 1]>>
  %14 = ckopt.conv_weight_grad %n, %l {strides = array<i64: 3>, pads_low = array<i64: 2>, pads_high = array<i64: 2>, dilations = array<i64: 1>, groups = 1 : i64} : (tensor<2x4x6xf32, #ckopt.layout<[0, 2, 1]>>, tensor<2x3x17xf32, #ckopt.layout<[0, 2, 1]>>) -> tensor<4x3x5xf32>
  return
}

// The same with weights that lie channels-last, too.
// CHECK: @convolutions_weights_last: 15 kernels, 0 as code of the CPU, 15 as PTX
func.func @convolutions_weights_last(%a: tensor<2x3x9x7xf32, #ckopt.layout<[0, 2, 3, 1]>>, %b: tensor<5x3x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>,
    %c: tensor<2x5x9x7xf32, #ckopt.layout<[0, 2, 3, 1]>>, %d: tensor<2x4x9x8xf32, #ckopt.layout<[0, 2, 3, 1]>>,
    %e: tensor<6x4x3x2xf32, #ckopt.layout<[0, 2, 3, 1]>>, %f: tensor<2x6x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>,
    %g: tensor<1x4x11x11xf32, #ckopt.layout<[0, 2, 3, 1]>>, %h: tensor<6x2x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>,
    %i: tensor<1x6x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>, %j: tensor<2x6x5x5xf32, #ckopt.layout<[0, 2, 3, 1]>>,
    %k: tensor<6x1x3x3xf32>, %l: tensor<2x3x17xf32, #ckopt.layout<[0, 2, 1]>>, %m: tensor<4x3x5xf32, #ckopt.layout<[0, 2, 1]>>,
    %n: tensor<2x4x6xf32, #ckopt.layout<[0, 2, 1]>>) attributes {test.tolerance = array<f64: 1.0e-4, 1.0e-5>} {
  %0 = ckopt.conv %a, %b {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x3x9x7xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<5x3x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<2x5x9x7xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %1 = ckopt.conv_input_grad %c, %b {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x5x9x7xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<5x3x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<2x3x9x7xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %2 = ckopt.conv_weight_grad %c, %a {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x5x9x7xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x3x9x7xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<5x3x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %3 = ckopt.conv %d, %e {strides = array<i64: 2, 2>, pads_low = array<i64: 0, 1>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x4x9x8xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<6x4x3x2xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<2x6x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %4 = ckopt.conv_input_grad %f, %e {strides = array<i64: 2, 2>, pads_low = array<i64: 0, 1>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x6x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<6x4x3x2xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<2x4x9x8xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %5 = ckopt.conv_weight_grad %f, %d {strides = array<i64: 2, 2>, pads_low = array<i64: 0, 1>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x6x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x4x9x8xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<6x4x3x2xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %6 = ckopt.conv %g, %h {strides = array<i64: 2, 2>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 2, 2>, groups = 2 : i64} : (tensor<1x4x11x11xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<6x2x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<1x6x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %7 = ckopt.conv_input_grad %i, %h {strides = array<i64: 2, 2>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 2, 2>, groups = 2 : i64} : (tensor<1x6x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<6x2x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<1x4x11x11xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %8 = ckopt.conv_weight_grad %i, %g {strides = array<i64: 2, 2>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 2, 2>, groups = 2 : i64} : (tensor<1x6x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<1x4x11x11xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<6x2x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %9 = ckopt.conv %j, %k {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 6 : i64} : (tensor<2x6x5x5xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<6x1x3x3xf32>) -> tensor<2x6x5x5xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %10 = ckopt.conv_input_grad %j, %k {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 6 : i64} : (tensor<2x6x5x5xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<6x1x3x3xf32>) -> tensor<2x6x5x5xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %11 = ckopt.conv_weight_grad %j, %j {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 6 : i64} : (tensor<2x6x5x5xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x6x5x5xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<6x1x3x3xf32>
  %12 = ckopt.conv %l, %m {strides = array<i64: 3>, pads_low = array<i64: 2>, pads_high = array<i64: 2>, dilations = array<i64: 1>, groups = 1 : i64} : (tensor<2x3x17xf32, #ckopt.layout<[0, 2, 1]>>, tensor<4x3x5xf32, #ckopt.layout<[0, 2, 1]>>) -> tensor<2x4x6xf32, #ckopt.layout<[0, 2, 1]>>
  %13 = ckopt.conv_input_grad %n, %m {strides = array<i64: 3>, pads_low = array<i64: 2>, pads_high = array<i64: 2>, dilations = array<i64: 1>, groups = 1 : i64} : (tensor<2x4x6xf32, #ckopt.layout<[0, 2, 1]>>, tensor<4x3x5xf32, #ckopt.layout<[0, 2, 1]>>) -> tensor<2x3x17xf32, #ckopt.layout<[0, 2, 1]>>
  %14 = ckopt.conv_weight_grad %n, %l {strides = array<i64: 3>, pads_low = array<i64: 2>, pads_high = array<i64: 2>, dilations = array<i64: 1>, groups = 1 : i64} : (tensor<2x4x6xf32, #ckopt.layout<[0, 2, 1]>>, tensor<2x3x17xf32, #ckopt.layout<[0, 2, 1]>>) -> tensor<4x3x5xf32, #ckopt.layout<[0, 2, 1]>>
  return
}

// 16 points an image are vectors of neighbouring points.
// CHECK: @one_by_one: 6 kernels, 0 as code of the CPU, 6 as PTX
func.func @one_by_one(%a: tensor<2x8x6x6xf32, #ckopt.layout<[0, 2, 3, 1]>>, %b: tensor<4x8x1x1xf32>,
    %c: tensor<2x4x6x6xf32, #ckopt.layout<[0, 2, 3, 1]>>, %d: tensor<2x3x4x4xf32>, %e: tensor<5x3x1x1xf32>,
    %f: tensor<2x5x4x4xf32>) attributes {test.tolerance = array<f64: 1.0e-4, 1.0e-5>} {
  %0 = ckopt.conv %a, %b {strides = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x8x6x6xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<4x8x1x1xf32>) -> tensor<2x4x6x6xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %1 = ckopt.conv_input_grad %c, %b {strides = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x4x6x6xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<4x8x1x1xf32>) -> tensor<2x8x6x6xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %2 = ckopt.conv_weight_grad %c, %a {strides = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x4x6x6xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x8x6x6xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<4x8x1x1xf32>
  %3 = ckopt.conv %d, %e {strides = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x3x4x4xf32>, tensor<5x3x1x1xf32>) -> tensor<2x5x4x4xf32>
  %4 = ckopt.conv_input_grad %f, %e {strides = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x5x4x4xf32>, tensor<5x3x1x1xf32>) -> tensor<2x3x4x4xf32>
  %5 = ckopt.conv_weight_grad %f, %d {strides = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x5x4x4xf32>, tensor<2x3x4x4xf32>) -> tensor<5x3x1x1xf32>
  return
}

// Vectors of neighbouring channels, in groups, with windows beyond the input.
// CHECK: @channels_in_vectors: 6 kernels, 0 as code of the CPU, 6 as PTX
func.func @channels_in_vectors(%a: tensor<2x16x5x4xf32, #ckopt.layout<[0, 2, 3, 1]>>, %b: tensor<16x8x3x3xf32>,
    %c: tensor<2x16x5x4xbf16, #ckopt.layout<[0, 2, 3, 1]>>, %d: tensor<16x8x3x3xbf16>) attributes {test.tolerance = array<f64: 1.0e-4, 1.0e-5>} {
  %0 = ckopt.conv %a, %b {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 2 : i64} : (tensor<2x16x5x4xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<16x8x3x3xf32>) -> tensor<2x16x5x4xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %1 = ckopt.conv_input_grad %a, %b {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 2 : i64} : (tensor<2x16x5x4xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<16x8x3x3xf32>) -> tensor<2x16x5x4xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %2 = ckopt.conv_weight_grad %a, %a {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 2 : i64} : (tensor<2x16x5x4xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x16x5x4xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<16x8x3x3xf32>
  %3 = ckopt.conv %c, %d {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 2 : i64} : (tensor<2x16x5x4xbf16, #ckopt.layout<[0, 2, 3, 1]>>, tensor<16x8x3x3xbf16>) -> tensor<2x16x5x4xbf16, #ckopt.layout<[0, 2, 3, 1]>>
  %4 = ckopt.conv_input_grad %c, %d {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 2 : i64} : (tensor<2x16x5x4xbf16, #ckopt.layout<[0, 2, 3, 1]>>, tensor<16x8x3x3xbf16>) -> tensor<2x16x5x4xbf16, #ckopt.layout<[0, 2, 3, 1]>>
  %5 = ckopt.conv_weight_grad %c, %c {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 2 : i64} : (tensor<2x16x5x4xbf16, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x16x5x4xbf16, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<16x8x3x3xbf16>
  return
}

// CHECK: @weights_in_vectors: 6 kernels, 0 as code of the CPU, 6 as PTX
func.func @weights_in_vectors(%a: tensor<2x16x5x4xf32, #ckopt.layout<[0, 2, 3, 1]>>, %b: tensor<16x8x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>,
    %c: tensor<2x16x5x4xbf16, #ckopt.layout<[0, 2, 3, 1]>>, %d: tensor<16x8x3x3xbf16, #ckopt.layout<[0, 2, 3, 1]>>) attributes {test.tolerance = array<f64: 1.0e-4, 1.0e-5>} {
  %0 = ckopt.conv %a, %b {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 2 : i64} : (tensor<2x16x5x4xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<16x8x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<2x16x5x4xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %1 = ckopt.conv_input_grad %a, %b {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 2 : i64} : (tensor<2x16x5x4xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<16x8x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<2x16x5x4xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %2 = ckopt.conv_weight_grad %a, %a {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 2 : i64} : (tensor<2x16x5x4xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x16x5x4xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<16x8x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %3 = ckopt.conv %c, %d {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 2 : i64} : (tensor<2x16x5x4xbf16, #ckopt.layout<[0, 2, 3, 1]>>, tensor<16x8x3x3xbf16, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<2x16x5x4xbf16, #ckopt.layout<[0, 2, 3, 1]>>
  %4 = ckopt.conv_input_grad %c, %d {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 2 : i64} : (tensor<2x16x5x4xbf16, #ckopt.layout<[0, 2, 3, 1]>>, tensor<16x8x3x3xbf16, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<2x16x5x4xbf16, #ckopt.layout<[0, 2, 3, 1]>>
  %5 = ckopt.conv_weight_grad %c, %c {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 2 : i64} : (tensor<2x16x5x4xbf16, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x16x5x4xbf16, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<16x8x3x3xbf16, #ckopt.layout<[0, 2, 3, 1]>>
  return
}
