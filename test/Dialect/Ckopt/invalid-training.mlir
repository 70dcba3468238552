// Every check of losses, updates, kernel calls and function attributes reports
// what is wrong.
// RUN: ckopt-opt %s --split-input-file --verify-diagnostics

func.func @linear_loss_rank(%x: tensor<2x2x2xf32>, %w: tensor<3x2xf32>, %t: tensor<4xi64>, %b: tensor<3xf32>) {
  // expected-error @+2 {{needs input and weight of rank 2, targets of rank 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.linear_cross_entropy %x, %w, %t bias %b {rows = 2 : i64, transpose_weight} : (tensor<2x2x2xf32>, tensor<3x2xf32>, tensor<4xi64>, tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @linear_loss_depth(%x: tensor<4x3xf32>, %w: tensor<3x2xf32>, %t: tensor<4xi64>, %b: tensor<3xf32>) {
  // expected-error @+2 {{types do not fit: input 'tensor<4x3xf32>', weight 'tensor<3x2xf32>', targets 'tensor<4xi64>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.linear_cross_entropy %x, %w, %t bias %b {rows = 2 : i64, transpose_weight} : (tensor<4x3xf32>, tensor<3x2xf32>, tensor<4xi64>, tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @linear_loss_bias(%x: tensor<4x2xf32>, %w: tensor<3x2xf32>, %t: tensor<4xi64>, %b: tensor<2xf32>) {
  // expected-error @+2 {{the bias must have one element a class, is 'tensor<2xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.linear_cross_entropy %x, %w, %t bias %b {rows = 2 : i64, transpose_weight} : (tensor<4x2xf32>, tensor<3x2xf32>, tensor<4xi64>, tensor<2xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @linear_loss_rows(%x: tensor<4x2xf32>, %w: tensor<3x2xf32>, %t: tensor<4xi64>, %b: tensor<3xf32>) {
  // expected-error @+2 {{rows must be positive}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.linear_cross_entropy %x, %w, %t bias %b {rows = 0 : i64, transpose_weight} : (tensor<4x2xf32>, tensor<3x2xf32>, tensor<4xi64>, tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @linear_loss_grad(%g: tensor<f32>, %x: tensor<4x2xf32>, %w: tensor<2x3xf32>, %t: tensor<4xi64>) {
  // expected-error @+2 {{grad must have the shape of the targets, got 'tensor<f32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:3 = ckopt.linear_cross_entropy_grad %g, %x, %w, %t {rows = 2 : i64} : (tensor<f32>, tensor<4x2xf32>, tensor<2x3xf32>, tensor<4xi64>) -> (tensor<4xf32>, tensor<4x2xf32>, tensor<2x3xf32>)
  return
}

// -----

