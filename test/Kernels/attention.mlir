// Attention and its gradient as blocks of a GPU.
// RUN: ckopt-opt %s --test-kernels-against-reference -o /dev/null | FileCheck %s

// One row and key, tiles that are not full, several tiles, odd columns.
// CHECK: @sizes: 8 kernels, 0 as code of the CPU, 8 as PTX
func.func @sizes(%a: tensor<1x1x1xf32>, %b: tensor<1x2x70x20xf32>, %c: tensor<1x2x67x20xf32>,
    %d: tensor<1x2x67x9xf32>, %e: tensor<1x2x70x9xf32>, %f: tensor<2x64x64xf32>,
    %g: tensor<1x1x1x32xf32>, %h: tensor<1x1x130x32xf32>) attributes {test.tolerance = array<f64: 1.0e-5, 1.0e-5>} {
  %0, %l0 = ckopt.attention %a, %a, %a {scale = 0.3 : f64} : (tensor<1x1x1xf32>, tensor<1x1x1xf32>, tensor<1x1x1xf32>) -> (tensor<1x1x1xf32>, tensor<1x1x2xf32>)
  %1:3 = ckopt.attention_grad %a, %a, %a of %0, %l0 by %a {scale = 0.3 : f64} : (tensor<1x1x1xf32>, tensor<1x1x1xf32>, tensor<1x1x1xf32>, tensor<1x1x1xf32>, tensor<1x1x2xf32>, tensor<1x1x1xf32>) -> (tensor<1x1x1xf32>, tensor<1x1x1xf32>, tensor<1x1x1xf32>)
  %2, %l2 = ckopt.attention %b, %c, %d {scale = 0.3 : f64} : (tensor<1x2x70x20xf32>, tensor<1x2x67x20xf32>, tensor<1x2x67x9xf32>) -> (tensor<1x2x70x9xf32>, tensor<1x2x70x2xf32>)
  %3:3 = ckopt.attention_grad %b, %c, %d of %2, %l2 by %e {scale = 0.3 : f64} : (tensor<1x2x70x20xf32>, tensor<1x2x67x20xf32>, tensor<1x2x67x9xf32>, tensor<1x2x70x9xf32>, tensor<1x2x70x2xf32>, tensor<1x2x70x9xf32>) -> (tensor<1x2x70x20xf32>, tensor<1x2x67x20xf32>, tensor<1x2x67x9xf32>)
  %4, %l4 = ckopt.attention %f, %f, %f {scale = 0.125 : f64, causal = 0 : i64} : (tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>) -> (tensor<2x64x64xf32>, tensor<2x64x2xf32>)
  %5:3 = ckopt.attention_grad %f, %f, %f of %4, %l4 by %f {scale = 0.125 : f64, causal = 0 : i64} : (tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64x2xf32>, tensor<2x64x64xf32>) -> (tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>)
  %6, %l6 = ckopt.attention %g, %h, %h {scale = 0.3 : f64} : (tensor<1x1x1x32xf32>, tensor<1x1x130x32xf32>, tensor<1x1x130x32xf32>) -> (tensor<1x1x1x32xf32>, tensor<1x1x1x2xf32>)
  %7:3 = ckopt.attention_grad %g, %h, %h of %6, %l6 by %g {scale = 0.3 : f64} : (tensor<1x1x1x32xf32>, tensor<1x1x130x32xf32>, tensor<1x1x130x32xf32>, tensor<1x1x1x32xf32>, tensor<1x1x1x2xf32>, tensor<1x1x1x32xf32>) -> (tensor<1x1x1x32xf32>, tensor<1x1x130x32xf32>, tensor<1x1x130x32xf32>)
  return
}
