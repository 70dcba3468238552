// REQUIRES: landing
// Products of stored halves, whose sum is of f32 or of halves, and of f64, that are added
// to a tensor, as added-products.mlir has them of f32.
// RUN: ckopt-opt %s --test-kernels-against-reference -o /dev/null | FileCheck %s
// RUN: ckopt-opt %s --test-kernels-against-reference="multiprocessors=2 contractions=parts=3" -o /dev/null | FileCheck %s
// RUN: ckopt-opt %s --test-kernels-against-reference="multiprocessors=2 contractions=tile=256,stages=4" -o /dev/null | FileCheck %s

// CHECK: @halves: 5 kernels, 0 as code of the CPU, 5 as PTX
func.func @halves(%a: tensor<104x133xbf16>, %b: tensor<104x70xbf16> {test.range = array<f64: -1.0, 1.5>},
    %c: tensor<133x70xf32> {test.range = array<f64: -3.0, 3.0>}, %d: tensor<136x264xf16>,
    %e: tensor<264x72xf16> {test.range = array<f64: -1.0, 1.5>}, %f: tensor<136x72xf32> {test.range = array<f64: -3.0, 3.0>},
    %g: tensor<136x72xf16> {test.range = array<f64: -3.0, 3.0>}, %h: tensor<136x264xbf16>,
    %i: tensor<72x264xbf16> {test.range = array<f64: -1.0, 1.5>}, %j: tensor<136x72xbf16> {test.range = array<f64: -3.0, 3.0>}) attributes {test.tolerance = array<f64: 2.0e-5, 2.0e-3>} {
  %0 = ckopt.matmul_add %a, %b, %c {transpose_lhs} : (tensor<104x133xbf16>, tensor<104x70xbf16>, tensor<133x70xf32>) -> tensor<133x70xf32>
  %1 = ckopt.matmul_add %d, %e, %f : (tensor<136x264xf16>, tensor<264x72xf16>, tensor<136x72xf32>) -> tensor<136x72xf32>
  %2 = ckopt.matmul_add %d, %e, %g : (tensor<136x264xf16>, tensor<264x72xf16>, tensor<136x72xf16>) -> tensor<136x72xf16>
  %3 = ckopt.matmul_add %h, %i, %f {transpose_rhs} : (tensor<136x264xbf16>, tensor<72x264xbf16>, tensor<136x72xf32>) -> tensor<136x72xf32>
  %4 = ckopt.matmul_add %h, %i, %j {transpose_rhs} : (tensor<136x264xbf16>, tensor<72x264xbf16>, tensor<136x72xbf16>) -> tensor<136x72xbf16>
  return
}

// CHECK: @doubles: 2 kernels, 0 as code of the CPU, 2 as PTX
func.func @doubles(%a: tensor<90x67xf64>, %b: tensor<90x70xf64> {test.range = array<f64: -1.0, 1.5>},
    %c: tensor<67x70xf64> {test.range = array<f64: -3.0, 3.0>}, %d: tensor<67x71xf64>,
    %e: tensor<90x71xf64> {test.range = array<f64: -1.0, 1.5>}) attributes {test.tolerance = array<f64: 2.0e-5, 2.0e-6>} {
  %0 = ckopt.matmul_add %a, %b, %c {transpose_lhs} : (tensor<90x67xf64>, tensor<90x70xf64>, tensor<67x70xf64>) -> tensor<67x70xf64>
  %1 = ckopt.matmul_add %a, %e, %d {transpose_lhs} : (tensor<90x67xf64>, tensor<90x71xf64>, tensor<67x71xf64>) -> tensor<67x71xf64>
  return
}

// A tensor that is also multiplied is read by other threads: it keeps its bytes.
// CHECK: @squares: 2 kernels, 0 as code of the CPU, 2 as PTX
func.func @squares(%a: tensor<130x130xf32>, %b: tensor<130x130xf32> {test.range = array<f64: -1.0, 1.5>}) attributes {test.tolerance = array<f64: 2.0e-5, 2.0e-6>} {
  %0 = ckopt.matmul_add %a, %b, %a {transpose_lhs} : (tensor<130x130xf32>, tensor<130x130xf32>, tensor<130x130xf32>) -> tensor<130x130xf32>
  %1 = ckopt.matmul_add %a, %b, %b : (tensor<130x130xf32>, tensor<130x130xf32>, tensor<130x130xf32>) -> tensor<130x130xf32>
  return
}
