// What layout refuses.
// RUN: ckopt-opt %s --layout --split-input-file --verify-diagnostics
// RUN: not ckopt-opt %s --layout=layout=blocked 2>&1 | FileCheck %s
// CHECK: layout: unknown layout 'blocked'; known are channels-last and none

// Layouts are assigned before ops become kernels.
func.func private @k(%x: tensor<4xf32>) -> tensor<4xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @late(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{is no ckopt op that layout knows; run layout before fuse}}
  %0 = ckopt.kernel_call @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
