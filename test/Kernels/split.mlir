// Pieces of numbers of f32, stored as bf16 and as the same numbers of f32: to the bit, on the
// CPU and as PTX. Products of pieces are libraries' (unittests/Runtime/SplitMatMulTest.cpp).
// RUN: ckopt-opt %s --test-kernels-against-reference -o /dev/null | FileCheck %s

// CHECK: @split: 4 kernels, 4 as code of the CPU, 4 as PTX
func.func @split(%a: tensor<7x37xf32> {test.range = array<f64: -3.0, 3.0>},
    %b: tensor<4x70xf32> {test.range = array<f64: -3.0e38, 3.0e38>},
    %c: tensor<129xf32> {test.range = array<f64: -1.0e-37, 1.0e-37>},
    %d: tensor<2x3x8xf32, #ckopt.layout<[0, 2, 1]>>) attributes {test.tolerance = array<f64: 0.0, 0.0>} {
  %0:2 = ckopt.split_bf16 %a : (tensor<7x37xf32>) -> (tensor<7x37xbf16>, tensor<7x37xbf16>)
  %1:3 = ckopt.split_bf16 %b : (tensor<4x70xf32>) -> (tensor<4x70xbf16>, tensor<4x70xbf16>, tensor<4x70xbf16>)
  %2:3 = ckopt.split_bf16 %c : (tensor<129xf32>) -> (tensor<129xbf16>, tensor<129xbf16>, tensor<129xbf16>)
  %3:2 = ckopt.split_bf16 %d : (tensor<2x3x8xf32, #ckopt.layout<[0, 2, 1]>>) -> (tensor<2x3x8xbf16, #ckopt.layout<[0, 2, 1]>>, tensor<2x3x8xbf16, #ckopt.layout<[0, 2, 1]>>)
  return
}
