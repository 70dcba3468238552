// What cannot be computed is an error at the op, not a crash or a wrong number.
// RUN: ckopt-opt %s --split-input-file --test-reference --verify-diagnostics

func.func @main() -> tensor<1xf32> {
  %x = ckopt.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %i = ckopt.constant dense<2> : tensor<1xi64>
  // expected-error @+1 {{'ckopt.gather' op index 2 (element 0) is outside of a dimension of 2}}
  %0 = ckopt.gather %x, %i {axis = 0 : i64} : (tensor<2xf32>, tensor<1xi64>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----

func.func @main() -> tensor<2xf32> {
  %x = ckopt.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %u = ckopt.constant dense<1.0> : tensor<1xf32>
  %i = ckopt.constant dense<-3> : tensor<1xi64>
  // expected-error @+1 {{'ckopt.scatter_add' op index -3 (element 0) is outside of a dimension of 2}}
  %0 = ckopt.scatter_add %x, %i, %u {axis = 0 : i64} : (tensor<2xf32>, tensor<1xi64>, tensor<1xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @main() -> tensor<2xf32> {
  %x = ckopt.constant dense<0.0> : tensor<2x3xf32>
  %t = ckopt.constant dense<[1, 3]> : tensor<2xi64>
  // expected-error @+1 {{'ckopt.cross_entropy' op target 3 (element 1) is not one of the 3 classes}}
  %0:3 = ckopt.cross_entropy %x, %t {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2xi64>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
  return %0#0 : tensor<2xf32>
}

// -----

func.func @main() -> tensor<2xf32> {
  %x = ckopt.constant dense<0.0> : tensor<2x4xf32>
  %t = ckopt.constant dense<[1, 3]> : tensor<2xi64>
  // expected-error @+1 {{'ckopt.cross_entropy' op target 3 (element 1) is not one of the 3 classes}}
  %0:3 = ckopt.cross_entropy %x, %t {axis = 1 : i64, classes = 3 : i64} : (tensor<2x4xf32>, tensor<2xi64>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
  return %0#0 : tensor<2xf32>
}

// -----

func.func @main() -> tensor<f32> {
  %x = ckopt.constant dense<> : tensor<0xf32>
  // expected-error @+1 {{'ckopt.reduce' op takes the max of no elements}}
  %0 = ckopt.reduce max %x {axes = array<i64: 0>, keepdims = false} : (tensor<0xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

func.func private @k(%x: tensor<2xf32>, %s: tensor<i64>) -> tensor<2xf32> {
  // expected-error @+1 {{'ckopt.dropout' op site 1 is outside of the call's 1 scalars}}
  %0 = ckopt.dropout %x, %s, %s {ratio = 0.5 : f64, site = 1 : i64} : (tensor<2xf32>, tensor<i64>, tensor<i64>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func @main(%x: tensor<2xf32>, %s: tensor<i64>) -> tensor<2xf32> {
  %0 = ckopt.kernel_call @k(%x, %s) {scalars = array<i64: 4>} : (tensor<2xf32>, tensor<i64>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @main() -> tensor<2xf32> {
  // expected-error @+1 {{'arith.constant' op has no reference semantics}}
  %0 = arith.constant dense<0.0> : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// expected-error @+1 {{has no function @main}}
module {}

// -----

func.func private @k(%x: tensor<2xf32>) -> tensor<2xf32>
// expected-error @-1 {{needs a body of one block to be interpreted}}
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = ckopt.kernel_call @k(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @main() -> tensor<4611686018427387904x4xf32> {
  // expected-error @+1 {{cannot be interpreted: its result type 'tensor<4611686018427387904x4xf32>' is not a statically shaped tensor of numbers with less than 2^31 elements}}
  %0 = ckopt.iota {axis = 0 : i64} : tensor<4611686018427387904x4xf32>
  return %0 : tensor<4611686018427387904x4xf32>
}

// -----

func.func @main() -> tensor<1x2xf32> {
  %x = ckopt.constant dense<1.0> : tensor<3x2xf32>
  %i = ckopt.constant dense<[[2, 3]]> : tensor<1x2xi32>
  // expected-error @+1 {{'ckopt.gather_elements' op index 3 (element 1) is outside of a dimension of 3}}
  %0 = ckopt.gather_elements %x, %i {axis = 0 : i64} : (tensor<3x2xf32>, tensor<1x2xi32>) -> tensor<1x2xf32>
  return %0 : tensor<1x2xf32>
}

// -----

func.func @main() -> tensor<3xf32> {
  %x = ckopt.constant dense<1.0> : tensor<3xf32>
  %i = ckopt.constant dense<-4> : tensor<1xi64>
  %u = ckopt.constant dense<2.0> : tensor<1xf32>
  // expected-error @+1 {{'ckopt.scatter_elements' op index -4 (element 0) is outside of a dimension of 3}}
  %0 = ckopt.scatter_elements set %x, %i, %u {axis = 0 : i64} : (tensor<3xf32>, tensor<1xi64>, tensor<1xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
