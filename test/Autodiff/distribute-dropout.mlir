// A dropout of samples reads a step with the rank's number in its upper half, and
// so does its gradient; one of weights draws the same on all ranks, though its
// gradient depends on samples.
// RUN: ckopt-opt %s --distribute=ranks=2 | FileCheck %s

// CHECK-LABEL: func.func @step(
// CHECK-SAME: %[[X:[^:]*]]: tensor<4x8xf32> {ckopt.name = "x"
// CHECK-SAME: %[[W:[^:]*]]: tensor<8xf32>
// CHECK-SAME: %[[SEED:[^:]*]]: tensor<i64> {ckopt.name = "seed"
// CHECK-SAME: %[[STEP:[^:]*]]: tensor<i64> {ckopt.name = "step"
// CHECK: ckopt.dropout %[[W]], %[[SEED]], %[[STEP]] {ratio = 2.500000e-01 : f64, site = 1 : i64}
// CHECK: %[[RANK:.*]] = ckopt.rank {ranks = 2 : i64} : tensor<i64>
// CHECK: %[[HALF:.*]] = ckopt.constant dense<4294967296> : tensor<i64>
// CHECK: %[[UPPER:.*]] = ckopt.mul %[[RANK]], %[[HALF]]
// CHECK: %[[NUMBER:.*]] = ckopt.add %[[STEP]], %[[UPPER]]
// CHECK: ckopt.dropout %[[X]], %[[SEED]], %[[NUMBER]] {ratio = 2.500000e-01 : f64, site = 2 : i64}
// CHECK: ckopt.dropout %{{.*}}, %[[SEED]], %[[NUMBER]] {ratio = 2.500000e-01 : f64, site = 2 : i64}
// CHECK: ckopt.dropout %{{.*}}, %[[SEED]], %[[STEP]] {ratio = 2.500000e-01 : f64, site = 1 : i64}
func.func @step(
    %x: tensor<4x8xf32> {ckopt.name = "x", ckopt.role = "input"},
    %w: tensor<8xf32> {ckopt.name = "w", ckopt.role = "parameter"},
    %seed: tensor<i64> {ckopt.name = "seed", ckopt.role = "seed"},
    %step: tensor<i64> {ckopt.name = "step", ckopt.role = "step"})
    -> (tensor<4x8xf32> {ckopt.name = "loss"}, tensor<8xf32> {ckopt.name = "grad/w", ckopt.gradient = 1 : i64}) {
  %dw = ckopt.dropout %w, %seed, %step {ratio = 0.25 : f64, site = 1 : i64} : (tensor<8xf32>, tensor<i64>, tensor<i64>) -> tensor<8xf32>
  %dx = ckopt.dropout %x, %seed, %step {ratio = 0.25 : f64, site = 2 : i64} : (tensor<4x8xf32>, tensor<i64>, tensor<i64>) -> tensor<4x8xf32>
  %y = ckopt.mul %dx, %dw : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %g = ckopt.dropout %y, %seed, %step {ratio = 0.25 : f64, site = 2 : i64} : (tensor<4x8xf32>, tensor<i64>, tensor<i64>) -> tensor<4x8xf32>
  %s = ckopt.reduce sum %g {axes = array<i64: 0>, keepdims = false} : (tensor<4x8xf32>) -> tensor<8xf32>
  %gw = ckopt.dropout %s, %seed, %step {ratio = 0.25 : f64, site = 1 : i64} : (tensor<8xf32>, tensor<i64>, tensor<i64>) -> tensor<8xf32>
  return %y, %gw : tensor<4x8xf32>, tensor<8xf32>
}
