// Kernels whose operands lie along another loop than the lanes: tiles with and without
// remainders on either side, of elements of all sizes, alone and among other operands.
// RUN: ckopt-opt %s --test-kernels-against-reference -o /dev/null | FileCheck %s
// RUN: ckopt-opt %s --test-kernels-against-reference=vector-bits=128 -o /dev/null | FileCheck %s
// RUN: ckopt-opt %s --test-kernels-against-reference=vector-bits=256 -o /dev/null | FileCheck %s

// CHECK: @extents: 8 kernels, 8 as code of the CPU, 8 as PTX
func.func @extents(%a: tensor<32x64xf32>, %b: tensor<35x82xf32>, %c: tensor<4x130xf32>, %d: tensor<130x4xf32>,
    %e: tensor<17x65xf32>, %f: tensor<65x17xf32>, %g: tensor<5x4200xf32>, %h: tensor<9x16xf32>) {
  %0 = ckopt.transpose %a {permutation = array<i64: 1, 0>} : (tensor<32x64xf32>) -> tensor<64x32xf32>
  %1 = ckopt.transpose %b {permutation = array<i64: 1, 0>} : (tensor<35x82xf32>) -> tensor<82x35xf32>
  %2 = ckopt.transpose %c {permutation = array<i64: 1, 0>} : (tensor<4x130xf32>) -> tensor<130x4xf32>
  %3 = ckopt.transpose %d {permutation = array<i64: 1, 0>} : (tensor<130x4xf32>) -> tensor<4x130xf32>
  %4 = ckopt.transpose %e {permutation = array<i64: 1, 0>} : (tensor<17x65xf32>) -> tensor<65x17xf32>
  %5 = ckopt.transpose %f {permutation = array<i64: 1, 0>} : (tensor<65x17xf32>) -> tensor<17x65xf32>
  %6 = ckopt.transpose %g {permutation = array<i64: 1, 0>} : (tensor<5x4200xf32>) -> tensor<4200x5xf32>
  %7 = ckopt.transpose %h {permutation = array<i64: 1, 0>} : (tensor<9x16xf32>) -> tensor<16x9xf32>
  return
}

// CHECK: @elements: 7 kernels, 7 as code of the CPU, 7 as PTX
func.func @elements(%a: tensor<21x40xi8>, %b: tensor<21x40xf16>, %c: tensor<21x40xbf16>, %d: tensor<21x40xf64>,
    %e: tensor<21x40xi64>, %f: tensor<21x40xi1>, %g: tensor<21x40xi32>) {
  %0 = ckopt.transpose %a {permutation = array<i64: 1, 0>} : (tensor<21x40xi8>) -> tensor<40x21xi8>
  %1 = ckopt.transpose %b {permutation = array<i64: 1, 0>} : (tensor<21x40xf16>) -> tensor<40x21xf16>
  %2 = ckopt.transpose %c {permutation = array<i64: 1, 0>} : (tensor<21x40xbf16>) -> tensor<40x21xbf16>
  %3 = ckopt.transpose %d {permutation = array<i64: 1, 0>} : (tensor<21x40xf64>) -> tensor<40x21xf64>
  %4 = ckopt.transpose %e {permutation = array<i64: 1, 0>} : (tensor<21x40xi64>) -> tensor<40x21xi64>
  %5 = ckopt.transpose %f {permutation = array<i64: 1, 0>} : (tensor<21x40xi1>) -> tensor<40x21xi1>
  %6 = ckopt.transpose %g {permutation = array<i64: 1, 0>} : (tensor<21x40xi32>) -> tensor<40x21xi32>
  return
}

// Layouts, a reversed permutation, and a slice with steps, which is no tile.
// CHECK: @orders: 5 kernels, 5 as code of the CPU, 5 as PTX
func.func @orders(%a: tensor<2x20x6x7xf32>, %b: tensor<2x20x6x7xf32, #ckopt.layout<[0, 2, 3, 1]>>,
    %c: tensor<6x20x5xf32>, %d: tensor<2x3x9x11xf32>, %e: tensor<40x60xf32>) {
  %0 = ckopt.relayout %a : (tensor<2x20x6x7xf32>) -> tensor<2x20x6x7xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %1 = ckopt.relayout %b : (tensor<2x20x6x7xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<2x20x6x7xf32>
  %2 = ckopt.transpose %c {permutation = array<i64: 2, 1, 0>} : (tensor<6x20x5xf32>) -> tensor<5x20x6xf32>
  %3 = ckopt.relayout %d : (tensor<2x3x9x11xf32>) -> tensor<2x3x9x11xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %4 = ckopt.slice %e {starts = array<i64: 1, 2>, sizes = array<i64: 19, 18>, steps = array<i64: 2, 3>} : (tensor<40x60xf32>) -> tensor<19x18xf32>
  return
}

// Transposed operands beside others: of a fused body, of a column, guarded at the edges, of a
// second result that lies as they do.
// CHECK: @fused: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func private @fused(%a: tensor<37x21xf32>, %b: tensor<21x37xf32>, %c: tensor<37xf32>, %d: tensor<21x1xf32>)
    -> tensor<21x37xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.transpose %a {permutation = array<i64: 1, 0>} : (tensor<37x21xf32>) -> tensor<21x37xf32>
  %1 = ckopt.mul %0, %b : (tensor<21x37xf32>, tensor<21x37xf32>) -> tensor<21x37xf32>
  %2 = ckopt.add %1, %c : (tensor<21x37xf32>, tensor<37xf32>) -> tensor<21x37xf32>
  %3 = ckopt.add %2, %d : (tensor<21x37xf32>, tensor<21x1xf32>) -> tensor<21x37xf32>
  return %3 : tensor<21x37xf32>
}

// CHECK: @guarded: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func private @guarded(%a: tensor<30x21xf32>, %b: tensor<37x25xf32>) -> tensor<25x37xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.transpose %a {permutation = array<i64: 1, 0>} : (tensor<30x21xf32>) -> tensor<21x30xf32>
  %1 = ckopt.pad %0 {low = array<i64: 1, 3>, high = array<i64: 3, 4>, interior = array<i64: 0, 0>, value = 7.0 : f64} : (tensor<21x30xf32>) -> tensor<25x37xf32>
  %2 = ckopt.transpose %b {permutation = array<i64: 1, 0>} : (tensor<37x25xf32>) -> tensor<25x37xf32>
  %3 = ckopt.sub %1, %2 : (tensor<25x37xf32>, tensor<25x37xf32>) -> tensor<25x37xf32>
  return %3 : tensor<25x37xf32>
}

// CHECK: @two_orders: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func private @two_orders(%a: tensor<2x20x6x7xf32>, %b: tensor<2x20x6x7xf32, #ckopt.layout<[0, 2, 3, 1]>>)
    -> (tensor<2x20x6x7xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x20x6x7xf32>) attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.relayout %a : (tensor<2x20x6x7xf32>) -> tensor<2x20x6x7xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %1 = ckopt.add %0, %b : (tensor<2x20x6x7xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x20x6x7xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<2x20x6x7xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %2 = ckopt.mul %a, %a : (tensor<2x20x6x7xf32>, tensor<2x20x6x7xf32>) -> tensor<2x20x6x7xf32>
  return %1, %2 : tensor<2x20x6x7xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2x20x6x7xf32>
}
