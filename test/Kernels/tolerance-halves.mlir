// A given tolerance holds for results of bf16, too: attention rounds probabilities, which takes
// more than this one.
// RUN: not ckopt-opt %s --test-kernels-against-reference -o /dev/null 2>&1 | FileCheck %s
// CHECK: error: in block form: result 0 differs from the interpreter's
func.func @close(%q: tensor<1x2x70x20xbf16>, %k: tensor<1x1x67x20xbf16>, %v: tensor<1x1x67x9xbf16>)
    attributes {test.tolerance = array<f64: 1.0e-4, 1.0e-4>} {
  %0, %l = ckopt.attention %q, %k, %v {scale = 0.3 : f64} : (tensor<1x2x70x20xbf16>, tensor<1x1x67x20xbf16>, tensor<1x1x67x9xbf16>) -> (tensor<1x2x70x9xbf16>, tensor<1x2x70x2xf32>)
  return
}
