// One rank alone has its own tensors as sums; a sum over more needs them all.
// RUN: ckopt-opt %s --split-input-file --test-reference --verify-diagnostics -o /dev/null | FileCheck %s

func.func @main() -> (tensor<2xf32>, tensor<f32>) {
  %a = ckopt.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %b = ckopt.constant dense<3.0> : tensor<f32>
  %0:2 = ckopt.all_reduce %a, %b {ranks = 1 : i64} : (tensor<2xf32>, tensor<f32>) -> (tensor<2xf32>, tensor<f32>)
  return %0#0, %0#1 : tensor<2xf32>, tensor<f32>
}
// CHECK: result 0: tensor<2xf32> [1, 2]
// CHECK: result 1: tensor<f32> [3]

// -----

func.func @main() -> tensor<f32> {
  %a = ckopt.constant dense<3.0> : tensor<f32>
  // expected-error @+1 {{is for 2 ranks, which evaluateWorld() runs together}}
  %0 = ckopt.all_reduce %a {ranks = 2 : i64} : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// One rank alone has all rows.
func.func @main() -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %a = ckopt.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = ckopt.all_gather %a {ranks = 1 : i64, rows = array<i64: 2>} : (tensor<2xf32>) -> tensor<2xf32>
  %1 = ckopt.reduce_scatter %a {ranks = 1 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  %2 = ckopt.own_rows %a {ranks = 1 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  %3 = ckopt.broadcast %a {ranks = 1 : i64, root = 0 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  return %0, %1, %2, %3 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}
// CHECK: result 0: tensor<2xf32> [1, 2]
// CHECK: result 1: tensor<2xf32> [1, 2]
// CHECK: result 2: tensor<2xf32> [1, 2]
// CHECK: result 3: tensor<2xf32> [1, 2]

// -----

func.func @main() -> tensor<2xf32> {
  %a = ckopt.constant dense<[1.0, 2.0]> : tensor<2xf32>
  // expected-error @+1 {{is for 4 ranks, which evaluateWorld() runs together}}
  %0 = ckopt.all_reduce %a {ranks = 1 : i64, groups = 4 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// A collective that is started and waited for is the collective.
func.func @main() -> tensor<2xf32> {
  %a = ckopt.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0:2 = ckopt.collective_start %a {collective = "all_reduce", ranks = 1 : i64} : (tensor<2xf32>) -> (tensor<2xf32>, tensor<64xui8>)
  %1 = ckopt.collective_wait %0#0, %0#1, %a {ranks = 1 : i64} : (tensor<2xf32>, tensor<64xui8>, tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
// CHECK: result 0: tensor<2xf32> [1, 2]
