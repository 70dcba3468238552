// Samples that lie inside of dimension 0, in time steps that each hold all of them: the rank gathers what one process draws for its samples, from each step.
// RUN: ckopt-opt %s --distribute=ranks=2 | FileCheck %s

// CHECK-LABEL: func.func @step(
// CHECK: ckopt.dropout %{{.*}} : (tensor<12x8xf32>, tensor<i64>, tensor<i64>) -> tensor<12x8xf32>
// CHECK: %[[OWN:.*]] = ckopt.iota {axis = 0 : i64} : tensor<6xi64>
// CHECK: %[[TWO:.*]] = ckopt.constant dense<2> : tensor<i64>
// CHECK: %[[STEP:.*]] = ckopt.div %[[OWN]], %[[TWO]]
// CHECK: ckopt.mul %[[STEP]]
// CHECK: ckopt.gather %{{.*}} {axis = 0 : i64} : (tensor<12x8xf32>, tensor<6xi64>) -> tensor<6x8xf32>
func.func @step(%x: tensor<2x3x8xf32> {ckopt.name = "x", ckopt.role = "input"}, %seed: tensor<i64>, %step: tensor<i64>) -> tensor<6x8xf32> {
  %t = ckopt.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<2x3x8xf32>) -> tensor<3x2x8xf32>
  %rows = ckopt.reshape %t : (tensor<3x2x8xf32>) -> tensor<6x8xf32>
  %0 = ckopt.dropout %rows, %seed, %step {ratio = 0.25 : f64, site = 1 : i64} : (tensor<6x8xf32>, tensor<i64>, tensor<i64>) -> tensor<6x8xf32>
  return %0 : tensor<6x8xf32>
}
