// Running sums, and the indices of the largest or smallest elements.
// RUN: ckopt-opt %s --test-kernels-against-reference -o /dev/null | FileCheck %s

// CHECK: @running_sums: 14 kernels, 14 as code of the CPU, 14 as PTX
func.func @running_sums(%a: tensor<9x37xf32>, %b: tensor<3x9x17xf64>,
    %c: tensor<7x5xi8> {test.range = array<f64: -100.0, 100.0>},
    %d: tensor<70xi64> {test.range = array<f64: -100.0, 100.0>}, %e: tensor<1xf32>, %f: tensor<0xf32>,
    %g: tensor<4x0x5xf32>, %h: tensor<4x5x3x2xui32> {test.range = array<f64: 0.0, 100.0>}, %i: tensor<5x33xf16>) attributes {test.tolerance = array<f64: 1.0e-5, 2.0e-6>} {
  %0 = ckopt.cumulative_sum %a {axis = 0 : i64} : (tensor<9x37xf32>) -> tensor<9x37xf32>
  %1 = ckopt.cumulative_sum %a {axis = 0 : i64, exclusive} : (tensor<9x37xf32>) -> tensor<9x37xf32>
  %2 = ckopt.cumulative_sum %a {axis = 0 : i64, reverse} : (tensor<9x37xf32>) -> tensor<9x37xf32>
  %3 = ckopt.cumulative_sum %a {axis = 1 : i64, exclusive, reverse} : (tensor<9x37xf32>) -> tensor<9x37xf32>
  %4 = ckopt.cumulative_sum %b {axis = 1 : i64} : (tensor<3x9x17xf64>) -> tensor<3x9x17xf64>
  %5 = ckopt.cumulative_sum %c {axis = 0 : i64} : (tensor<7x5xi8>) -> tensor<7x5xi8>
  %6 = ckopt.cumulative_sum %d {axis = 0 : i64, exclusive} : (tensor<70xi64>) -> tensor<70xi64>
  %7 = ckopt.cumulative_sum %e {axis = 0 : i64, exclusive} : (tensor<1xf32>) -> tensor<1xf32>
  %8 = ckopt.cumulative_sum %f {axis = 0 : i64, exclusive} : (tensor<0xf32>) -> tensor<0xf32>
  %9 = ckopt.cumulative_sum %g {axis = 2 : i64} : (tensor<4x0x5xf32>) -> tensor<4x0x5xf32>
  %10 = ckopt.cumulative_sum %g {axis = 1 : i64} : (tensor<4x0x5xf32>) -> tensor<4x0x5xf32>
  %11 = ckopt.cumulative_sum %h {axis = 1 : i64} : (tensor<4x5x3x2xui32>) -> tensor<4x5x3x2xui32>
  %12 = ckopt.cumulative_sum %i {axis = 0 : i64} : (tensor<5x33xf16>) -> tensor<5x33xf16>
  %13 = ckopt.cumulative_sum %i {axis = 1 : i64} : (tensor<5x33xf16>) -> tensor<5x33xf16>
  return
}

// Sums of halves are carried in f32: a sum of ones in f16 would stop at 2,048.
// CHECK: @running_sums_of_halves: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func @running_sums_of_halves(%a: tensor<4096xf16> {test.value = dense<1.0> : tensor<4096xf16>}) {
  %0 = ckopt.cumulative_sum %a {axis = 0 : i64} : (tensor<4096xf16>) -> tensor<4096xf16>
  return
}

