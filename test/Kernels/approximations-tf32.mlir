// Attention by TF32 takes exponentials by a GPU's approximation, in a module without other ones. What
// is wanted is f64 of rounded operands; probabilities and their gradients are rounded, too.
// RUN: ckopt-opt %s --test-kernels-against-reference=precision=tf32 -o /dev/null | FileCheck %s

// CHECK: @attention_f32: 4 kernels, 0 as code of the CPU, 4 as PTX
func.func @attention_f32(%q: tensor<1x2x70x16xf32>, %k: tensor<1x1x67x16xf32>, %v: tensor<1x1x67x16xf32>, %g: tensor<1x2x70x16xf32>)
    attributes {test.tolerance = array<f64: 1.0e-3, 1.0e-3>} {
  %0, %l0 = ckopt.attention %q, %k, %v {scale = 0.5 : f64, causal = 0 : i64} : (tensor<1x2x70x16xf32>, tensor<1x1x67x16xf32>, tensor<1x1x67x16xf32>) -> (tensor<1x2x70x16xf32>, tensor<1x2x70x2xf32>)
  %1:3 = ckopt.attention_grad %q, %k, %v of %0, %l0 by %g {scale = 0.5 : f64, causal = 0 : i64} : (tensor<1x2x70x16xf32>, tensor<1x1x67x16xf32>, tensor<1x1x67x16xf32>, tensor<1x2x70x16xf32>, tensor<1x2x70x2xf32>, tensor<1x2x70x16xf32>) -> (tensor<1x2x70x16xf32>, tensor<1x1x67x16xf32>, tensor<1x1x67x16xf32>)
  %2, %l2 = ckopt.attention %q, %k, %v {scale = 0.5 : f64, softcap = 2.0 : f64} : (tensor<1x2x70x16xf32>, tensor<1x1x67x16xf32>, tensor<1x1x67x16xf32>) -> (tensor<1x2x70x16xf32>, tensor<1x2x70x2xf32>)
  %3:3 = ckopt.attention_grad %q, %k, %v of %2, %l2 by %g {scale = 0.5 : f64, softcap = 2.0 : f64} : (tensor<1x2x70x16xf32>, tensor<1x1x67x16xf32>, tensor<1x1x67x16xf32>, tensor<1x2x70x16xf32>, tensor<1x2x70x2xf32>, tensor<1x2x70x16xf32>) -> (tensor<1x2x70x16xf32>, tensor<1x1x67x16xf32>, tensor<1x1x67x16xf32>)
  return
}
