// Only what lies between the chosen arguments and the loss is differentiated:
// `wrt` names arguments of any role, outputs besides the loss go, updates stay.
// RUN: ckopt-opt %s --autodiff="wrt=x" | FileCheck %s
// RUN: ckopt-opt %s --autodiff="result=grads" | FileCheck %s --check-prefix=ALL

// CHECK-LABEL: func.func @step(
// CHECK-SAME:    -> (tensor<f32> {ckopt.name = "loss"}, tensor<2xf32> {ckopt.gradient = 0 : i64, ckopt.name = "grad/x"}, tensor<2xf32> {ckopt.updates = 2 : i64})
// CHECK-NOT:     ckopt.exp

// ALL-LABEL: func.func @grads(
// ALL-SAME:    "grad/p"
// ALL-SAME:    "grad/arg3"
func.func @forward(
    %x: tensor<2xf32> {ckopt.name = "x", ckopt.role = "input"},
    %p: tensor<2xf32> {ckopt.name = "p", ckopt.role = "parameter"},
    %old: tensor<2xf32> {ckopt.name = "old", ckopt.role = "state"},
    %q: tensor<2xf32> {ckopt.grad})
    -> (tensor<2xf32>, tensor<f32> {ckopt.name = "loss"}, tensor<2xf32> {ckopt.updates = 2 : i64}) {
  %unused = ckopt.exp %p : (tensor<2xf32>) -> tensor<2xf32>
  %m = ckopt.mul %x, %p : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %s = ckopt.sub %m, %q : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %loss = ckopt.reduce sum %s {axes = array<i64: 0>, keepdims = false} : (tensor<2xf32>) -> tensor<f32>
  %new = ckopt.moving_average %old, %x {momentum = 0.9} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %unused, %loss, %new : tensor<2xf32>, tensor<f32>, tensor<2xf32>
}
