// What cannot be differentiated is said at once, with the nodes and what needs
// them; so are wrong losses and arguments.
// RUN: ckopt-opt %s --split-input-file --verify-diagnostics --autodiff

// expected-error @+1 {{2 operation(s) cannot be differentiated}}
func.func @forward(
    %p: tensor<f32> {ckopt.name = "p", ckopt.role = "parameter"},
    %q: tensor<f32> {ckopt.name = "q", ckopt.role = "parameter"}) -> tensor<f32> {
  // expected-note @+1 {{'arith.negf' has no gradient rule; needed for the gradient of 'p'}}
  %a = arith.negf %p : tensor<f32>
  %b = ckopt.mul %a, %q : (tensor<f32>, tensor<f32>) -> tensor<f32>
  // expected-note @+1 {{'arith.mulf' has no gradient rule; needed for the gradient of 'p', 'q'}}
  %c = arith.mulf %b, %b : tensor<f32>
  return %c : tensor<f32>
}

// -----

// expected-error @+1 {{the loss must be a floating-point scalar, but result 'logits' is 'tensor<4xf32>'; attach a loss}}
func.func @forward(%p: tensor<4xf32> {ckopt.role = "parameter"})
    -> (tensor<4xf32> {ckopt.name = "logits"}) {
  return %p : tensor<4xf32>
}

// -----

// expected-error @+1 {{nothing to differentiate by}}
func.func @forward(%p: tensor<f32> {ckopt.role = "frozen"}) -> tensor<f32> {
  return %p : tensor<f32>
}

// -----

// expected-error @+1 {{cannot differentiate by argument 'ids' of type 'tensor<i64>'}}
func.func @forward(%p: tensor<i64> {ckopt.name = "ids", ckopt.role = "parameter"},
                   %x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}

// -----

// expected-warning @+1 {{the loss does not depend on 'q': no gradient, and never updated}}
func.func @forward(%p: tensor<f32> {ckopt.name = "p", ckopt.role = "parameter"},
                   %q: tensor<f32> {ckopt.name = "q", ckopt.role = "parameter"}) -> tensor<f32> {
  %y = ckopt.exp %p : (tensor<f32>) -> tensor<f32>
  return %y : tensor<f32>
}

// -----

// expected-error @+1 {{no function 'forward'; the module has @main}}
module {
  func.func @main() { return }
}

// -----

func.func @step() { return }
// expected-error @+1 {{the module has a 'step' already}}
func.func @forward(%p: tensor<f32> {ckopt.role = "parameter"}) -> tensor<f32> {
  return %p : tensor<f32>
}

// -----

func.func @forward(%x: tensor<2x3xf32, #ckopt.layout<[1, 0]>> {ckopt.role = "parameter"}) -> tensor<f32> {
  // expected-error @+1 {{differentiate before layouts are chosen}}
  %e = ckopt.exp %x : (tensor<2x3xf32, #ckopt.layout<[1, 0]>>) -> tensor<2x3xf32, #ckopt.layout<[1, 0]>>
  %y = ckopt.reduce sum %e {axes = array<i64: 0, 1>, keepdims = false} : (tensor<2x3xf32, #ckopt.layout<[1, 0]>>) -> tensor<f32>
  return %y : tensor<f32>
}
