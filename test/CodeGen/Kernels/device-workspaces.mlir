// A workspace on a device ends with its last byte, since a step writes all that is planned: a sum for
// each of 2 x 17 rows has 136 bytes.
// RUN: ckopt-opt %s --annotate-kernels="target=cuda" | FileCheck %s

// CHECK: kernel_call @gradient({{.*}}workspace = 136 : i64
func.func @step(%q: tensor<1x2x17x8xf32>, %k: tensor<1x2x130x8xf32>, %l: tensor<1x2x17x2xf32>) -> tensor<1x2x17x8xf32> {
  %0:3 = ckopt.kernel_call @gradient(%q, %k, %l) : (tensor<1x2x17x8xf32>, tensor<1x2x130x8xf32>, tensor<1x2x17x2xf32>) -> (tensor<1x2x17x8xf32>, tensor<1x2x130x8xf32>, tensor<1x2x130x8xf32>)
  return %0#0 : tensor<1x2x17x8xf32>
}
func.func private @gradient(%q: tensor<1x2x17x8xf32>, %k: tensor<1x2x130x8xf32>, %l: tensor<1x2x17x2xf32>) -> (tensor<1x2x17x8xf32>, tensor<1x2x130x8xf32>, tensor<1x2x130x8xf32>) attributes {ckopt.kernel = "library"} {
  %0:3 = ckopt.attention_grad %q, %k, %k of %q, %l by %q {scale = 0.3 : f64} : (tensor<1x2x17x8xf32>, tensor<1x2x130x8xf32>, tensor<1x2x130x8xf32>, tensor<1x2x17x8xf32>, tensor<1x2x17x2xf32>, tensor<1x2x17x8xf32>) -> (tensor<1x2x17x8xf32>, tensor<1x2x130x8xf32>, tensor<1x2x130x8xf32>)
  return %0#0, %0#1, %0#2 : tensor<1x2x17x8xf32>, tensor<1x2x130x8xf32>, tensor<1x2x130x8xf32>
}
