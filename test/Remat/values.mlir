// A plan computes the same values as the program: interpreted before and after, with views,
// an update of a state that is read again, and a dropout.
// REQUIRES: compiler
// RUN: ckopt-opt %s --fuse --test-reference=function=step | grep ^result > %t.before
// RUN: ckopt-opt %s --fuse --remat=budget=min | FileCheck %s
// RUN: ckopt-opt %s --fuse --remat=budget=min --test-reference=function=step | grep ^result > %t.after
// RUN: diff %t.before %t.after
// RUN: ckopt-opt %s --fuse --remat=budget-ratio=0.8 --plan-memory --test-reference=function=step | grep ^result > %t.ratio
// RUN: diff %t.before %t.ratio

// CHECK: clone = 1
func.func @step(%x: tensor<16x32xf32>, %w: tensor<32x32xf32> {ckopt.role = "parameter"},
    %seed: tensor<i64>, %st: tensor<i64>, %lr: tensor<f32>) -> (tensor<f32>, tensor<32x32xf32> {ckopt.updates = 1 : i64}) {
  %a = ckopt.matmul %x, %w : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
  %b = ckopt.tanh %a : (tensor<16x32xf32>) -> tensor<16x32xf32>
  %c = ckopt.dropout %b, %seed, %st {ratio = 0.25, site = 3} : (tensor<16x32xf32>, tensor<i64>, tensor<i64>) -> tensor<16x32xf32>
  %d = ckopt.matmul %c, %w : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
  %e = ckopt.tanh %d : (tensor<16x32xf32>) -> tensor<16x32xf32>
  %v = ckopt.reshape %e : (tensor<16x32xf32>) -> tensor<32x16xf32>
  %f = ckopt.matmul %v, %c : (tensor<32x16xf32>, tensor<16x32xf32>) -> tensor<32x32xf32>
  %g = ckopt.softmax %f {axis = 1} : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %h = ckopt.matmul %e, %g : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
  %i = ckopt.mul %h, %c : (tensor<16x32xf32>, tensor<16x32xf32>) -> tensor<16x32xf32>
  %l = ckopt.reduce sum %i {axes = array<i64: 0, 1>, keepdims = false} : (tensor<16x32xf32>) -> tensor<f32>
  %j = ckopt.matmul %a, %h {transpose_lhs} : (tensor<16x32xf32>, tensor<16x32xf32>) -> tensor<32x32xf32>
  %n = ckopt.sgd %w, %j, %lr, %st {momentum = 0.0, dampening = 0.0, weight_decay = 0.0} : (tensor<32x32xf32>, tensor<32x32xf32>, tensor<f32>, tensor<i64>) -> tensor<32x32xf32>
  return %l, %n : tensor<f32>, tensor<32x32xf32>
}
