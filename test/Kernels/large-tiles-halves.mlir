// REQUIRES: landing
// Products and convolutions of halves in memory, in tiles of up to 256 rows or columns, as
// large-tiles.mlir has them of f32: copied to shared memory by three or four buffers, or through
// registers in one buffer.
// RUN: ckopt-opt %s --test-kernels-against-reference="multiprocessors=2 contractions=tile=256,stages=4" -o /dev/null | FileCheck %s
// RUN: ckopt-opt %s --test-kernels-against-reference="multiprocessors=2 contractions=tile=256,stages=1" -o /dev/null | FileCheck %s
// RUN: ckopt-opt %s --test-kernels-against-reference="multiprocessors=2 contractions=tile=256,stages=3" -o /dev/null | FileCheck %s

// Edges of tiles and slices; both operands across k.
// CHECK: @products: 2 kernels, 0 as code of the CPU, 2 as PTX
func.func @products(%a0: tensor<133x104xbf16>,
    %a1: tensor<104x264xbf16> {test.range = array<f64: -1.0, 1.5>},
    %a2: tensor<104x136xbf16>,
    %a3: tensor<264x104xbf16> {test.range = array<f64: -1.0, 1.5>}) attributes {test.tolerance = array<f64: 1.0e-6, 2.0e-6>} {
  %0 = ckopt.matmul %a0, %a1 : (tensor<133x104xbf16>, tensor<104x264xbf16>) -> tensor<133x264xbf16>
  %1 = ckopt.matmul %a2, %a3 {transpose_lhs, transpose_rhs} : (tensor<104x136xbf16>, tensor<264x104xbf16>) -> tensor<136x264xbf16>
  return
}

// A tile of 256 x 64 at its edge; rows that are no multiple of a vector.
// CHECK: @oblong: 2 kernels, 0 as code of the CPU, 2 as PTX
func.func @oblong(%a0: tensor<260x72xbf16>,
    %a1: tensor<72x56xbf16> {test.range = array<f64: -1.0, 1.5>},
    %a2: tensor<130x72xbf16>,
    %a3: tensor<72x515xbf16> {test.range = array<f64: -1.0, 1.5>}) attributes {test.tolerance = array<f64: 1.0e-6, 2.0e-6>} {
  %0 = ckopt.matmul %a0, %a1 : (tensor<260x72xbf16>, tensor<72x56xbf16>) -> tensor<260x56xbf16>
  %1 = ckopt.matmul %a2, %a3 : (tensor<130x72xbf16>, tensor<72x515xbf16>) -> tensor<130x515xbf16>
  return
}

// Channels last, windows that leave the image.
// CHECK: @convolutions: 3 kernels, 0 as code of the CPU, 3 as PTX
func.func @convolutions(%a0: tensor<2x16x13x10xbf16, #ckopt.layout<[0, 2, 3, 1]>>,
    %a1: tensor<136x16x3x3xbf16, #ckopt.layout<[0, 2, 3, 1]>> {test.range = array<f64: -1.0, 1.5>},
    %a2: tensor<2x136x13x10xbf16, #ckopt.layout<[0, 2, 3, 1]>>,
    %a3: tensor<136x16x3x3xbf16, #ckopt.layout<[0, 2, 3, 1]>> {test.range = array<f64: -1.0, 1.5>},
    %a4: tensor<2x136x13x10xbf16, #ckopt.layout<[0, 2, 3, 1]>>,
    %a5: tensor<2x16x13x10xbf16, #ckopt.layout<[0, 2, 3, 1]>> {test.range = array<f64: -1.0, 1.5>}) attributes {test.tolerance = array<f64: 1.0e-6, 2.0e-3>} {
  %0 = ckopt.conv %a0, %a1 {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x16x13x10xbf16, #ckopt.layout<[0, 2, 3, 1]>>, tensor<136x16x3x3xbf16, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<2x136x13x10xbf16, #ckopt.layout<[0, 2, 3, 1]>>
  %1 = ckopt.conv_input_grad %a2, %a3 {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x136x13x10xbf16, #ckopt.layout<[0, 2, 3, 1]>>, tensor<136x16x3x3xbf16, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<2x16x13x10xbf16, #ckopt.layout<[0, 2, 3, 1]>>
  %2 = ckopt.conv_weight_grad %a4, %a5 {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x136x13x10xbf16, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x16x13x10xbf16, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<136x16x3x3xbf16, #ckopt.layout<[0, 2, 3, 1]>>
  return
}
