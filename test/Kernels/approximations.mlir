// Functions and attention by a GPU's approximations, against f64, within the errors that
// docs/cuda.md states. The block form and the interpreter make them as bad as NVIDIA allows. Results
// in 16 bits have been rounded as well: by 2^-8 to bf16, by 2^-11 to f16. (A tolerance is multiplied
// by 65,536 for bf16, by 4,096 for f16.)
// RUN: ckopt-opt %s --test-kernels-against-reference -o /dev/null | FileCheck %s
module attributes {ckopt.approximates} {

// The error of exp near zero,
// CHECK: @exp_near_zero: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func @exp_near_zero(%a: tensor<6x40xf32>) attributes {test.tolerance = array<f64: 1.0e-20, 3.2e-7>} {
  %0 = ckopt.exp %a : (tensor<6x40xf32>) -> tensor<6x40xf32>
  return
}

// and at the ends of its range.
// CHECK: @exp_far: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func @exp_far(%a: tensor<6x40xf32> {test.range = array<f64: -87.0, 88.0>}) attributes {test.tolerance = array<f64: 1.0e-38, 7.6e-6>} {
  %0 = ckopt.exp %a : (tensor<6x40xf32>) -> tensor<6x40xf32>
  return
}

// Sigmoid and tanh are relative to their results, however small.
// CHECK: @saturating: 2 kernels, 2 as code of the CPU, 2 as PTX
func.func @saturating(%a: tensor<6x40xf32> {test.range = array<f64: -4.0, 4.0>}) attributes {test.tolerance = array<f64: 1.0e-20, 9.5e-7>} {
  %0 = ckopt.sigmoid %a : (tensor<6x40xf32>) -> tensor<6x40xf32>
  %1 = ckopt.tanh %a : (tensor<6x40xf32>) -> tensor<6x40xf32>
  return
}

// erf and GELU cancel, so small results have the error of large ones.
// CHECK: @cancelling: 3 kernels, 3 as code of the CPU, 3 as PTX
func.func @cancelling(%a: tensor<6x40xf32> {test.range = array<f64: -3.0, 3.0>}) attributes {test.tolerance = array<f64: 9.5e-7, 9.5e-7>} {
  %0 = ckopt.erf %a : (tensor<6x40xf32>) -> tensor<6x40xf32>
  %1 = ckopt.gelu %a : (tensor<6x40xf32>) -> tensor<6x40xf32>
  %2 = ckopt.gelu %a {tanh} : (tensor<6x40xf32>) -> tensor<6x40xf32>
  return
}

// The loss of 16-bit logits is f32.
// CHECK: @loss: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func @loss(%a: tensor<6x40xbf16> {test.range = array<f64: -8.0, 8.0>}, %t: tensor<6xi64> {test.range = array<f64: 0.0, 40.0>}) attributes {test.tolerance = array<f64: 1.0e-6, 1.0e-6>} {
  %0:3 = ckopt.cross_entropy %a, %t {axis = 1 : i64} : (tensor<6x40xbf16>, tensor<6xi64>) -> (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>)
  return
}

// What remains is one rounding of the result.
// CHECK: @functions_bf16: 4 kernels, 4 as code of the CPU, 4 as PTX
func.func @functions_bf16(%a: tensor<6x40xbf16> {test.range = array<f64: -80.0, 80.0>}, %b: tensor<6x40xbf16> {test.range = array<f64: -8.0, 8.0>})
    attributes {test.tolerance = array<f64: 1.0e-20, 6.0e-8>} {
  %0 = ckopt.exp %a : (tensor<6x40xbf16>) -> tensor<6x40xbf16>
  %1 = ckopt.sigmoid %b : (tensor<6x40xbf16>) -> tensor<6x40xbf16>
  %2 = ckopt.tanh %b : (tensor<6x40xbf16>) -> tensor<6x40xbf16>
  %3 = ckopt.softmax %b {axis = 1} : (tensor<6x40xbf16>) -> tensor<6x40xbf16>
  return
}

