// REQUIRES: landing
// Products that are added to a tensor, by code of our own for GPUs, with the sum in the
// addend's bytes and elsewhere: each element is read before it is written, by the thread
// that writes it, and where k is cut into parts these are summed first. Tiles that are not
// full, rows with vectors and without, either operand along k and across it.
// RUN: ckopt-opt %s --test-kernels-against-reference -o /dev/null | FileCheck %s
// RUN: ckopt-opt %s --test-kernels-against-reference="multiprocessors=2 contractions=parts=3" -o /dev/null | FileCheck %s
// RUN: ckopt-opt %s --test-kernels-against-reference="multiprocessors=2 precision=tf32" -o /dev/null | FileCheck %s
// RUN: ckopt-opt %s --test-kernels-against-reference="multiprocessors=2 precision=tf32 contractions=tile=256" -o /dev/null | FileCheck %s

// CHECK: @words: 4 kernels, 0 as code of the CPU, 4 as PTX
func.func @words(%a: tensor<90x133xf32>, %b: tensor<90x70xf32> {test.range = array<f64: -1.0, 1.5>},
    %c: tensor<133x70xf32> {test.range = array<f64: -3.0, 3.0>}, %d: tensor<132x260xf32>,
    %e: tensor<260x68xf32> {test.range = array<f64: -1.0, 1.5>}, %f: tensor<132x68xf32> {test.range = array<f64: -3.0, 3.0>},
    %g: tensor<68x260xf32> {test.range = array<f64: -1.0, 1.5>}, %h: tensor<1x5xf32>, %i: tensor<5x1xf32>,
    %j: tensor<1x1xf32>) attributes {test.tolerance = array<f64: 2.0e-5, 2.0e-6>} {
  %0 = ckopt.matmul_add %a, %b, %c {transpose_lhs} : (tensor<90x133xf32>, tensor<90x70xf32>, tensor<133x70xf32>) -> tensor<133x70xf32>
  %1 = ckopt.matmul_add %d, %e, %f : (tensor<132x260xf32>, tensor<260x68xf32>, tensor<132x68xf32>) -> tensor<132x68xf32>
  %2 = ckopt.matmul_add %d, %g, %f {transpose_rhs} : (tensor<132x260xf32>, tensor<68x260xf32>, tensor<132x68xf32>) -> tensor<132x68xf32>
  %3 = ckopt.matmul_add %h, %i, %j : (tensor<1x5xf32>, tensor<5x1xf32>, tensor<1x1xf32>) -> tensor<1x1xf32>
  return
}
