// The gradient of a value that was split is one concat; gaps are zeros, and what
// overlaps is added.
// RUN: ckopt-opt %s --split-input-file --autodiff --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @step(
// CHECK-NOT:     ckopt.pad
// CHECK-NOT:     ckopt.add
// CHECK:         ckopt.concat %{{[^,]*}}, %{{[^,]*}} {axis = 1 : i64} : (tensor<2x2xf32>, tensor<2x4xf32>)
func.func @forward(%p: tensor<2x6xf32> {ckopt.role = "parameter"}) -> tensor<f32> {
  %b = ckopt.slice %p {starts = array<i64: 0, 2>, sizes = array<i64: 2, 4>, steps = array<i64: 1, 1>} : (tensor<2x6xf32>) -> tensor<2x4xf32>
  %e = ckopt.exp %b : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %es = ckopt.reduce sum %e {axes = array<i64: 0, 1>, keepdims = false} : (tensor<2x4xf32>) -> tensor<f32>
  %a = ckopt.slice %p {starts = array<i64: 0, 0>, sizes = array<i64: 2, 2>, steps = array<i64: 1, 1>} : (tensor<2x6xf32>) -> tensor<2x2xf32>
  %t = ckopt.mul %a, %a : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %ts = ckopt.reduce sum %t {axes = array<i64: 0, 1>, keepdims = false} : (tensor<2x2xf32>) -> tensor<f32>
  %y = ckopt.mul %es, %ts : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %y : tensor<f32>
}

// -----

// CHECK-LABEL: func.func @step(
// CHECK:         %[[ZERO:.*]] = ckopt.constant dense<0.000000e+00> : tensor<4xf32>
// CHECK-NOT:     ckopt.pad
// CHECK:         ckopt.concat %{{[^,]*}}, %[[ZERO]], %{{[^,]*}} {axis = 0 : i64}
func.func @forward(%p: tensor<6xf32> {ckopt.role = "parameter"}) -> tensor<f32> {
  %a = ckopt.slice %p {starts = array<i64: 0>, sizes = array<i64: 1>, steps = array<i64: 1>} : (tensor<6xf32>) -> tensor<1xf32>
  %b = ckopt.slice %p {starts = array<i64: 5>, sizes = array<i64: 1>, steps = array<i64: 1>} : (tensor<6xf32>) -> tensor<1xf32>
  %m = ckopt.mul %a, %b : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  %y = ckopt.reshape %m : (tensor<1xf32>) -> tensor<f32>
  return %y : tensor<f32>
}

// -----

// CHECK-LABEL: func.func @step(
// CHECK:         ckopt.pad
// CHECK:         ckopt.pad
// CHECK:         ckopt.add
func.func @forward(%p: tensor<6xf32> {ckopt.role = "parameter"}) -> tensor<f32> {
  %a = ckopt.slice %p {starts = array<i64: 0>, sizes = array<i64: 4>, steps = array<i64: 1>} : (tensor<6xf32>) -> tensor<4xf32>
  %b = ckopt.slice %p {starts = array<i64: 2>, sizes = array<i64: 4>, steps = array<i64: 1>} : (tensor<6xf32>) -> tensor<4xf32>
  %m = ckopt.mul %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y = ckopt.reduce sum %m {axes = array<i64: 0>, keepdims = false} : (tensor<4xf32>) -> tensor<f32>
  return %y : tensor<f32>
}