// The same, but for small results of large x.
// CHECK: @gelu_bf16: 3 kernels, 3 as code of the CPU, 3 as PTX
func.func @gelu_bf16(%a: tensor<6x40xbf16> {test.range = array<f64: -6.0, 6.0>})
    attributes {test.tolerance = array<f64: 2.0e-6, 2.6e-5>} {
  %0 = ckopt.gelu %a : (tensor<6x40xbf16>) -> tensor<6x40xbf16>
  %1 = ckopt.gelu %a {tanh} : (tensor<6x40xbf16>) -> tensor<6x40xbf16>
  %2 = ckopt.erf %a : (tensor<6x40xbf16>) -> tensor<6x40xbf16>
  return
}

// What remains is one rounding of the result.
// CHECK: @functions_f16: 4 kernels, 4 as code of the CPU, 4 as PTX
func.func @functions_f16(%a: tensor<6x40xf16> {test.range = array<f64: -9.0, 11.0>}, %b: tensor<6x40xf16> {test.range = array<f64: -8.0, 8.0>})
    attributes {test.tolerance = array<f64: 4.1e-8, 3.3e-6>} {
  %0 = ckopt.exp %a : (tensor<6x40xf16>) -> tensor<6x40xf16>
  %1 = ckopt.sigmoid %b : (tensor<6x40xf16>) -> tensor<6x40xf16>
  %2 = ckopt.tanh %b : (tensor<6x40xf16>) -> tensor<6x40xf16>
  %3 = ckopt.softmax %b {axis = 1} : (tensor<6x40xf16>) -> tensor<6x40xf16>
  return
}

// The same, but for small results of large x.
// CHECK: @gelu_f16: 3 kernels, 3 as code of the CPU, 3 as PTX
func.func @gelu_f16(%a: tensor<6x40xf16> {test.range = array<f64: -6.0, 6.0>})
    attributes {test.tolerance = array<f64: 2.1e-6, 3.3e-6>} {
  %0 = ckopt.gelu %a : (tensor<6x40xf16>) -> tensor<6x40xf16>
  %1 = ckopt.gelu %a {tanh} : (tensor<6x40xf16>) -> tensor<6x40xf16>
  %2 = ckopt.erf %a : (tensor<6x40xf16>) -> tensor<6x40xf16>
  return
}

// The derivative of GELU as gradients compute it, by erf and exp;
// CHECK: @gelu_grad_f32: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func private @gelu_grad_f32(%g: tensor<6x40xf32>, %x: tensor<6x40xf32> {test.range = array<f64: -3.0, 3.0>}) -> tensor<6x40xf32>
    attributes {ckopt.kernel = "elementwise", test.tolerance = array<f64: 2.9e-6, 9.5e-7>} {
  %half = ckopt.constant dense<0.5> : tensor<f32>
  %one = ckopt.constant dense<1.0> : tensor<f32>
  %c = ckopt.constant dense<0.707> : tensor<f32>
  %d = ckopt.constant dense<-0.5> : tensor<f32>
  %e = ckopt.constant dense<0.399> : tensor<f32>
  %0 = ckopt.mul %x, %c : (tensor<6x40xf32>, tensor<f32>) -> tensor<6x40xf32>
  %1 = ckopt.erf %0 : (tensor<6x40xf32>) -> tensor<6x40xf32>
  %2 = ckopt.add %1, %one : (tensor<6x40xf32>, tensor<f32>) -> tensor<6x40xf32>
  %3 = ckopt.mul %2, %half : (tensor<6x40xf32>, tensor<f32>) -> tensor<6x40xf32>
  %4 = ckopt.mul %x, %x : (tensor<6x40xf32>, tensor<6x40xf32>) -> tensor<6x40xf32>
  %5 = ckopt.mul %4, %d : (tensor<6x40xf32>, tensor<f32>) -> tensor<6x40xf32>
  %6 = ckopt.exp %5 : (tensor<6x40xf32>) -> tensor<6x40xf32>
  %7 = ckopt.mul %6, %e : (tensor<6x40xf32>, tensor<f32>) -> tensor<6x40xf32>
  %8 = ckopt.mul %x, %7 : (tensor<6x40xf32>, tensor<6x40xf32>) -> tensor<6x40xf32>
  %9 = ckopt.add %3, %8 : (tensor<6x40xf32>, tensor<6x40xf32>) -> tensor<6x40xf32>
  %10 = ckopt.mul %g, %9 : (tensor<6x40xf32>, tensor<6x40xf32>) -> tensor<6x40xf32>
  return %10 : tensor<6x40xf32>
}

