// REQUIRES: landing
// Products and convolutions of f32 by TF32, in tiles of up to 256 rows or columns
// that tests are else too small for: edges of tiles and slices, odd rows, either operand
// along k and across it, windows that leave the image. Shared memory is more than code may declare.
// RUN: ckopt-opt %s --test-kernels-against-reference="multiprocessors=2 precision=tf32 contractions=tile=256" -o /dev/null | FileCheck %s --check-prefix=CHECK

// Edges of tiles and slices; both operands across k.
// CHECK: @products: 2 kernels, 0 as code of the CPU, 2 as PTX
func.func @products(%a0: tensor<133x104xf32>,
    %a1: tensor<104x264xf32> {test.range = array<f64: -1.0, 1.5>},
    %a2: tensor<104x136xf32>,
    %a3: tensor<263x104xf32> {test.range = array<f64: -1.0, 1.5>}) attributes {test.tolerance = array<f64: 1.0e-5, 2.0e-6>} {
  %0 = ckopt.matmul %a0, %a1 : (tensor<133x104xf32>, tensor<104x264xf32>) -> tensor<133x264xf32>
  %1 = ckopt.matmul %a2, %a3 {transpose_lhs, transpose_rhs} : (tensor<104x136xf32>, tensor<263x104xf32>) -> tensor<136x263xf32>
  return
}

// A tile of 256 x 64 at its edge; rows that are no multiple of a vector.
// CHECK: @oblong: 2 kernels, 0 as code of the CPU, 2 as PTX
func.func @oblong(%a0: tensor<260x72xf32>,
    %a1: tensor<72x56xf32> {test.range = array<f64: -1.0, 1.5>},
    %a2: tensor<130x72xf32>,
    %a3: tensor<72x515xf32> {test.range = array<f64: -1.0, 1.5>}) attributes {test.tolerance = array<f64: 1.0e-5, 2.0e-6>} {
  %0 = ckopt.matmul %a0, %a1 : (tensor<260x72xf32>, tensor<72x56xf32>) -> tensor<260x56xf32>
  %1 = ckopt.matmul %a2, %a3 : (tensor<130x72xf32>, tensor<72x515xf32>) -> tensor<130x515xf32>
  return
}

// Channels last, windows that leave the image.
// CHECK: @convolutions: 3 kernels, 0 as code of the CPU, 3 as PTX
func.func @convolutions(%a0: tensor<2x16x13x10xf32, #ckopt.layout<[0, 2, 3, 1]>>,
    %a1: tensor<136x16x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>> {test.range = array<f64: -1.0, 1.5>},
    %a2: tensor<2x136x13x10xf32, #ckopt.layout<[0, 2, 3, 1]>>,
    %a3: tensor<136x16x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>> {test.range = array<f64: -1.0, 1.5>},
    %a4: tensor<2x136x13x10xf32, #ckopt.layout<[0, 2, 3, 1]>>,
    %a5: tensor<2x16x13x10xf32, #ckopt.layout<[0, 2, 3, 1]>> {test.range = array<f64: -1.0, 1.5>}) attributes {test.tolerance = array<f64: 1.0e-4, 1.0e-5>} {
  %0 = ckopt.conv %a0, %a1 {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x16x13x10xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<136x16x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<2x136x13x10xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %1 = ckopt.conv_input_grad %a2, %a3 {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x136x13x10xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<136x16x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<2x16x13x10xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %2 = ckopt.conv_weight_grad %a4, %a5 {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x136x13x10xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x16x13x10xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<136x16x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>
  return
}
