// Attributes of ckopt with a value of another type would be passed over: they are errors.
// RUN: ckopt-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{"ckopt.kernel" must be a string}}
func.func @kernel() attributes {ckopt.kernel = 4} {
  return
}

// -----

// expected-error @+1 {{ckopt.plan must be a dictionary of figures}}
func.func @plan() attributes {ckopt.plan = 3} {
  return
}

// -----

func.func @values(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{ckopt.cost must be a number (seconds)}}
  %0 = math.exp %x {ckopt.cost = "a"} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @values(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{ckopt.workspace must be an integer (bytes)}}
  %0 = math.exp %x {ckopt.workspace = 4.5} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