// and by tanh.
// CHECK: @gelu_grad_tanh_f32: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func private @gelu_grad_tanh_f32(%g: tensor<6x40xf32>, %x: tensor<6x40xf32> {test.range = array<f64: -3.0, 3.0>}) -> tensor<6x40xf32>
    attributes {ckopt.kernel = "elementwise", test.tolerance = array<f64: 2.9e-6, 9.5e-7>} {
  %half = ckopt.constant dense<0.5> : tensor<f32>
  %one = ckopt.constant dense<1.0> : tensor<f32>
  %c = ckopt.constant dense<0.0447> : tensor<f32>
  %d = ckopt.constant dense<0.134> : tensor<f32>
  %k = ckopt.constant dense<0.798> : tensor<f32>
  %0 = ckopt.mul %x, %x : (tensor<6x40xf32>, tensor<6x40xf32>) -> tensor<6x40xf32>
  %1 = ckopt.mul %0, %c : (tensor<6x40xf32>, tensor<f32>) -> tensor<6x40xf32>
  %2 = ckopt.add %1, %one : (tensor<6x40xf32>, tensor<f32>) -> tensor<6x40xf32>
  %3 = ckopt.mul %x, %2 : (tensor<6x40xf32>, tensor<6x40xf32>) -> tensor<6x40xf32>
  %4 = ckopt.mul %3, %k : (tensor<6x40xf32>, tensor<f32>) -> tensor<6x40xf32>
  %5 = ckopt.tanh %4 : (tensor<6x40xf32>) -> tensor<6x40xf32>
  %6 = ckopt.mul %0, %d : (tensor<6x40xf32>, tensor<f32>) -> tensor<6x40xf32>
  %7 = ckopt.add %6, %one : (tensor<6x40xf32>, tensor<f32>) -> tensor<6x40xf32>
  %8 = ckopt.mul %7, %k : (tensor<6x40xf32>, tensor<f32>) -> tensor<6x40xf32>
  %9 = ckopt.mul %5, %5 : (tensor<6x40xf32>, tensor<6x40xf32>) -> tensor<6x40xf32>
  %10 = ckopt.sub %one, %9 : (tensor<f32>, tensor<6x40xf32>) -> tensor<6x40xf32>
  %11 = ckopt.mul %10, %8 : (tensor<6x40xf32>, tensor<6x40xf32>) -> tensor<6x40xf32>
  %12 = ckopt.mul %11, %x : (tensor<6x40xf32>, tensor<6x40xf32>) -> tensor<6x40xf32>
  %13 = ckopt.add %5, %one : (tensor<6x40xf32>, tensor<f32>) -> tensor<6x40xf32>
  %14 = ckopt.add %13, %12 : (tensor<6x40xf32>, tensor<6x40xf32>) -> tensor<6x40xf32>
  %15 = ckopt.mul %14, %half : (tensor<6x40xf32>, tensor<f32>) -> tensor<6x40xf32>
  %16 = ckopt.mul %g, %15 : (tensor<6x40xf32>, tensor<6x40xf32>) -> tensor<6x40xf32>
  return %16 : tensor<6x40xf32>
}