func.func @cross_entropy_axis(%x: tensor<2x3xf32>, %t: tensor<2xi64>) {
  // expected-error @+2 {{axis 2 is outside of rank 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:3 = ckopt.cross_entropy %x, %t {axis = 2 : i64} : (tensor<2x3xf32>, tensor<2xi64>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

func.func @cross_entropy_targets(%x: tensor<2x3xf32>, %t: tensor<3xi64>) {
  // expected-error @+2 {{targets 'tensor<3xi64>' do not fit logits 'tensor<2x3xf32>' with classes along dimension 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:3 = ckopt.cross_entropy %x, %t {axis = 1 : i64} : (tensor<2x3xf32>, tensor<3xi64>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @cross_entropy_classes(%x: tensor<2x3xf32>, %t: tensor<2xi64>) {
  // expected-error @+2 {{4 classes do not fit logits 'tensor<2x3xf32>' along dimension 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:3 = ckopt.cross_entropy %x, %t {axis = 1 : i64, classes = 4 : i64} : (tensor<2x3xf32>, tensor<2xi64>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

func.func @cross_entropy_grad_rows(%g: tensor<f32>, %x: tensor<2x3xf32>, %t: tensor<2xi64>) {
  // expected-error @+2 {{grad and lse must have the shape of the targets, got 'tensor<f32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.cross_entropy_grad %g, %x, %t, %g, %g {axis = 1 : i64} : (tensor<f32>, tensor<2x3xf32>, tensor<2xi64>, tensor<f32>, tensor<f32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @moving_average_shapes(%a: tensor<2xf32>, %b: tensor<3xf32>) {
  // expected-error @+2 {{operands must have one shape, got 'tensor<2xf32>' and 'tensor<3xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.moving_average %a, %b {momentum = 0.9 : f64} : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @accumulate_shapes(%a: tensor<2xf32>, %b: tensor<1xf32>) {
  // expected-error @+2 {{operands must have one shape}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.accumulate %a, %b : (tensor<2xf32>, tensor<1xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @sgd_velocity(%a: tensor<2xf32>, %v: tensor<3xf32>, %lr: tensor<f32>, %t: tensor<i64>) {
  // expected-error @+2 {{operands must have one shape, got 'tensor<2xf32>' and 'tensor<3xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = ckopt.sgd %a, %a, %lr, %t velocity %v {momentum = 0.9 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<2xf32>, tensor<2xf32>, tensor<f32>, tensor<i64>, tensor<3xf32>) -> (tensor<2xf32>, tensor<3xf32>)
  return
}

// -----

func.func @adam_state(%a: tensor<2xf32>, %m: tensor<3xf32>, %lr: tensor<f32>, %t: tensor<i64>) {
  // expected-error @+2 {{operands must have one shape, got 'tensor<2xf32>' and 'tensor<3xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:3 = ckopt.adam %a, %a, %m, %a, %lr, %t {beta1 = 0.9 : f64, beta2 = 0.999 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<2xf32>, tensor<2xf32>, tensor<3xf32>, tensor<2xf32>, tensor<f32>, tensor<i64>) -> (tensor<2xf32>, tensor<3xf32>, tensor<2xf32>)
  return
}

// -----

func.func @learning_rate_is_a_scalar(%a: tensor<2xf32>, %t: tensor<i64>) {
  // expected-error @+1 {{operand #2 must be 0D tensor}}
  %0 = ckopt.sgd %a, %a, %a, %t {momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<i64>) -> tensor<2xf32>
  return
}

// -----

func.func @unknown_kernel(%a: tensor<2xf32>) {
  // expected-error @+1 {{'ckopt.kernel_call' op calls an unknown kernel @k}}
  %0 = ckopt.kernel_call @k(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func private @k(%a: tensor<3xf32>) -> tensor<3xf32>
func.func @kernel_types(%a: tensor<2xf32>) {
  // expected-error @+1 {{'ckopt.kernel_call' op operand and result types differ from those of kernel @k}}
  %0 = ckopt.kernel_call @k(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func private @k(%a: tensor<2xf32>) -> tensor<2xf32>
func.func @reuse_pairs(%a: tensor<2xf32>) {
  // expected-error @+1 {{'ckopt.kernel_call' op reuse must hold pairs (operand, result)}}
  %0 = ckopt.kernel_call @k(%a) {reuse = array<i64: 0>} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func private @k(%a: tensor<2xf32>) -> tensor<2xf32>
func.func @updates_range(%a: tensor<2xf32>) {
  // expected-error @+1 {{'ckopt.kernel_call' op updates names an operand or result that does not exist}}
  %0 = ckopt.kernel_call @k(%a) {updates = array<i64: 0, 1>} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func private @k(%a: tensor<2xf32>) -> tensor<2xf32>
func.func @offsets(%a: tensor<2xf32>) {
  // expected-error @+1 {{'ckopt.kernel_call' op offsets must hold one entry a result}}
  %0 = ckopt.kernel_call @k(%a) {offsets = array<i64: 0, 64>} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// expected-error @+1 {{argument 0: unknown ckopt.role "weight"; expected input, target, parameter}}
func.func @role(%a: tensor<2xf32> {ckopt.role = "weight"}) {
  return
}

// -----

// expected-error @+1 {{argument 0: "ckopt.name" must be a string}}
func.func @name(%a: tensor<2xf32> {ckopt.name = 1 : i64}) {
  return
}

// -----

// expected-error @+1 {{"ckopt.arena_bytes" must be an integer (bytes)}}
func.func @arena() attributes {ckopt.arena_bytes = "1GiB"} {
  return
}
