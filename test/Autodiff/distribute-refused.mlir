// Steps whose ranks would not end with the same numbers are refused.
// RUN: ckopt-opt %s --split-input-file --verify-diagnostics --distribute=ranks=2

// Samples are spread over two dimensions.
func.func @step(%x: tensor<4x8xf32> {ckopt.name = "x", ckopt.role = "input"}, %seed: tensor<i64>, %step: tensor<i64>) -> tensor<2x4x4xf32> {
  %t = ckopt.reshape %x : (tensor<4x8xf32>) -> tensor<2x4x4xf32>
  // expected-error @+1 {{draws random numbers for 'tensor<2x4x4xf32>', of which it is not known where the 4 samples of a rank lie}}
  %0 = ckopt.dropout %t, %seed, %step {ratio = 0.25 : f64, site = 1 : i64} : (tensor<2x4x4xf32>, tensor<i64>, tensor<i64>) -> tensor<2x4x4xf32>
  return %0 : tensor<2x4x4xf32>
}

// -----

func.func @step(%seed: tensor<i64>, %step: tensor<i64>) -> tensor<4xf32> {
  // expected-error @+1 {{draws random numbers of which it is not known whether each sample has its own}}
  %0 = ckopt.random normal %seed, %step {site = 1 : i64} : (tensor<i64>, tensor<i64>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @step(%s: tensor<4xf32> {ckopt.name = "s", ckopt.role = "state"}, %x: tensor<4xf32> {ckopt.name = "x", ckopt.role = "input"})
    -> (tensor<4xf32> {ckopt.name = "s", ckopt.updates = 0 : i64}) {
  // expected-error @+1 {{makes a new value of a state (ckopt.assign) of samples}}
  %0 = ckopt.assign %s, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Attention's scores are drawn in fours.
func.func @step(%x: tensor<1x1x3x4xf32> {ckopt.name = "x", ckopt.role = "input"}, %seed: tensor<i64>, %step: tensor<i64>) -> tensor<1x1x3x4xf32> {
  // expected-error @+1 {{draws 9 numbers for a rank's samples, which come in fours: choose another --batch}}
  %0, %1 = ckopt.attention %x, %x, %x dropout %seed, %step {scale = 1.0 : f64, ratio = 0.25 : f64, site = 1 : i64} : (tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>, tensor<i64>, tensor<i64>) -> (tensor<1x1x3x4xf32>, tensor<1x1x3x2xf32>)
  return %0 : tensor<1x1x3x4xf32>
}

// -----

// Edges of a graph count the nodes of the whole batch.
func.func @step(%x: tensor<4x8xf32> {ckopt.name = "x", ckopt.role = "input"}, %edges: tensor<6xi64> {ckopt.name = "edges", ckopt.role = "input"}) -> tensor<6x8xf32> {
  // expected-error @+1 {{takes samples by their number in the batch, from the input 'edges': a rank has its part of the batch alone}}
  %0 = ckopt.gather %x, %edges {axis = 0 : i64} : (tensor<4x8xf32>, tensor<6xi64>) -> tensor<6x8xf32>
  return %0 : tensor<6x8xf32>
}

// -----

// A state that stays as it is, is the same on all ranks.
func.func @step(%s: tensor<4xf32> {ckopt.name = "s", ckopt.role = "state"})
    -> (tensor<4xf32> {ckopt.name = "s", ckopt.updates = 0 : i64}) {
  return %s : tensor<4xf32>
}