// The derivative of GELU as gradients compute it, by erf and exp;
// CHECK: @gelu_grad_bf16: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func private @gelu_grad_bf16(%g: tensor<6x40xbf16>, %x: tensor<6x40xbf16> {test.range = array<f64: -6.0, 6.0>}) -> tensor<6x40xbf16>
    attributes {ckopt.kernel = "elementwise", test.tolerance = array<f64: 2.0e-6, 2.6e-5>} {
  %half = ckopt.constant dense<0.5> : tensor<bf16>
  %one = ckopt.constant dense<1.0> : tensor<bf16>
  %c = ckopt.constant dense<0.707> : tensor<bf16>
  %d = ckopt.constant dense<-0.5> : tensor<bf16>
  %e = ckopt.constant dense<0.399> : tensor<bf16>
  %0 = ckopt.mul %x, %c : (tensor<6x40xbf16>, tensor<bf16>) -> tensor<6x40xbf16>
  %1 = ckopt.erf %0 : (tensor<6x40xbf16>) -> tensor<6x40xbf16>
  %2 = ckopt.add %1, %one : (tensor<6x40xbf16>, tensor<bf16>) -> tensor<6x40xbf16>
  %3 = ckopt.mul %2, %half : (tensor<6x40xbf16>, tensor<bf16>) -> tensor<6x40xbf16>
  %4 = ckopt.mul %x, %x : (tensor<6x40xbf16>, tensor<6x40xbf16>) -> tensor<6x40xbf16>
  %5 = ckopt.mul %4, %d : (tensor<6x40xbf16>, tensor<bf16>) -> tensor<6x40xbf16>
  %6 = ckopt.exp %5 : (tensor<6x40xbf16>) -> tensor<6x40xbf16>
  %7 = ckopt.mul %6, %e : (tensor<6x40xbf16>, tensor<bf16>) -> tensor<6x40xbf16>
  %8 = ckopt.mul %x, %7 : (tensor<6x40xbf16>, tensor<6x40xbf16>) -> tensor<6x40xbf16>
  %9 = ckopt.add %3, %8 : (tensor<6x40xbf16>, tensor<6x40xbf16>) -> tensor<6x40xbf16>
  %10 = ckopt.mul %g, %9 : (tensor<6x40xbf16>, tensor<6x40xbf16>) -> tensor<6x40xbf16>
  return %10 : tensor<6x40xbf16>
}

