// What a running statistic learns is the mean over ranks; two gradients that are
// one value travel once; buckets hold one element type.
// RUN: ckopt-opt %s --distribute=ranks=4 | FileCheck %s

// CHECK-LABEL: func.func @step(
// CHECK-SAME: %[[S:[^:]*]]: tensor<3xf32>
// CHECK: %[[MEAN:.*]] = ckopt.reduce {{ *}}mean
// CHECK: %[[QUARTER:.*]] = ckopt.constant {{.*}}2.500000e-01
// CHECK: %[[SHARE:.*]] = ckopt.mul %[[MEAN]], %[[QUARTER]]
// CHECK: %[[LEARNT:.*]] = ckopt.all_reduce %[[SHARE]] {ranks = 4 : i64} : (tensor<3xf32>) -> tensor<3xf32>
// CHECK: %[[NEW:.*]] = ckopt.moving_average %[[S]], %[[LEARNT]]
// CHECK: %[[WIDE:.*]] = ckopt.all_reduce %{{.*}} {ranks = 4 : i64} : (tensor<2xf64>) -> tensor<2xf64>
// CHECK: return %{{.*}}, %[[G:.*]], %[[G]], %[[WIDE]], %[[NEW]]
func.func @step(
    %x: tensor<4x3xf32> {ckopt.name = "x", ckopt.role = "input"},
    %s: tensor<3xf32> {ckopt.name = "s", ckopt.role = "state"},
    %v: tensor<2xf64> {ckopt.name = "v", ckopt.role = "parameter"})
    -> (tensor<f32> {ckopt.name = "loss", ckopt.role = "loss"},
        tensor<3xf32> {ckopt.name = "grad/a", ckopt.gradient = 1 : i64},
        tensor<3xf32> {ckopt.name = "grad/b", ckopt.gradient = 1 : i64},
        tensor<2xf64> {ckopt.name = "grad/v", ckopt.gradient = 2 : i64},
        tensor<3xf32> {ckopt.name = "s", ckopt.updates = 1 : i64}) {
  %mean = ckopt.reduce mean %x {axes = array<i64: 0>, keepdims = false} : (tensor<4x3xf32>) -> tensor<3xf32>
  %new = ckopt.moving_average %s, %mean {momentum = 0.9 : f64} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %loss = ckopt.reduce sum %mean {axes = array<i64: 0>, keepdims = false} : (tensor<3xf32>) -> tensor<f32>
  %g = ckopt.exp %mean : (tensor<3xf32>) -> tensor<3xf32>
  %gv = ckopt.exp %v : (tensor<2xf64>) -> tensor<2xf64>
  return %loss, %g, %g, %gv, %new : tensor<f32>, tensor<3xf32>, tensor<3xf32>, tensor<2xf64>, tensor<3xf32>
}
