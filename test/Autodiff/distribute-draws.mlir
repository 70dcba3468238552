// Three numbers a sample are no blocks of four: the numbers of all samples are
// drawn, and the rank gathers its own, for the gradient's dropout, too.
// RUN: ckopt-opt %s --distribute=ranks=2 | FileCheck %s

// CHECK-LABEL: func.func @step(
// CHECK-SAME: %[[X:[^:]*]]: tensor<1x3xf32> {ckopt.name = "x"
// CHECK: %[[ONES:.*]] = ckopt.constant {{.*}} : tensor<2x3xf32>
// CHECK: %[[ALL:.*]] = ckopt.dropout %[[ONES]], %{{.*}}, %{{.*}} {ratio = 2.500000e-01 : f64, site = 1 : i64} : (tensor<2x3xf32>
// CHECK: ckopt.rank {ranks = 2 : i64}
// CHECK: %[[OWN:.*]] = ckopt.gather %[[ALL]], %{{.*}} {axis = 0 : i64} : (tensor<2x3xf32>, tensor<1xi64>) -> tensor<1x3xf32>
// CHECK: %[[Y:.*]] = ckopt.mul %[[X]], %[[OWN]]
// CHECK: ckopt.mul %[[Y]], %[[OWN]]
// CHECK-NOT: ckopt.dropout
func.func @step(
    %x: tensor<1x3xf32> {ckopt.name = "x", ckopt.role = "input"},
    %seed: tensor<i64> {ckopt.name = "seed", ckopt.role = "seed"},
    %step: tensor<i64> {ckopt.name = "step", ckopt.role = "step"})
    -> (tensor<1x3xf32> {ckopt.name = "loss"}) {
  %y = ckopt.dropout %x, %seed, %step {ratio = 0.25 : f64, site = 1 : i64} : (tensor<1x3xf32>, tensor<i64>, tensor<i64>) -> tensor<1x3xf32>
  %g = ckopt.dropout %y, %seed, %step {ratio = 0.25 : f64, site = 1 : i64} : (tensor<1x3xf32>, tensor<i64>, tensor<i64>) -> tensor<1x3xf32>
  return %g : tensor<1x3xf32>
}
