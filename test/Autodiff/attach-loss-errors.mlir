// A loss that does not fit the model's outputs is refused with the reason.
// RUN: ckopt-opt %s --split-input-file --verify-diagnostics --attach-loss

// expected-error @+1 {{'forward' ends in a loss already: do not attach another}}
func.func @forward(%x: tensor<f32>) -> (tensor<f32> {ckopt.role = "loss"}) {
  return %x : tensor<f32>
}

// -----

// expected-error @+1 {{cross_entropy needs logits of rank 2 or more ([N, C], [B, T, V], [N, C, ...]), got 'tensor<4xf32>'}}
func.func @forward(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// expected-error @+1 {{the loss needs a floating-point output, but 'ids' is 'tensor<4xi64>'}}
func.func @forward(%x: tensor<4xi64>) -> (tensor<4xi64> {ckopt.name = "ids"}) {
  return %x : tensor<4xi64>
}

// -----

// expected-error @+1 {{no output to take the loss of}}
func.func @forward(%x: tensor<4x2xf32>) -> (tensor<4x2xf32> {ckopt.updates = 0 : i64}) {
  return %x : tensor<4x2xf32>
}
