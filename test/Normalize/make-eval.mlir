// Evaluation: dropout is gone, batch norm reads the running statistics, updates
// are dropped, and the arguments stay as they are.
// RUN: ckopt-opt %s --make-eval | FileCheck %s

// CHECK-LABEL: func.func @forward(
// CHECK:         ckopt.dropout
// CHECK:         ckopt.moving_average
// CHECK-LABEL: func.func @eval(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<4x3xf32> {ckopt.name = "x"}
// CHECK-SAME:    %[[S:[^:]*]]: tensor<3xf32>
// CHECK-SAME:    %[[MEAN:[^:]*]]: tensor<3xf32> {ckopt.role = "state"}
// CHECK-SAME:    %[[VAR:[^:]*]]: tensor<3xf32> {ckopt.role = "state"}
// CHECK-SAME:    -> (tensor<4x3xf32> {ckopt.name = "y"}) {
// CHECK-NEXT:    %[[Y:.*]] = ckopt.batch_norm_inference %[[X]], %[[S]], %[[S]], %[[MEAN]], %[[VAR]]
// CHECK-NEXT:    return %[[Y]]
func.func @forward(
    %x: tensor<4x3xf32> {ckopt.name = "x"}, %s: tensor<3xf32>,
    %mean: tensor<3xf32> {ckopt.role = "state"},
    %var: tensor<3xf32> {ckopt.role = "state"},
    %seed: tensor<i64>, %step: tensor<i64>)
    -> (tensor<4x3xf32> {ckopt.name = "y"}, tensor<3xf32> {ckopt.updates = 2 : i64}, tensor<3xf32> {ckopt.updates = 3 : i64}) {
  %d = ckopt.dropout %x, %seed, %step {ratio = 0.5, site = 0 : i64} : (tensor<4x3xf32>, tensor<i64>, tensor<i64>) -> tensor<4x3xf32>
  %y, %m, %v = ckopt.batch_norm %d, %s, %s {epsilon = 1.0e-5} : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>)
  %nm = ckopt.moving_average %mean, %m {momentum = 0.9} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %nv = ckopt.moving_average %var, %v {momentum = 0.9} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %y, %nm, %nv : tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>
}
