// What mixed precision makes of kernels: products and convolutions of halves whose sums are
// stored in f32, and kernels that read halves, compute in f32 and store halves.
// RUN: ckopt-opt %s --test-kernels-against-reference -o /dev/null | FileCheck %s

// Products of our own, in block form; libraries compute them on the CPU (unittests/Runtime).
// CHECK: @products: 6 kernels, 0 as code of the CPU, 6 as PTX
func.func @products(%a: tensor<70x37xbf16>, %b: tensor<37x65xbf16> {test.range = array<f64: -1.0, 1.5>},
    %c: tensor<72x64xbf16>, %d: tensor<40x72xbf16> {test.range = array<f64: -1.0, 1.5>},
    %e: tensor<24x1040xf16>, %f: tensor<1040x16xf16> {test.range = array<f64: -1.0, 1.5>},
    %g: tensor<2x16x5x4xbf16, #ckopt.layout<[0, 2, 3, 1]>>, %h: tensor<16x8x3x3xbf16>)
    attributes {test.tolerance = array<f64: 1.0e-4, 1.0e-5>} {
  %0 = ckopt.matmul %a, %b : (tensor<70x37xbf16>, tensor<37x65xbf16>) -> tensor<70x65xf32>
  %1 = ckopt.matmul %c, %d {transpose_lhs, transpose_rhs} : (tensor<72x64xbf16>, tensor<40x72xbf16>) -> tensor<64x40xf32>
  %2 = ckopt.matmul %e, %f : (tensor<24x1040xf16>, tensor<1040x16xf16>) -> tensor<24x16xf32>
  %3 = ckopt.conv %g, %h {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 2 : i64} : (tensor<2x16x5x4xbf16, #ckopt.layout<[0, 2, 3, 1]>>, tensor<16x8x3x3xbf16>) -> tensor<2x16x5x4xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %4 = ckopt.conv_input_grad %g, %h {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 2 : i64} : (tensor<2x16x5x4xbf16, #ckopt.layout<[0, 2, 3, 1]>>, tensor<16x8x3x3xbf16>) -> tensor<2x16x5x4xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %5 = ckopt.conv_weight_grad %g, %g {strides = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 2 : i64} : (tensor<2x16x5x4xbf16, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x16x5x4xbf16, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<16x8x3x3xf32>
  return
}

// Row ops on f32 that store bf16.
// CHECK: @rows: 8 kernels, 8 as code of the CPU, 8 as PTX
func.func @rows(%a: tensor<5x40xf32> {test.range = array<f64: -5.0, 5.0>}, %b: tensor<40xf32>, %g: tensor<5x40xf32>,
    %m: tensor<5xf32>, %r: tensor<5xf32>, %p: tensor<5x40xf32> {test.range = array<f64: 0.01, 1.0>})
    attributes {test.tolerance = array<f64: 8.0e-3, 1.0e-4>} {
  %0 = ckopt.softmax %a {axis = 1} : (tensor<5x40xf32>) -> tensor<5x40xbf16>
  %1 = ckopt.log_softmax %a {axis = 1} : (tensor<5x40xf32>) -> tensor<5x40xbf16>
  %2 = ckopt.softmax_grad %g, %p {axis = 1} : (tensor<5x40xf32>, tensor<5x40xf32>) -> tensor<5x40xbf16>
  %3:3 = ckopt.layer_norm %a scale %b bias %b {axis = 1 : i64, epsilon = 1.0e-5 : f64} : (tensor<5x40xf32>, tensor<40xf32>, tensor<40xf32>) -> (tensor<5x40xbf16>, tensor<5xf32>, tensor<5xf32>)
  %4 = ckopt.layer_norm_grad %g, %a, %m, %r scale %b {axis = 1 : i64} : (tensor<5x40xf32>, tensor<5x40xf32>, tensor<5xf32>, tensor<5xf32>, tensor<40xf32>) -> tensor<5x40xbf16>
  %5:2 = ckopt.rms_norm %a scale %b {axis = 1 : i64, epsilon = 1.0e-5 : f64} : (tensor<5x40xf32>, tensor<40xf32>) -> (tensor<5x40xbf16>, tensor<5xf32>)
  %6:2 = ckopt.rms_norm %5#0 scale %b {axis = 1 : i64, epsilon = 1.0e-5 : f64, rounds} : (tensor<5x40xbf16>, tensor<40xf32>) -> (tensor<5x40xbf16>, tensor<5xf32>)
  %7 = ckopt.rms_norm_grad %g, %a, %r scale %b {axis = 1 : i64} : (tensor<5x40xf32>, tensor<5x40xf32>, tensor<5xf32>, tensor<40xf32>) -> tensor<5x40xbf16>
  return
}
