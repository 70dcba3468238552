// With several ranks, what an attached loss reads must be made of each sample alone; the first op that mixes samples is named.
// RUN: ckopt-opt %s --split-input-file --verify-diagnostics "--attach-loss=loss=mse ranks=2"

// Time steps that each hold all samples, and the last state of each sequence, keep samples apart.
func.func @forward(%x: tensor<4x3x8xf32> {ckopt.name = "x", ckopt.role = "input"}, %w: tensor<8x8xf32> {ckopt.name = "w", ckopt.role = "parameter"},
    %lengths: tensor<4xi64> {ckopt.name = "lengths", ckopt.role = "input"}) -> (tensor<4x8xf32> {ckopt.name = "y"}) {
  %t = ckopt.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<4x3x8xf32>) -> tensor<3x4x8xf32>
  %rows = ckopt.reshape %t : (tensor<3x4x8xf32>) -> tensor<12x8xf32>
  %h = ckopt.matmul %rows, %w : (tensor<12x8xf32>, tensor<8x8xf32>) -> tensor<12x8xf32>
  %steps = ckopt.reshape %h : (tensor<12x8xf32>) -> tensor<3x4x8xf32>
  %u = ckopt.transpose %steps {permutation = array<i64: 1, 0, 2>} : (tensor<3x4x8xf32>) -> tensor<4x3x8xf32>
  %flat = ckopt.reshape %u : (tensor<4x3x8xf32>) -> tensor<12x8xf32>
  %first = ckopt.constant dense<[0, 3, 6, 9]> : tensor<4xi64>
  %at = ckopt.add %lengths, %first : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
  %y = ckopt.gather %flat, %at {axis = 0 : i64} : (tensor<12x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// The same numbers of rows, a step too short: sample 1 reads rows of sample 0.
func.func @forward(%x: tensor<4x3x8xf32> {ckopt.name = "x", ckopt.role = "input"}, %lengths: tensor<4xi64> {ckopt.name = "lengths", ckopt.role = "input"})
    -> (tensor<4x8xf32> {ckopt.name = "y"}) {
  %flat = ckopt.reshape %x : (tensor<4x3x8xf32>) -> tensor<12x8xf32>
  %first = ckopt.constant dense<[0, 2, 4, 6]> : tensor<4xi64>
  // expected-error @+1 {{ckopt.add is not known to keep samples apart, and the loss reads 'y', which is made of them: each of 2 ranks has its part of the batch alone}}
  %at = ckopt.add %lengths, %first : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
  %y = ckopt.gather %flat, %at {axis = 0 : i64} : (tensor<12x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// Centered by the mean over the batch: the mean mixes, not what reads it.
func.func @forward(%x: tensor<4x8xf32> {ckopt.name = "x", ckopt.role = "input"}) -> (tensor<4x8xf32> {ckopt.name = "y"}) {
  // expected-error @+1 {{ckopt.reduce is not known to keep samples apart, and the loss reads 'y'}}
  %m = ckopt.reduce mean %x {axes = array<i64: 0>, keepdims = true} : (tensor<4x8xf32>) -> tensor<1x8xf32>
  %y = ckopt.sub %x, %m : (tensor<4x8xf32>, tensor<1x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// A sample's number in the batch is another one on each rank.
func.func @forward(%x: tensor<4x8xf32> {ckopt.name = "x", ckopt.role = "input"}) -> (tensor<4x8xf32> {ckopt.name = "y"}) {
  %n = ckopt.iota {axis = 0 : i64} : tensor<4x1xf32>
  // expected-error @+1 {{ckopt.mul is not known to keep samples apart}}
  %y = ckopt.mul %x, %n : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// Triangles are cut by the place of a sample.
func.func @forward(%x: tensor<4x4xf32> {ckopt.name = "x", ckopt.role = "input"}) -> (tensor<4x4xf32> {ckopt.name = "y"}) {
  // expected-error @+1 {{ckopt.trilu is not known to keep samples apart}}
  %y = ckopt.trilu %x {upper = false} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

// Noise of which no sample has its own.
func.func @forward(%x: tensor<4x8xf32> {ckopt.name = "x", ckopt.role = "input"}, %seed: tensor<i64>, %step: tensor<i64>) -> (tensor<4x8xf32> {ckopt.name = "y"}) {
  // expected-error @+1 {{ckopt.random draws random numbers of which it is not known whether each sample has its own}}
  %n = ckopt.random normal %seed, %step {site = 1 : i64} : (tensor<i64>, tensor<i64>) -> tensor<8x8xf32>
  %y = ckopt.matmul %x, %n : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

func.func @forward(%x: tensor<4x3xf32> {ckopt.name = "x", ckopt.role = "input"}) -> (tensor<3x4xf32> {ckopt.name = "y"}) {
  // expected-error @+1 {{whose samples do not lie along dimension 0 alone}}
  %y = ckopt.transpose %x {permutation = array<i64: 1, 0>} : (tensor<4x3xf32>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// -----

// An op that does not say what a place along its result's axes reads.
func.func @forward(%x: tensor<4x8xf32> {ckopt.name = "x", ckopt.role = "input"}, %w: tensor<8x8xf32> {ckopt.name = "w", ckopt.role = "parameter"})
    -> (tensor<4x8xf32> {ckopt.name = "y"}) {
  // expected-error @+1 {{ckopt.matmul_add has no rule that says whether it keeps samples apart (SampleAxisOpInterface), and the loss reads 'y'}}
  %y = ckopt.matmul_add %x, %w, %x : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
