// A difference is an error at the op: without a tolerance, the rounding of f32 is seen in each form.
// RUN: ckopt-opt %s --test-kernels-against-reference --verify-diagnostics -o /dev/null

func.func @softmax(%x: tensor<3x100xf32>) attributes {test.tolerance = array<f64: 0.0, 0.0>} {
  // expected-error @+3 {{in block form: result 0 differs from the interpreter's}}
  // expected-error @+2 {{as PTX: result 0 differs from the interpreter's}}
  // expected-error @+1 {{result 0 differs from the interpreter's}}
  %0 = ckopt.softmax %x {axis = 1 : i64} : (tensor<3x100xf32>) -> tensor<3x100xf32>
  return
}
