// A loss that the model computes has no shares; means are those of all ranks.
// RUN: ckopt-opt %s --split-input-file --verify-diagnostics "--attach-loss=loss=output ranks=2"

// expected-error @+1 {{the model computes the loss 'l' itself}}
func.func @forward(%p: tensor<f32> {ckopt.name = "p", ckopt.role = "parameter"})
    -> (tensor<f32> {ckopt.name = "l"}) {
  return %p : tensor<f32>
}
