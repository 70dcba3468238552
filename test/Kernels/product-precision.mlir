// Products and convolutions of f32 that round their operands for tensor cores, against
// the interpreter on operands rounded by LLVM's own floats: what remains is the rounding
// of f32 sums.
// RUN: ckopt-opt %s --test-kernels-against-reference=precision=tf32 -o /dev/null | FileCheck %s

// Tiles, warps' parts and slices of k that are not full, and such that are.
// CHECK: @remainders: 6 kernels, 0 as code of the CPU, 6 as PTX
func.func @remainders(%a: tensor<1x1xf32>, %b: tensor<1x1xf32> {test.range = array<f64: -1.0, 1.5>},
    %c: tensor<7x16xf32>, %d: tensor<16x10xf32> {test.range = array<f64: -1.0, 1.5>}, %e: tensor<64x37xf32>,
    %f: tensor<37x65xf32> {test.range = array<f64: -1.0, 1.5>}, %g: tensor<70x40xf32>,
    %h: tensor<40x1xf32> {test.range = array<f64: -1.0, 1.5>}, %i: tensor<64x64xf32>,
    %j: tensor<64x64xf32> {test.range = array<f64: -1.0, 1.5>}, %k: tensor<68x100xf32>,
    %l: tensor<100x72xf32> {test.range = array<f64: -1.0, 1.5>}) attributes {test.tolerance = array<f64: 1.0e-5, 2.0e-6>} {
  %0 = ckopt.matmul %a, %b : (tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<1x1xf32>
  %1 = ckopt.matmul %c, %d : (tensor<7x16xf32>, tensor<16x10xf32>) -> tensor<7x10xf32>
  %2 = ckopt.matmul %e, %f : (tensor<64x37xf32>, tensor<37x65xf32>) -> tensor<64x65xf32>
  %3 = ckopt.matmul %g, %h : (tensor<70x40xf32>, tensor<40x1xf32>) -> tensor<70x1xf32>
  %4 = ckopt.matmul %i, %j : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %5 = ckopt.matmul %k, %l : (tensor<68x100xf32>, tensor<100x72xf32>) -> tensor<68x72xf32>
  return
}

// Either operand lies along k or across it, with vectors and without; the two lie
// differently in shared memory.
// CHECK: @transposed: 6 kernels, 0 as code of the CPU, 6 as PTX
func.func @transposed(%a: tensor<33x20xf32>, %b: tensor<33x12xf32> {test.range = array<f64: -1.0, 1.5>},
    %c: tensor<20x33xf32>, %d: tensor<12x33xf32> {test.range = array<f64: -1.0, 1.5>}, %e: tensor<36x20xf32>,
    %f: tensor<36x12xf32> {test.range = array<f64: -1.0, 1.5>}, %g: tensor<20x36xf32>,
    %h: tensor<12x36xf32> {test.range = array<f64: -1.0, 1.5>}) attributes {test.tolerance = array<f64: 1.0e-5, 2.0e-6>} {
  %0 = ckopt.matmul %a, %b {transpose_lhs} : (tensor<33x20xf32>, tensor<33x12xf32>) -> tensor<20x12xf32>
  %1 = ckopt.matmul %c, %d {transpose_rhs} : (tensor<20x33xf32>, tensor<12x33xf32>) -> tensor<20x12xf32>
  %2 = ckopt.matmul %a, %d {transpose_lhs, transpose_rhs} : (tensor<33x20xf32>, tensor<12x33xf32>) -> tensor<20x12xf32>
  %3 = ckopt.matmul %e, %f {transpose_lhs} : (tensor<36x20xf32>, tensor<36x12xf32>) -> tensor<20x12xf32>
  %4 = ckopt.matmul %g, %h {transpose_rhs} : (tensor<20x36xf32>, tensor<12x36xf32>) -> tensor<20x12xf32>
  %5 = ckopt.matmul %e, %h {transpose_lhs, transpose_rhs} : (tensor<36x20xf32>, tensor<12x36xf32>) -> tensor<20x12xf32>
  return
}

// Tiles of 128, the last ones not full; rows with vectors.
// CHECK: @large_tiles: 1 kernels, 0 as code of the CPU, 1 as PTX
func.func @large_tiles(%a: tensor<128x120x12xf32>, %b: tensor<128x12x116xf32> {test.range = array<f64: -1.0, 1.5>}) attributes {test.tolerance = array<f64: 1.0e-5, 2.0e-6>} {
  %0 = ckopt.matmul %a, %b : (tensor<128x120x12xf32>, tensor<128x12x116xf32>) -> tensor<128x120x116xf32>
  return
}

// k is cut into parts, whose sums a second launch adds in f32.
// CHECK: @long_sums: 1 kernels, 0 as code of the CPU, 1 as PTX
func.func @long_sums(%a: tensor<5x3000xf32>, %b: tensor<3000x9xf32> {test.range = array<f64: -1.0, 1.5>}) attributes {test.tolerance = array<f64: 1.0e-3, 2.0e-6>} {
  %0 = ckopt.matmul %a, %b : (tensor<5x3000xf32>, tensor<3000x9xf32>) -> tensor<5x9xf32>
  return
}

// CHECK: @batches: 1 kernels, 0 as code of the CPU, 1 as PTX
func.func @batches(%a: tensor<2x3x5x7xf32, #ckopt.layout<[0, 2, 1, 3]>>,
    %b: tensor<7x9xf32> {test.range = array<f64: -1.0, 1.5>}) attributes {test.tolerance = array<f64: 1.0e-5, 2.0e-6>} {
  %0 = ckopt.matmul %a, %b : (tensor<2x3x5x7xf32, #ckopt.layout<[0, 2, 1, 3]>>, tensor<7x9xf32>) -> tensor<2x3x5x9xf32>
  return
}

// Products of f64 and of halves have no use for the precision: same code.
// CHECK: @other_types: 2 kernels, 0 as code of the CPU, 2 as PTX
func.func @other_types(%a: tensor<9x70xf64>, %b: tensor<70x6xf64> {test.range = array<f64: -1.0, 1.5>},
    %c: tensor<9x70xbf16>, %d: tensor<70x6xbf16> {test.range = array<f64: -1.0, 1.5>}) {
  %0 = ckopt.matmul %a, %b : (tensor<9x70xf64>, tensor<70x6xf64>) -> tensor<9x6xf64>
  %1 = ckopt.matmul %c, %d : (tensor<9x70xbf16>, tensor<70x6xbf16>) -> tensor<9x6xbf16>
  return
}

// Strides, padding, groups, dilations, channels outside and inside; the last has vectors
// of channels in every operand.
// CHECK: @convolutions: 15 kernels, 0 as code of the CPU, 15 as PTX
func.func @convolutions(%a: tensor<2x4x9x8xf32>, %b: tensor<6x2x3x2xf32>, %c: tensor<2x6x4x4xf32>,
    %d: tensor<2x3x17xf32>, %e: tensor<4x3x5xf32>, %f: tensor<2x4x11xf32>,
    %g: tensor<2x4x9x8xf32, #ckopt.layout<[0, 2, 3, 1]>>, %h: tensor<2x6x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>,
    %i: tensor<2x3x17xf32, #ckopt.layout<[0, 2, 1]>>, %j: tensor<2x4x11xf32, #ckopt.layout<[0, 2, 1]>>,
    %k: tensor<2x16x5x4xf32, #ckopt.layout<[0, 2, 3, 1]>>, %l: tensor<16x8x3x3xf32>) attributes {test.tolerance = array<f64: 1.0e-4, 1.0e-5>} {
  %0 = ckopt.conv %a, %b {strides = array<i64: 2, 2>, pads_low = array<i64: 0, 1>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 2 : i64} : (tensor<2x4x9x8xf32>, tensor<6x2x3x2xf32>) -> tensor<2x6x4x4xf32>
  %1 = ckopt.conv_input_grad %c, %b {strides = array<i64: 2, 2>, pads_low = array<i64: 0, 1>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 2 : i64} : (tensor<2x6x4x4xf32>, tensor<6x2x3x2xf32>) -> tensor<2x4x9x8xf32>
  %2 = ckopt.conv_weight_grad %c, %a {strides = array<i64: 2, 2>, pads_low = array<i64: 0, 1>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 2 : i64} : (tensor<2x6x4x4xf32>, tensor<2x4x9x8xf32>) -> tensor<6x2x3x2xf32>
  %3 = ckopt.conv %d, %e {strides = array<i64: 1>, pads_low = array<i64: 2>, pads_high = array<i64: 0>, dilations = array<i64: 2>, groups = 1 : i64} : (tensor<2x3x17xf32>, tensor<4x3x5xf32>) -> tensor<2x4x11xf32>
  %4 = ckopt.conv_input_grad %f, %e {strides = array<i64: 1>, pads_low = array<i64: 2>, pads_high = array<i64: 0>, dilations = array<i64: 2>, groups = 1 : i64} : (tensor<2x4x11xf32>, tensor<4x3x5xf32>) -> tensor<2x3x17xf32>
  %5 = ckopt.conv_weight_grad %f, %d {strides = array<i64: 1>, pads_low = array<i64: 2>, pads_high = array<i64: 0>, dilations = array<i64: 2>, groups = 1 : i64} : (tensor<2x4x11xf32>, tensor<2x3x17xf32>) -> tensor<4x3x5xf32>
  %6 = ckopt.conv %g, %b {strides = array<i64: 2, 2>, pads_low = array<i64: 0, 1>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 2 : i64} : (tensor<2x4x9x8xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<6x2x3x2xf32>) -> tensor<2x6x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %7 = ckopt.conv_input_grad %h, %b {strides = array<i64: 2, 2>, pads_low = array<i64: 0, 1>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 2 : i64} : (tensor<2x6x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<6x2x3x2xf32>) -> tensor<2x4x9x8xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %8 = ckopt.conv_weight_grad %h, %g {strides = array<i64: 2, 2>, pads_low = array<i64: 0, 1>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 2 : i64} : (tensor<2x6x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x4x9x8xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<6x2x3x2xf32>
  %9 = ckopt.conv %i, %e {strides = array<i64: 1>, pads_low = array<i64: 2>, pads_high = array<i64: 0>, dilations = array<i64: 2>, groups = 1 : i64} : (tensor<2x3x17xf32, #ckopt.layout<[0, 2, 1]>>, tensor<4x3x5xf32>) -> tensor<2x4x11xf32, #ckopt.layout<[0, 2, 1]>>
  %10 = ckopt.conv_input_grad %j, %e {strides = array<i64: 1>, pads_low = array<i64: 2>, pads_high = array<i64: 0>, dilations = array<i64: 2>, groups = 1 : i64} : (tensor<2x4x11xf32, #ckopt.layout<[0, 2, 1]>>, tensor<4x3x5xf32>) -> tensor<2x3x17xf32, #ckopt.layout<[0, 2, 1]>>
  %11 = ckopt.conv_weight_grad %j, %i {strides = array<i64: 1>, pads_low = array<i64: 2>, pads_high = array<i64: 0>, dilations = array<i64: 2>, groups = 1 : i64} : (tensor<2x4x11xf32, #ckopt.layout<[0, 2, 1]>>, tensor<2x3x17xf32, #ckopt.layout<[0, 2, 1]>>) -> tensor<4x3x5xf32>
  %12 = ckopt.conv %k, %l {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 2 : i64} : (tensor<2x16x5x4xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<16x8x3x3xf32>) -> tensor<2x16x5x4xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %13 = ckopt.conv_input_grad %k, %l {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 2 : i64} : (tensor<2x16x5x4xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<16x8x3x3xf32>) -> tensor<2x16x5x4xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %14 = ckopt.conv_weight_grad %k, %k {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 2 : i64} : (tensor<2x16x5x4xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x16x5x4xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<16x8x3x3xf32>
  return
}