// and by tanh.
// CHECK: @gelu_grad_tanh_bf16: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func private @gelu_grad_tanh_bf16(%g: tensor<6x40xbf16>, %x: tensor<6x40xbf16> {test.range = array<f64: -6.0, 6.0>}) -> tensor<6x40xbf16>
    attributes {ckopt.kernel = "elementwise", test.tolerance = array<f64: 2.0e-6, 2.6e-5>} {
  %half = ckopt.constant dense<0.5> : tensor<bf16>
  %one = ckopt.constant dense<1.0> : tensor<bf16>
  %c = ckopt.constant dense<0.0447> : tensor<bf16>
  %d = ckopt.constant dense<0.134> : tensor<bf16>
  %k = ckopt.constant dense<0.798> : tensor<bf16>
  %0 = ckopt.mul %x, %x : (tensor<6x40xbf16>, tensor<6x40xbf16>) -> tensor<6x40xbf16>
  %1 = ckopt.mul %0, %c : (tensor<6x40xbf16>, tensor<bf16>) -> tensor<6x40xbf16>
  %2 = ckopt.add %1, %one : (tensor<6x40xbf16>, tensor<bf16>) -> tensor<6x40xbf16>
  %3 = ckopt.mul %x, %2 : (tensor<6x40xbf16>, tensor<6x40xbf16>) -> tensor<6x40xbf16>
  %4 = ckopt.mul %3, %k : (tensor<6x40xbf16>, tensor<bf16>) -> tensor<6x40xbf16>
  %5 = ckopt.tanh %4 : (tensor<6x40xbf16>) -> tensor<6x40xbf16>
  %6 = ckopt.mul %0, %d : (tensor<6x40xbf16>, tensor<bf16>) -> tensor<6x40xbf16>
  %7 = ckopt.add %6, %one : (tensor<6x40xbf16>, tensor<bf16>) -> tensor<6x40xbf16>
  %8 = ckopt.mul %7, %k : (tensor<6x40xbf16>, tensor<bf16>) -> tensor<6x40xbf16>
  %9 = ckopt.mul %5, %5 : (tensor<6x40xbf16>, tensor<6x40xbf16>) -> tensor<6x40xbf16>
  %10 = ckopt.sub %one, %9 : (tensor<bf16>, tensor<6x40xbf16>) -> tensor<6x40xbf16>
  %11 = ckopt.mul %10, %8 : (tensor<6x40xbf16>, tensor<6x40xbf16>) -> tensor<6x40xbf16>
  %12 = ckopt.mul %11, %x : (tensor<6x40xbf16>, tensor<6x40xbf16>) -> tensor<6x40xbf16>
  %13 = ckopt.add %5, %one : (tensor<6x40xbf16>, tensor<bf16>) -> tensor<6x40xbf16>
  %14 = ckopt.add %13, %12 : (tensor<6x40xbf16>, tensor<6x40xbf16>) -> tensor<6x40xbf16>
  %15 = ckopt.mul %14, %half : (tensor<6x40xbf16>, tensor<bf16>) -> tensor<6x40xbf16>
  %16 = ckopt.mul %g, %15 : (tensor<6x40xbf16>, tensor<6x40xbf16>) -> tensor<6x40xbf16>
  return %16 : tensor<6x40xbf16>
}

// The derivative of GELU as gradients compute it, by erf and exp;
// CHECK: @gelu_grad_f16: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func private @gelu_grad_f16(%g: tensor<6x40xf16>, %x: tensor<6x40xf16> {test.range = array<f64: -6.0, 6.0>}) -> tensor<6x40xf16>
    attributes {ckopt.kernel = "elementwise", test.tolerance = array<f64: 2.1e-6, 3.3e-6>} {
  %half = ckopt.constant dense<0.5> : tensor<f16>
  %one = ckopt.constant dense<1.0> : tensor<f16>
  %c = ckopt.constant dense<0.707> : tensor<f16>
  %d = ckopt.constant dense<-0.5> : tensor<f16>
  %e = ckopt.constant dense<0.399> : tensor<f16>
  %0 = ckopt.mul %x, %c : (tensor<6x40xf16>, tensor<f16>) -> tensor<6x40xf16>
  %1 = ckopt.erf %0 : (tensor<6x40xf16>) -> tensor<6x40xf16>
  %2 = ckopt.add %1, %one : (tensor<6x40xf16>, tensor<f16>) -> tensor<6x40xf16>
  %3 = ckopt.mul %2, %half : (tensor<6x40xf16>, tensor<f16>) -> tensor<6x40xf16>
  %4 = ckopt.mul %x, %x : (tensor<6x40xf16>, tensor<6x40xf16>) -> tensor<6x40xf16>
  %5 = ckopt.mul %4, %d : (tensor<6x40xf16>, tensor<f16>) -> tensor<6x40xf16>
  %6 = ckopt.exp %5 : (tensor<6x40xf16>) -> tensor<6x40xf16>
  %7 = ckopt.mul %6, %e : (tensor<6x40xf16>, tensor<f16>) -> tensor<6x40xf16>
  %8 = ckopt.mul %x, %7 : (tensor<6x40xf16>, tensor<6x40xf16>) -> tensor<6x40xf16>
  %9 = ckopt.add %3, %8 : (tensor<6x40xf16>, tensor<6x40xf16>) -> tensor<6x40xf16>
  %10 = ckopt.mul %g, %9 : (tensor<6x40xf16>, tensor<6x40xf16>) -> tensor<6x40xf16>
  return %10 : tensor<6x40xf16>
}

