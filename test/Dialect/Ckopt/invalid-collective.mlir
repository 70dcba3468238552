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

// -----

func.func @groups(%a: tensor<2xf32>) {
  // expected-error @+2 {{all_reduce has groups of ranks that are 2 apart, and there are 3 of them: no multiple}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.all_reduce %a {ranks = 2 : i64, groups = 3 : i64, stride = 2 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @root(%a: tensor<2xf32>) {
  // expected-error @+2 {{broadcast comes from one of 2 ranks, not from 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.broadcast %a {ranks = 2 : i64, root = 2 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @count_of_rows(%a: tensor<2xf32>) {
  // expected-error @+2 {{all_gather needs the rows of each of 1 results, got 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.all_gather %a {ranks = 2 : i64, rows = array<i64: 4, 4>} : (tensor<2xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @rows(%a: tensor<2xf32>) {
  // expected-error @+2 {{each of 2 ranks has 3 of 5 rows, not 'tensor<2xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.all_gather %a {ranks = 2 : i64, rows = array<i64: 5>} : (tensor<2xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @scalar(%a: tensor<f32>) {
  // expected-error @+2 {{reduce_scatter cuts dimension 0, which 'tensor<f32>' lacks}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.reduce_scatter %a {ranks = 2 : i64} : (tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @scattered_layout(%a: tensor<2x3x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>) {
  // expected-error @+1 {{rows of 'tensor<2x3x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>' lie as it does, got 'tensor<1x3x4x4xf32>'}}
  %0 = ckopt.reduce_scatter %a {ranks = 2 : i64} : (tensor<2x3x4x4xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<1x3x4x4xf32>
  return
}

// -----

func.func @inner_rows(%a: tensor<2x3x4x4xf32, #ckopt.layout<[1, 0, 2, 3]>>) {
  // expected-error @+1 {{rows of 'tensor<2x3x4x4xf32, #ckopt.layout<[1, 0, 2, 3]>>' are not contiguous}}
  %0 = ckopt.own_rows %a {ranks = 2 : i64} : (tensor<2x3x4x4xf32, #ckopt.layout<[1, 0, 2, 3]>>) -> tensor<1x3x4x4xf32, #ckopt.layout<[1, 0, 2, 3]>>
  return
}

// -----

func.func @unknown(%a: tensor<2xf32>) {
  // expected-error @+1 {{starts no collective 'rank'}}
  %0:2 = ckopt.collective_start %a {collective = "rank", ranks = 2 : i64} : (tensor<2xf32>) -> (tensor<2xf32>, tensor<64xui8>)
  return
}

// -----

func.func @no_bytes(%a: tensor<2xf32>) {
  // expected-error @+1 {{has a result for each tensor, and one of the bytes in which it works}}
  %0 = ckopt.collective_start %a {collective = "all_reduce", ranks = 2 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @rows(%a: tensor<2xf32>) {
  // expected-error @+1 {{all_gather of 'tensor<2xf32>' does not give 'tensor<5xf32>'}}
  %0:2 = ckopt.collective_start %a {collective = "all_gather", ranks = 2 : i64} : (tensor<2xf32>) -> (tensor<5xf32>, tensor<0xui8>)
  return
}

// -----

func.func @other(%a: tensor<2xf32>, %s: tensor<64xui8>) {
  // expected-error @+1 {{gives 'tensor<2xf32>' back as it is, not as 'tensor<4xf32>'}}
  %0 = ckopt.collective_wait %a, %s {ranks = 2 : i64} : (tensor<2xf32>, tensor<64xui8>) -> tensor<4xf32>
  return
}
