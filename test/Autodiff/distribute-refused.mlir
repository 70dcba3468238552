// Steps whose ranks would not end with the same numbers are refused.
// RUN: ckopt-opt %s --split-input-file --verify-diagnostics --distribute=ranks=2

func.func @step(%x: tensor<3xf32> {ckopt.name = "x", ckopt.role = "input"}, %seed: tensor<i64>, %step: tensor<i64>) -> tensor<3xf32> {
  // expected-error @+1 {{draws 3 numbers for a rank's samples, which come in fours: choose another --batch}}
  %0 = ckopt.dropout %x, %seed, %step {ratio = 0.25 : f64, site = 1 : i64} : (tensor<3xf32>, tensor<i64>, tensor<i64>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @step(%x: tensor<4x8xf32> {ckopt.name = "x", ckopt.role = "input"}, %seed: tensor<i64>, %step: tensor<i64>) -> tensor<2x4x4xf32> {
  %t = ckopt.reshape %x : (tensor<4x8xf32>) -> tensor<2x4x4xf32>
  // expected-error @+1 {{draws random numbers for 'tensor<2x4x4xf32>', whose dimension 0 does not hold the 4 samples of a rank}}
  %0 = ckopt.dropout %t, %seed, %step {ratio = 0.25 : f64, site = 1 : i64} : (tensor<2x4x4xf32>, tensor<i64>, tensor<i64>) -> tensor<2x4x4xf32>
  return %0 : tensor<2x4x4xf32>
}

// -----

func.func @step(%seed: tensor<i64>, %step: tensor<i64>) -> tensor<4xf32> {
  // expected-error @+1 {{draws random numbers that depend on no sample}}
  %0 = ckopt.random normal %seed, %step {site = 1 : i64} : (tensor<i64>, tensor<i64>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @step(%s: tensor<4xf32> {ckopt.name = "s", ckopt.role = "state"}, %x: tensor<4xf32>)
    -> (tensor<4xf32> {ckopt.name = "s", ckopt.updates = 0 : i64}) {
  // expected-error @+1 {{makes a new value of a state (ckopt.assign)}}
  %0 = ckopt.assign %s, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A state that stays as it is, is the same on all ranks.
func.func @step(%s: tensor<4xf32> {ckopt.name = "s", ckopt.role = "state"})
    -> (tensor<4xf32> {ckopt.name = "s", ckopt.updates = 0 : i64}) {
  return %s : tensor<4xf32>
}
