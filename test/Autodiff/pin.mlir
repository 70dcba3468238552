// What a gradient compares with what was chosen from it is stored once, for both to read: a value
// that another kernel computed again might differ in a bit, and no element would be the maximum.
// RUN: ckopt-opt %s --split-input-file --autodiff --canonicalize | FileCheck %s
// RUN: ckopt-opt %s --split-input-file --autodiff --canonicalize --fuse | FileCheck %s --check-prefix=FUSED

// CHECK-LABEL: func.func @step(
// CHECK:         %[[E:.*]] = ckopt.exp
// CHECK:         %[[PIN:.*]] = ckopt.pin %[[E]]
// CHECK:         %[[MAX:.*]] = ckopt.reduce max %[[PIN]]
// CHECK:         ckopt.compare eq %[[PIN]],
//
// Both kernels read the stored value; neither computes an exponential.
// FUSED-LABEL: func.func @step(
// FUSED:         %[[E:.*]] = ckopt.kernel_call @[[EXP:k_elementwise_[0-9]+]]
// FUSED:         %[[PIN:.*]] = ckopt.pin %[[E]]
// FUSED:         ckopt.kernel_call @[[MAX:k_reduction_[0-9]+]](%[[PIN]])
// FUSED:       func.func private @[[MAX]](
// FUSED-NOT:     ckopt.exp
// FUSED:         ckopt.reduce max
func.func @forward(%p: tensor<8x64xf32> {ckopt.role = "parameter"}) -> tensor<f32> {
  %e = ckopt.exp %p : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %m = ckopt.reduce max %e {axes = array<i64: 1>, keepdims = false} : (tensor<8x64xf32>) -> tensor<8xf32>
  %y = ckopt.reduce sum %m {axes = array<i64: 0>, keepdims = false} : (tensor<8xf32>) -> tensor<f32>
  return %y : tensor<f32>
}

// -----

// Sums compare nothing, and maxima that no gradient flows through are left alone.
// CHECK-LABEL: func.func @step(
// CHECK-NOT:     ckopt.pin
func.func @forward(%p: tensor<8x64xf32> {ckopt.role = "parameter"}, %x: tensor<8x64xf32>) -> tensor<f32> {
  %e = ckopt.exp %p : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %s = ckopt.reduce sum %e {axes = array<i64: 1>, keepdims = false} : (tensor<8x64xf32>) -> tensor<8xf32>
  %n = ckopt.neg %x : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %m = ckopt.reduce max %n {axes = array<i64: 1>, keepdims = false} : (tensor<8x64xf32>) -> tensor<8xf32>
  %a = ckopt.add %s, %m : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %y = ckopt.reduce sum %a {axes = array<i64: 0>, keepdims = false} : (tensor<8xf32>) -> tensor<f32>
  return %y : tensor<f32>
}
