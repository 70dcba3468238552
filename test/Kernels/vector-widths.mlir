// Narrower machines run the same emitter with fewer lanes, or as scalars.
// RUN: ckopt-opt %s --test-kernels-against-reference=vector-bits=0 -o /dev/null | FileCheck %s
// RUN: ckopt-opt %s --test-kernels-against-reference=vector-bits=128 -o /dev/null | FileCheck %s
// RUN: ckopt-opt %s --test-kernels-against-reference=vector-bits=256 -o /dev/null | FileCheck %s

// CHECK: @widths: 2 kernels, 2 as code of the CPU, 1 as PTX
func.func @widths(%a: tensor<3x37xf32>, %b: tensor<3x37xf64>) {
  %0 = ckopt.tanh %a : (tensor<3x37xf32>) -> tensor<3x37xf32>
  %1 = ckopt.tanh %b : (tensor<3x37xf64>) -> tensor<3x37xf64>
  return
}
