// A batch norm without running statistics is pointed at; a taken name is an error.
// RUN: ckopt-opt %s --split-input-file --verify-diagnostics --make-eval

func.func @forward(%x: tensor<4x3xf32>, %s: tensor<3xf32>) -> tensor<4x3xf32> {
  // expected-remark @+1 {{evaluation normalizes with the statistics of the batch: no argument tracks running ones}}
  %y, %m, %v = ckopt.batch_norm %x, %s, %s {epsilon = 1.0e-5} : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return %y : tensor<4x3xf32>
}

// -----

// Random numbers that are no dropout are said.
func.func @forward(%x: tensor<4xf32>, %seed: tensor<i64>, %step: tensor<i64>) -> tensor<4xf32> {
  // expected-remark @+1 {{evaluation draws the random numbers of the model, too}}
  %n = ckopt.random normal %seed, %step {site = 0 : i64} : (tensor<i64>, tensor<i64>) -> tensor<4xf32>
  %y = ckopt.add %x, %n : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @eval() { return }
// expected-error @+1 {{the module has a 'eval' already}}
func.func @forward() { return }

// -----

// expected-error @+1 {{no function 'forward'}}
module {
}
