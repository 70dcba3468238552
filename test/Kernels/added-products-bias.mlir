// REQUIRES: landing
// Products that are added to a tensor together with a bias, by code of our own for GPUs, as
// added-products.mlir has them without: the bias is one row for all tiles, in vectors and without,
// and where k is cut into parts it is added to their sum, once.
// RUN: ckopt-opt %s --test-kernels-against-reference -o /dev/null | FileCheck %s
// RUN: ckopt-opt %s --test-kernels-against-reference="multiprocessors=2 contractions=parts=3" -o /dev/null | FileCheck %s
// RUN: ckopt-opt %s --test-kernels-against-reference="multiprocessors=2 precision=tf32" -o /dev/null | FileCheck %s
// RUN: ckopt-opt %s --test-kernels-against-reference="multiprocessors=2 precision=tf32 contractions=tile=256" -o /dev/null | FileCheck %s

// CHECK: @words: 5 kernels, 0 as code of the CPU, 5 as PTX
func.func @words(%a: tensor<90x133xf32>, %b: tensor<90x70xf32> {test.range = array<f64: -1.0, 1.5>},
    %c: tensor<133x70xf32> {test.range = array<f64: -3.0, 3.0>}, %d: tensor<132x260xf32>,
    %e: tensor<260x68xf32> {test.range = array<f64: -1.0, 1.5>}, %f: tensor<132x68xf32> {test.range = array<f64: -3.0, 3.0>},
    %g: tensor<260x67xf32> {test.range = array<f64: -1.0, 1.5>}, %h: tensor<1x260xf32>, %i: tensor<1x67xf32>,
    %j: tensor<132x1xf32>, %k: tensor<260x1xf32>, %p: tensor<70xf32> {test.range = array<f64: -9.0, 9.0>},
    %q: tensor<68xf32> {test.range = array<f64: -9.0, 9.0>}, %r: tensor<67xf32> {test.range = array<f64: -9.0, 9.0>},
    %s: tensor<1xf32> {test.range = array<f64: -9.0, 9.0>}, %t: tensor<68x260xf32> {test.range = array<f64: -1.0, 1.5>}) attributes {test.tolerance = array<f64: 2.0e-5, 4.0e-6>} {
  %0 = ckopt.matmul_add %a, %b, %c bias %p {transpose_lhs} : (tensor<90x133xf32>, tensor<90x70xf32>, tensor<133x70xf32>, tensor<70xf32>) -> tensor<133x70xf32>
  %1 = ckopt.matmul_add %d, %e, %f bias %q : (tensor<132x260xf32>, tensor<260x68xf32>, tensor<132x68xf32>, tensor<68xf32>) -> tensor<132x68xf32>
  %2 = ckopt.matmul_add %h, %g, %i bias %r : (tensor<1x260xf32>, tensor<260x67xf32>, tensor<1x67xf32>, tensor<67xf32>) -> tensor<1x67xf32>
  %3 = ckopt.matmul_add %d, %k, %j bias %s : (tensor<132x260xf32>, tensor<260x1xf32>, tensor<132x1xf32>, tensor<1xf32>) -> tensor<132x1xf32>
  %4 = ckopt.matmul_add %d, %t, %f bias %q {transpose_rhs} : (tensor<132x260xf32>, tensor<68x260xf32>, tensor<132x68xf32>, tensor<68xf32>) -> tensor<132x68xf32>
  return
}

// CHECK: @widths: 5 kernels, 0 as code of the CPU, 5 as PTX
func.func @widths(%a: tensor<104x133xbf16>, %b: tensor<104x70xbf16> {test.range = array<f64: -1.0, 1.5>},
    %c: tensor<133x70xf32> {test.range = array<f64: -3.0, 3.0>}, %d: tensor<136x264xf16>,
    %e: tensor<264x72xf16> {test.range = array<f64: -1.0, 1.5>}, %f: tensor<136x72xf32> {test.range = array<f64: -3.0, 3.0>},
    %g: tensor<136x72xf16> {test.range = array<f64: -3.0, 3.0>}, %h: tensor<136x264xbf16>,
    %i: tensor<72x264xbf16> {test.range = array<f64: -1.0, 1.5>}, %j: tensor<136x72xbf16> {test.range = array<f64: -3.0, 3.0>},
    %k: tensor<90x67xf64>, %l: tensor<90x71xf64>, %m: tensor<67x71xf64>, %p: tensor<70xf32> {test.range = array<f64: -9.0, 9.0>},
    %q: tensor<72xf32> {test.range = array<f64: -9.0, 9.0>}, %r: tensor<72xf16> {test.range = array<f64: -9.0, 9.0>},
    %s: tensor<72xbf16> {test.range = array<f64: -9.0, 9.0>}, %t: tensor<71xf64> {test.range = array<f64: -9.0, 9.0>}) attributes {test.tolerance = array<f64: 2.0e-5, 4.0e-6>} {
  %0 = ckopt.matmul_add %a, %b, %c bias %p {transpose_lhs} : (tensor<104x133xbf16>, tensor<104x70xbf16>, tensor<133x70xf32>, tensor<70xf32>) -> tensor<133x70xf32>
  %1 = ckopt.matmul_add %d, %e, %f bias %q : (tensor<136x264xf16>, tensor<264x72xf16>, tensor<136x72xf32>, tensor<72xf32>) -> tensor<136x72xf32>
  %2 = ckopt.matmul_add %d, %e, %g bias %r : (tensor<136x264xf16>, tensor<264x72xf16>, tensor<136x72xf16>, tensor<72xf16>) -> tensor<136x72xf16>
  %3 = ckopt.matmul_add %h, %i, %j bias %s {transpose_rhs} : (tensor<136x264xbf16>, tensor<72x264xbf16>, tensor<136x72xbf16>, tensor<72xbf16>) -> tensor<136x72xbf16>
  %4 = ckopt.matmul_add %k, %l, %m bias %t {transpose_lhs} : (tensor<90x67xf64>, tensor<90x71xf64>, tensor<67x71xf64>, tensor<71xf64>) -> tensor<67x71xf64>
  return
}

// The bias is added first, as a kernel of its own would: 2^24 + (5 + 1), where 2^24 + 5 is no number
// of f32 and (2^24 + 5) + 1 is 2^24 + 4.
// CHECK: @order: 2 kernels, 0 as code of the CPU, 2 as PTX
func.func @order(%a: tensor<6x5xf32> {test.range = array<f64: 1.0, 1.0>}, %b: tensor<5x8xf32> {test.range = array<f64: 1.0, 1.0>},
    %c: tensor<6x8xf32> {test.range = array<f64: 16777216.0, 16777216.0>}, %d: tensor<8xf32> {test.range = array<f64: 1.0, 1.0>},
    %e: tensor<64x640xf32> {test.range = array<f64: 0.0078125, 0.0078125>}, %f: tensor<640x8xf32> {test.range = array<f64: 1.0, 1.0>},
    %g: tensor<64x8xf32> {test.range = array<f64: 16777216.0, 16777216.0>}) attributes {test.tolerance = array<f64: 1.0e-12, 1.0e-12>} {
  %0 = ckopt.matmul_add %a, %b, %c bias %d : (tensor<6x5xf32>, tensor<5x8xf32>, tensor<6x8xf32>, tensor<8xf32>) -> tensor<6x8xf32>
  %1 = ckopt.matmul_add %e, %f, %g bias %d : (tensor<64x640xf32>, tensor<640x8xf32>, tensor<64x8xf32>, tensor<8xf32>) -> tensor<64x8xf32>
  return
}
