// A batch norm whose scale and bias are frozen uses its running statistics in
// training, which nothing updates any more; one that is trained stays as it is. Where
// scale and bias are constants, the running statistics say whose they are.
// RUN: ckopt-opt %s --freeze-norms | FileCheck %s

// CHECK-LABEL: func.func @forward(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<4x3xf32>
// CHECK-SAME:    %[[MEAN:[^:]*]]: tensor<3xf32> {ckopt.name = "a.mean"
// CHECK-SAME:    %[[VAR:[^:]*]]: tensor<3xf32> {ckopt.name = "a.var"
// CHECK-SAME:    %[[CMEAN:[^:]*]]: tensor<3xf32> {ckopt.frozen, ckopt.name = "c.mean"
// CHECK-SAME:    -> (tensor<4x3xf32> {ckopt.name = "y"}, tensor<3xf32> {ckopt.updates = 6 : i64}, tensor<3xf32> {ckopt.updates = 7 : i64})
// CHECK:         ckopt.batch_norm_inference %[[X]], %{{.*}}, %{{.*}}, %[[MEAN]], %[[VAR]]
// CHECK:         ckopt.batch_norm %
// CHECK:         ckopt.moving_average
// CHECK:         ckopt.moving_average
// CHECK:         ckopt.batch_norm_inference %{{.*}}, %[[CMEAN]]
// CHECK-NOT:     ckopt.moving_average
// CHECK:         return
func.func @forward(
    %x: tensor<4x3xf32> {ckopt.role = "input"},
    %as: tensor<3xf32> {ckopt.role = "frozen"},
    %am: tensor<3xf32> {ckopt.name = "a.mean", ckopt.role = "state"},
    %av: tensor<3xf32> {ckopt.name = "a.var", ckopt.role = "state"},
    %bs: tensor<3xf32> {ckopt.role = "parameter"}, %bb: tensor<3xf32> {ckopt.role = "frozen"},
    %bm: tensor<3xf32> {ckopt.role = "state"}, %bv: tensor<3xf32> {ckopt.role = "state"},
    %cm: tensor<3xf32> {ckopt.frozen, ckopt.name = "c.mean", ckopt.role = "state"},
    %cv: tensor<3xf32> {ckopt.role = "state"})
    -> (tensor<4x3xf32> {ckopt.name = "y"},
        tensor<3xf32> {ckopt.updates = 2 : i64}, tensor<3xf32> {ckopt.updates = 3 : i64},
        tensor<3xf32> {ckopt.updates = 6 : i64}, tensor<3xf32> {ckopt.updates = 7 : i64},
        tensor<3xf32> {ckopt.updates = 8 : i64}, tensor<3xf32> {ckopt.updates = 9 : i64}) {
  %a:3 = ckopt.batch_norm %x, %as, %as {epsilon = 1.0e-5} : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>)
  %nam = ckopt.moving_average %am, %a#1 {momentum = 0.9} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %nav = ckopt.moving_average %av, %a#2 {momentum = 0.9} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %b:3 = ckopt.batch_norm %a#0, %bs, %bb {epsilon = 1.0e-5} : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>)
  %nbm = ckopt.moving_average %bm, %b#1 {momentum = 0.9} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %nbv = ckopt.moving_average %bv, %b#2 {momentum = 0.9} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %one = ckopt.constant dense<1.0> : tensor<3xf32>
  %c:3 = ckopt.batch_norm %b#0, %one, %one {epsilon = 1.0e-5} : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>)
  %ncm = ckopt.moving_average %cm, %c#1 {momentum = 0.9} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %ncv = ckopt.moving_average %cv, %c#2 {momentum = 0.9} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %c#0, %nam, %nav, %nbm, %nbv, %ncm, %ncv : tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
}
