// Evaluation still draws the random numbers that a model computes with (they are
// its function; dropout is training's), and a batch norm that runs twice in a step
// reads the one pair of running statistics in both places.
// RUN: ckopt-opt %s --split-input-file --make-eval 2>&1 | FileCheck %s

// CHECK-LABEL: func.func @eval(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<4x3xf32>
// CHECK-SAME:    %{{[^:]*}}: tensor<3xf32>
// CHECK-SAME:    %[[MEAN:[^:]*]]: tensor<3xf32> {ckopt.role = "state"}
// CHECK-SAME:    %[[VAR:[^:]*]]: tensor<3xf32> {ckopt.role = "state"}
// CHECK-SAME:    %[[SEED:[^:]*]]: tensor<i64>, %[[STEP:[^:]*]]: tensor<i64>
// CHECK-NOT:     ckopt.dropout
// CHECK:         %[[N:.*]] = ckopt.random normal %[[SEED]], %[[STEP]] {site = 1 : i64}
// CHECK:         ckopt.add %[[X]], %[[N]]
// CHECK:         ckopt.batch_norm_inference {{.*}} %[[MEAN]], %[[VAR]]
// CHECK:         ckopt.batch_norm_inference {{.*}} %[[MEAN]], %[[VAR]]
// CHECK-NOT:     ckopt.moving_average
func.func @forward(
    %x: tensor<4x3xf32>, %s: tensor<3xf32>,
    %mean: tensor<3xf32> {ckopt.role = "state"}, %var: tensor<3xf32> {ckopt.role = "state"},
    %seed: tensor<i64>, %step: tensor<i64>)
    -> (tensor<4x3xf32>, tensor<3xf32> {ckopt.updates = 2 : i64}, tensor<3xf32> {ckopt.updates = 3 : i64}) {
  %d = ckopt.dropout %x, %seed, %step {ratio = 0.5, site = 0 : i64} : (tensor<4x3xf32>, tensor<i64>, tensor<i64>) -> tensor<4x3xf32>
  %n = ckopt.random normal %seed, %step {site = 1 : i64} : (tensor<i64>, tensor<i64>) -> tensor<4x3xf32>
  %z = ckopt.add %d, %n : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %a:3 = ckopt.batch_norm %z, %s, %s {epsilon = 1.0e-5} : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>)
  %am = ckopt.moving_average %mean, %a#1 {momentum = 0.9} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %av = ckopt.moving_average %var, %a#2 {momentum = 0.9} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %b:3 = ckopt.batch_norm %a#0, %s, %s {epsilon = 1.0e-5} : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>)
  %bm = ckopt.moving_average %am, %b#1 {momentum = 0.9} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %bv = ckopt.moving_average %av, %b#2 {momentum = 0.9} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %b#0, %bm, %bv : tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>
}

// -----

// The factor 1/p with probability p is a dropout, of whole channels here, and is 1
// in evaluation; a quotient by another number is the model's own.
// CHECK-LABEL: func.func @eval(
// CHECK:         %[[ONE:.*]] = ckopt.constant dense<1.000000e+00> : tensor<4x3x1x1xf32>
// CHECK:         ckopt.mul %{{.*}}, %[[ONE]]
// CHECK:         ckopt.random uniform {{.*}} {site = 1 : i64}
// CHECK-NOT:     ckopt.random
func.func @forward(%x: tensor<4x3x5x5xf32>, %seed: tensor<i64>, %step: tensor<i64>) -> tensor<4x3x5x5xf32> {
  %p = ckopt.constant dense<0.75> : tensor<f32>
  %q = ckopt.constant dense<0.5> : tensor<f32>
  %u = ckopt.random uniform %seed, %step {site = 0 : i64} : (tensor<i64>, tensor<i64>) -> tensor<4x3x1x1xf32>
  %b = ckopt.compare lt %u, %p : (tensor<4x3x1x1xf32>, tensor<f32>) -> tensor<4x3x1x1xi1>
  %c = ckopt.cast %b : (tensor<4x3x1x1xi1>) -> tensor<4x3x1x1xf32>
  %f = ckopt.div %c, %p : (tensor<4x3x1x1xf32>, tensor<f32>) -> tensor<4x3x1x1xf32>
  %y = ckopt.mul %x, %f : (tensor<4x3x5x5xf32>, tensor<4x3x1x1xf32>) -> tensor<4x3x5x5xf32>
  %v = ckopt.random uniform %seed, %step {site = 1 : i64} : (tensor<i64>, tensor<i64>) -> tensor<4x3x1x1xf32>
  %d = ckopt.compare lt %v, %p : (tensor<4x3x1x1xf32>, tensor<f32>) -> tensor<4x3x1x1xi1>
  %e = ckopt.cast %d : (tensor<4x3x1x1xi1>) -> tensor<4x3x1x1xf32>
  %g = ckopt.div %e, %q : (tensor<4x3x1x1xf32>, tensor<f32>) -> tensor<4x3x1x1xf32>
  %z = ckopt.mul %y, %g : (tensor<4x3x5x5xf32>, tensor<4x3x1x1xf32>) -> tensor<4x3x5x5xf32>
  return %z : tensor<4x3x5x5xf32>
}
