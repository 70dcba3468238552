// An op that reads a differentiated value inside of a region is refused: no rule
// would see it, and the gradient would lack a part.
// RUN: ckopt-opt %s --allow-unregistered-dialect --verify-diagnostics --autodiff

// expected-error @+1 {{1 operation(s) cannot be differentiated}}
func.func @forward(%p: tensor<f32> {ckopt.name = "p", ckopt.role = "parameter"},
                   %q: tensor<f32> {ckopt.name = "q", ckopt.role = "parameter"}) -> tensor<f32> {
  %e = ckopt.exp %p : (tensor<f32>) -> tensor<f32>
  // expected-note @+1 {{'other.region' has no gradient rule; needed for the gradient of 'p'}}
  %r = "other.region"() ({
    "other.yield"(%e) : (tensor<f32>) -> ()
  }) : () -> tensor<f32>
  %y = ckopt.mul %r, %q : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %y : tensor<f32>
}