// Integers of few values have ties: repeated passes and the heap, in rows and columns,
// must order them by index.
// CHECK: @every_k: 13 kernels, 13 as code of the CPU, 13 as PTX
func.func @every_k(%a: tensor<3x20xi32> {test.range = array<f64: -3.0, 3.0>},
    %b: tensor<20x18xi32> {test.range = array<f64: -3.0, 3.0>},
    %c: tensor<2x20x3xi64> {test.range = array<f64: -3.0, 3.0>}, %d: tensor<3x20xf32>) {
  %0 = ckopt.top_k %a {axis = 1 : i64, k = 1 : i64} : (tensor<3x20xi32>) -> tensor<3x1xi64>
  %1 = ckopt.top_k %b {axis = 0 : i64, k = 1 : i64, last} : (tensor<20x18xi32>) -> tensor<1x18xi64>
  %2 = ckopt.top_k %a {axis = 1 : i64, k = 8 : i64} : (tensor<3x20xi32>) -> tensor<3x8xi64>
  %3 = ckopt.top_k %b {axis = 0 : i64, k = 8 : i64, last} : (tensor<20x18xi32>) -> tensor<8x18xi64>
  %4 = ckopt.top_k %a {axis = 1 : i64, k = 9 : i64} : (tensor<3x20xi32>) -> tensor<3x9xi64>
  %5 = ckopt.top_k %b {axis = 0 : i64, k = 9 : i64, last} : (tensor<20x18xi32>) -> tensor<9x18xi64>
  %6 = ckopt.top_k %a {axis = 1 : i64, k = 20 : i64} : (tensor<3x20xi32>) -> tensor<3x20xi64>
  %7 = ckopt.top_k %b {axis = 0 : i64, k = 20 : i64, last} : (tensor<20x18xi32>) -> tensor<20x18xi64>
  %8 = ckopt.top_k %a {axis = 1 : i64, k = 2 : i64, smallest} : (tensor<3x20xi32>) -> tensor<3x2xi64>
  %9 = ckopt.top_k %c {axis = 1 : i64, k = 2 : i64, last, smallest} : (tensor<2x20x3xi64>) -> tensor<2x2x3xi64>
  %10 = ckopt.top_k %a {axis = 1 : i64, k = 19 : i64, smallest} : (tensor<3x20xi32>) -> tensor<3x19xi64>
  %11 = ckopt.top_k %c {axis = 1 : i64, k = 19 : i64, last, smallest} : (tensor<2x20x3xi64>) -> tensor<2x19x3xi64>
  %12 = ckopt.top_k %d {axis = 1 : i64, k = 0 : i64} : (tensor<3x20xf32>) -> tensor<3x0xi64>
  return
}

// Of each type, by passes and by a heap.
// CHECK: @types: 9 kernels, 9 as code of the CPU, 9 as PTX
func.func @types(%a: tensor<2x40xf64>, %b: tensor<2x40xf16>, %c: tensor<2x40xbf16>,
    %d: tensor<2x40xi64> {test.range = array<f64: -1000.0, 1000.0>},
    %e: tensor<2x40xi16> {test.range = array<f64: -1000.0, 1000.0>},
    %f: tensor<2x40xi8> {test.range = array<f64: -1000.0, 1000.0>},
    %g: tensor<2x40xui64> {test.range = array<f64: 0.0, 1000.0>},
    %h: tensor<2x40xui32> {test.range = array<f64: 0.0, 1000.0>},
    %i: tensor<2x40xui8> {test.range = array<f64: 0.0, 1000.0>}) {
  %0 = ckopt.top_k %a {axis = 1 : i64, k = 12 : i64} : (tensor<2x40xf64>) -> tensor<2x12xi64>
  %1 = ckopt.top_k %b {axis = 1 : i64, k = 2 : i64} : (tensor<2x40xf16>) -> tensor<2x2xi64>
  %2 = ckopt.top_k %c {axis = 1 : i64, k = 12 : i64} : (tensor<2x40xbf16>) -> tensor<2x12xi64>
  %3 = ckopt.top_k %d {axis = 1 : i64, k = 2 : i64} : (tensor<2x40xi64>) -> tensor<2x2xi64>
  %4 = ckopt.top_k %e {axis = 1 : i64, k = 12 : i64} : (tensor<2x40xi16>) -> tensor<2x12xi64>
  %5 = ckopt.top_k %f {axis = 1 : i64, k = 2 : i64} : (tensor<2x40xi8>) -> tensor<2x2xi64>
  %6 = ckopt.top_k %g {axis = 1 : i64, k = 12 : i64} : (tensor<2x40xui64>) -> tensor<2x12xi64>
  %7 = ckopt.top_k %h {axis = 1 : i64, k = 2 : i64} : (tensor<2x40xui32>) -> tensor<2x2xi64>
  %8 = ckopt.top_k %i {axis = 1 : i64, k = 12 : i64} : (tensor<2x40xui8>) -> tensor<2x12xi64>
  return
}

