// Ops of other dialects pass through where no gradient flows.
// RUN: ckopt-opt %s --autodiff | FileCheck %s

// CHECK-LABEL: func.func @step(
func.func @forward(
    %x: tensor<f32> {ckopt.name = "x", ckopt.role = "input"},
    %p: tensor<f32> {ckopt.name = "p", ckopt.role = "parameter"}) -> tensor<f32> {
  // CHECK: %[[A:.*]] = arith.addf
  // CHECK: return %{{.*}}, %[[A]]
  %a = arith.addf %x, %x : tensor<f32>
  %y = ckopt.mul %a, %p : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %y : tensor<f32>
}
