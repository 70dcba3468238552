// A loss that does not fit the model's outputs is refused with the reason.
// RUN: ckopt-opt %s --split-input-file --verify-diagnostics --attach-loss

// expected-error @+1 {{the model has no output that --loss=cross_entropy could take: 'result0' is one number, a loss already; leave out --loss, or give --loss=output:result0}}
func.func @forward(%x: tensor<f32>) -> (tensor<f32> {ckopt.role = "loss"}) {
  return %x : tensor<f32>
}

// -----

// expected-error @+1 {{classes need scores of rank 2 or more ([N, C], [B, T, V], [N, C, ...]), got [4]}}
func.func @forward(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// expected-error @+1 {{a loss needs a floating-point output, and outputs are 'ids' i64 [4]}}
func.func @forward(%x: tensor<4xi64>) -> (tensor<4xi64> {ckopt.name = "ids"}) {
  return %x : tensor<4xi64>
}

// -----

// expected-error @+1 {{no output to take the loss of}}
func.func @forward(%x: tensor<4x2xf32>) -> (tensor<4x2xf32> {ckopt.updates = 0 : i64}) {
  return %x : tensor<4x2xf32>
}

// -----

// Targets [4, 6] fit classes along axis 1 and along axis 2: other numbers.
// expected-error @+1 {{logits of shape [4, 6, 6] could have their classes along axis 1 or along axis 2, with targets of shape [4, 6] either way; say which: --class-axis=1 as PyTorch takes them}}
func.func @forward(%x: tensor<4x6x6xf32>) -> tensor<4x6x6xf32> {
  return %x : tensor<4x6x6xf32>
}