// and by tanh.
// CHECK: @gelu_grad_tanh_f16: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func private @gelu_grad_tanh_f16(%g: tensor<6x40xf16>, %x: tensor<6x40xf16> {test.range = array<f64: -6.0, 6.0>}) -> tensor<6x40xf16>
    attributes {ckopt.kernel = "elementwise", test.tolerance = array<f64: 2.1e-6, 3.3e-6>} {
  %half = ckopt.constant dense<0.5> : tensor<f16>
  %one = ckopt.constant dense<1.0> : tensor<f16>
  %c = ckopt.constant dense<0.0447> : tensor<f16>
  %d = ckopt.constant dense<0.134> : tensor<f16>
  %k = ckopt.constant dense<0.798> : tensor<f16>
  %0 = ckopt.mul %x, %x : (tensor<6x40xf16>, tensor<6x40xf16>) -> tensor<6x40xf16>
  %1 = ckopt.mul %0, %c : (tensor<6x40xf16>, tensor<f16>) -> tensor<6x40xf16>
  %2 = ckopt.add %1, %one : (tensor<6x40xf16>, tensor<f16>) -> tensor<6x40xf16>
  %3 = ckopt.mul %x, %2 : (tensor<6x40xf16>, tensor<6x40xf16>) -> tensor<6x40xf16>
  %4 = ckopt.mul %3, %k : (tensor<6x40xf16>, tensor<f16>) -> tensor<6x40xf16>
  %5 = ckopt.tanh %4 : (tensor<6x40xf16>) -> tensor<6x40xf16>
  %6 = ckopt.mul %0, %d : (tensor<6x40xf16>, tensor<f16>) -> tensor<6x40xf16>
  %7 = ckopt.add %6, %one : (tensor<6x40xf16>, tensor<f16>) -> tensor<6x40xf16>
  %8 = ckopt.mul %7, %k : (tensor<6x40xf16>, tensor<f16>) -> tensor<6x40xf16>
  %9 = ckopt.mul %5, %5 : (tensor<6x40xf16>, tensor<6x40xf16>) -> tensor<6x40xf16>
  %10 = ckopt.sub %one, %9 : (tensor<f16>, tensor<6x40xf16>) -> tensor<6x40xf16>
  %11 = ckopt.mul %10, %8 : (tensor<6x40xf16>, tensor<6x40xf16>) -> tensor<6x40xf16>
  %12 = ckopt.mul %11, %x : (tensor<6x40xf16>, tensor<6x40xf16>) -> tensor<6x40xf16>
  %13 = ckopt.add %5, %one : (tensor<6x40xf16>, tensor<f16>) -> tensor<6x40xf16>
  %14 = ckopt.add %13, %12 : (tensor<6x40xf16>, tensor<6x40xf16>) -> tensor<6x40xf16>
  %15 = ckopt.mul %14, %half : (tensor<6x40xf16>, tensor<f16>) -> tensor<6x40xf16>
  %16 = ckopt.mul %g, %15 : (tensor<6x40xf16>, tensor<6x40xf16>) -> tensor<6x40xf16>
  return %16 : tensor<6x40xf16>
}

