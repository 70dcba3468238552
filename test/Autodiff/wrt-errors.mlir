// Unknown names in `wrt` are listed together.
// RUN: ckopt-opt %s --verify-diagnostics --autodiff="wrt=p,w1,w2"

// expected-error @+1 {{no argument is named w1, w2}}
func.func @forward(%p: tensor<f32> {ckopt.name = "p"}) -> tensor<f32> {
  return %p : tensor<f32>
}
