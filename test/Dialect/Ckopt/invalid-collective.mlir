// Every check of ops of several ranks reports what is wrong.
// RUN: ckopt-opt %s --split-input-file --verify-diagnostics

func.func @no_ranks(%a: tensor<2xf32>) {
  // expected-error @+2 {{all_reduce needs 1 rank or more, got 0}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.all_reduce %a {ranks = 0 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @types(%a: tensor<2xf32>, %b: tensor<2xf64>) {
  // expected-error @+2 {{operands must have one element type, got 'tensor<2xf32>' and 'tensor<2xf64>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = ckopt.all_reduce %a, %b {ranks = 2 : i64} : (tensor<2xf32>, tensor<2xf64>) -> (tensor<2xf32>, tensor<2xf64>)
  return
}

// -----

func.func @layouts(%a: tensor<2x3x4x4xf32>) {
  // expected-error @+1 {{sums of 'tensor<2x3x4x4xf32>' have its type, got 'tensor<2x3x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>'}}
  %0 = ckopt.all_reduce %a {ranks = 2 : i64} : (tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>
  return
}