// Rows of any length, over blocks of threads and short ones.
// CHECK: @lengths: 5 kernels, 5 as code of the CPU, 5 as PTX
func.func @lengths(%a: tensor<5x1xf32>, %b: tensor<5x17xf32>, %c: tensor<5x1000xf32>, %d: tensor<17x5xf32>,
    %e: tensor<2x300xf32>) {
  %0 = ckopt.top_k %a {axis = 1 : i64, k = 1 : i64} : (tensor<5x1xf32>) -> tensor<5x1xi64>
  %1 = ckopt.top_k %b {axis = 1 : i64, k = 1 : i64} : (tensor<5x17xf32>) -> tensor<5x1xi64>
  %2 = ckopt.top_k %c {axis = 1 : i64, k = 1 : i64} : (tensor<5x1000xf32>) -> tensor<5x1xi64>
  %3 = ckopt.top_k %d {axis = 0 : i64, k = 1 : i64} : (tensor<17x5xf32>) -> tensor<1x5xi64>
  %4 = ckopt.top_k %e {axis = 1 : i64, k = 100 : i64, smallest} : (tensor<2x300xf32>) -> tensor<2x100xi64>
  return
}

// What numbers alone do not show: NaN is larger than infinity, zeros of both signs are
// equal, the smallest integers are elements like others.
// CHECK: @special_numbers: 8 kernels, 8 as code of the CPU, 8 as PTX
func.func @special_numbers(%a: tensor<14xf32> {test.value = dense<[-0.0, 0.0, 0x7FC00000, 0x7F800000, 0xFF800000, 1.0e-7, 0xFFC00000, 0.0, 5.0, 0x7FC00000, -1.0e-7, 0x7F800000, 0xFF800000, -0.0]> : tensor<14xf32>},
    %b: tensor<14xf64> {test.value = dense<[-0.0, 0.0, 0x7FF8000000000000, 0x7FF0000000000000, 0xFFF0000000000000, 1.0e-7, 0xFFF8000000000000, 0.0, 5.0, 0x7FF8000000000000, -1.0e-7, 0x7FF0000000000000, 0xFFF0000000000000, -0.0]> : tensor<14xf64>},
    %c: tensor<14xi64> {test.value = dense<[-9223372036854775808, 9223372036854775807, 0, -9223372036854775808, -1, 9223372036854775807, -9223372036854775808, 1, -1, -9223372036854775808, 0, 9223372036854775807, 5, -9223372036854775808]> : tensor<14xi64>},
    %d: tensor<14xui64> {test.value = dense<[9223372036854775808, 9223372036854775807, 0, 9223372036854775808, 18446744073709551615, 9223372036854775807, 9223372036854775808, 1, 18446744073709551615, 9223372036854775808, 0, 9223372036854775807, 5, 9223372036854775808]> : tensor<14xui64>}) {
  %0 = ckopt.top_k %a {axis = 0 : i64, k = 14 : i64} : (tensor<14xf32>) -> tensor<14xi64>
  %1 = ckopt.top_k %a {axis = 0 : i64, k = 7 : i64, smallest} : (tensor<14xf32>) -> tensor<7xi64>
  %2 = ckopt.top_k %b {axis = 0 : i64, k = 14 : i64} : (tensor<14xf64>) -> tensor<14xi64>
  %3 = ckopt.top_k %b {axis = 0 : i64, k = 7 : i64, smallest} : (tensor<14xf64>) -> tensor<7xi64>
  %4 = ckopt.top_k %c {axis = 0 : i64, k = 14 : i64} : (tensor<14xi64>) -> tensor<14xi64>
  %5 = ckopt.top_k %c {axis = 0 : i64, k = 7 : i64, smallest} : (tensor<14xi64>) -> tensor<7xi64>
  %6 = ckopt.top_k %d {axis = 0 : i64, k = 14 : i64} : (tensor<14xui64>) -> tensor<14xi64>
  %7 = ckopt.top_k %d {axis = 0 : i64, k = 7 : i64, smallest} : (tensor<14xui64>) -> tensor<7xi64>
  return
}