// Probabilities and their gradients are rounded to 16 bits, too; lse is f32.
// CHECK: @attention_bf16: 4 kernels, 0 as code of the CPU, 4 as PTX
func.func @attention_bf16(%q: tensor<1x2x70x16xbf16>, %k: tensor<1x1x67x16xbf16>, %v: tensor<1x1x67x16xbf16>, %g: tensor<1x2x70x16xbf16>)
    attributes {test.tolerance = array<f64: 4.6e-3, 2.6e-3>} {
  %0, %l0 = ckopt.attention %q, %k, %v {scale = 0.5 : f64, causal = 0 : i64} : (tensor<1x2x70x16xbf16>, tensor<1x1x67x16xbf16>, tensor<1x1x67x16xbf16>) -> (tensor<1x2x70x16xbf16>, tensor<1x2x70x2xf32>)
  %1:3 = ckopt.attention_grad %q, %k, %v of %0, %l0 by %g {scale = 0.5 : f64, causal = 0 : i64} : (tensor<1x2x70x16xbf16>, tensor<1x1x67x16xbf16>, tensor<1x1x67x16xbf16>, tensor<1x2x70x16xbf16>, tensor<1x2x70x2xf32>, tensor<1x2x70x16xbf16>) -> (tensor<1x2x70x16xbf16>, tensor<1x1x67x16xbf16>, tensor<1x1x67x16xbf16>)
  %2, %l2 = ckopt.attention %q, %k, %v {scale = 0.5 : f64, softcap = 2.0 : f64} : (tensor<1x2x70x16xbf16>, tensor<1x1x67x16xbf16>, tensor<1x1x67x16xbf16>) -> (tensor<1x2x70x16xbf16>, tensor<1x2x70x2xf32>)
  %3:3 = ckopt.attention_grad %q, %k, %v of %2, %l2 by %g {scale = 0.5 : f64, softcap = 2.0 : f64} : (tensor<1x2x70x16xbf16>, tensor<1x1x67x16xbf16>, tensor<1x1x67x16xbf16>, tensor<1x2x70x16xbf16>, tensor<1x2x70x2xf32>, tensor<1x2x70x16xbf16>) -> (tensor<1x2x70x16xbf16>, tensor<1x1x67x16xbf16>, tensor<1x1x67x16xbf16>)
  return
}

// Probabilities and their gradients are rounded to 16 bits, too; lse is f32.
// CHECK: @attention_f16: 4 kernels, 0 as code of the CPU, 4 as PTX
func.func @attention_f16(%q: tensor<1x2x70x16xf16>, %k: tensor<1x1x67x16xf16>, %v: tensor<1x1x67x16xf16>, %g: tensor<1x2x70x16xf16>)
    attributes {test.tolerance = array<f64: 9.3e-4, 5.4e-4>} {
  %0, %l0 = ckopt.attention %q, %k, %v {scale = 0.5 : f64, causal = 0 : i64} : (tensor<1x2x70x16xf16>, tensor<1x1x67x16xf16>, tensor<1x1x67x16xf16>) -> (tensor<1x2x70x16xf16>, tensor<1x2x70x2xf32>)
  %1:3 = ckopt.attention_grad %q, %k, %v of %0, %l0 by %g {scale = 0.5 : f64, causal = 0 : i64} : (tensor<1x2x70x16xf16>, tensor<1x1x67x16xf16>, tensor<1x1x67x16xf16>, tensor<1x2x70x16xf16>, tensor<1x2x70x2xf32>, tensor<1x2x70x16xf16>) -> (tensor<1x2x70x16xf16>, tensor<1x1x67x16xf16>, tensor<1x1x67x16xf16>)
  %2, %l2 = ckopt.attention %q, %k, %v {scale = 0.5 : f64, softcap = 2.0 : f64} : (tensor<1x2x70x16xf16>, tensor<1x1x67x16xf16>, tensor<1x1x67x16xf16>) -> (tensor<1x2x70x16xf16>, tensor<1x2x70x2xf32>)
  %3:3 = ckopt.attention_grad %q, %k, %v of %2, %l2 by %g {scale = 0.5 : f64, softcap = 2.0 : f64} : (tensor<1x2x70x16xf16>, tensor<1x1x67x16xf16>, tensor<1x1x67x16xf16>, tensor<1x2x70x16xf16>, tensor<1x2x70x2xf32>, tensor<1x2x70x16xf16>) -> (tensor<1x2x70x16xf16>, tensor<1x1x67x16xf16>, tensor<1x1x67x16xf16>)
  return
}
}
