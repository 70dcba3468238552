// Losses, state updates, kernel calls and the attributes of functions survive
// printing, the generic form and bytecode.
// RUN: ckopt-opt %s | ckopt-opt | FileCheck %s
// RUN: ckopt-opt %s --mlir-print-op-generic | ckopt-opt | FileCheck %s
// RUN: ckopt-opt %s --emit-bytecode | ckopt-opt | FileCheck %s

// CHECK-LABEL: func @loss
func.func @loss(%x: tensor<2x5x3xf32>, %t: tensor<2x3xi32>) {
  // CHECK: ckopt.cross_entropy %{{.*}}, %{{.*}} {axis = 1 : i64, ignore_index = 0 : i64} : (tensor<2x5x3xf32>, tensor<2x3xi32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  %l, %s, %s_lost = ckopt.cross_entropy %x, %t {axis = 1 : i64, ignore_index = 0 : i64} : (tensor<2x5x3xf32>, tensor<2x3xi32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  // CHECK: ckopt.cross_entropy_grad %{{.*}} {axis = 1 : i64, classes = 4 : i64} : (tensor<2x3xf32>, tensor<2x5x3xf32>, tensor<2x3xi32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x5x3xf32>
  %0 = ckopt.cross_entropy_grad %l, %x, %t, %s, %s_lost {axis = 1 : i64, classes = 4 : i64} : (tensor<2x3xf32>, tensor<2x5x3xf32>, tensor<2x3xi32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x5x3xf32>
  return
}

// CHECK-LABEL: func @linear_loss
func.func @linear_loss(%x: tensor<4x2xf32>, %w: tensor<3x2xf32>, %t: tensor<4xi64>, %b: tensor<3xf32>) {
  // CHECK: ckopt.linear_cross_entropy %{{.*}}, %{{.*}}, %{{[a-z0-9]*}} {rows = 2 : i64, transpose_weight} : (tensor<4x2xf32>, tensor<3x2xf32>, tensor<4xi64>) -> tensor<4xf32>
  %l = ckopt.linear_cross_entropy %x, %w, %t {rows = 2 : i64, transpose_weight} : (tensor<4x2xf32>, tensor<3x2xf32>, tensor<4xi64>) -> tensor<4xf32>
  // CHECK: ckopt.linear_cross_entropy_grad %{{.*}} bias %{{.*}} {ignore_index = 0 : i64, rows = 2 : i64, transpose_weight} : {{.*}} -> (tensor<4xf32>, tensor<4x2xf32>, tensor<3x2xf32>, tensor<3xf32>)
  %0:4 = ckopt.linear_cross_entropy_grad %l, %x, %w, %t bias %b {ignore_index = 0 : i64, rows = 2 : i64, transpose_weight} : (tensor<4xf32>, tensor<4x2xf32>, tensor<3x2xf32>, tensor<4xi64>, tensor<3xf32>) -> (tensor<4xf32>, tensor<4x2xf32>, tensor<3x2xf32>, tensor<3xf32>)
  return
}

// CHECK-LABEL: func @updates
// CHECK-SAME: ckopt.name = "fc.weight", ckopt.role = "parameter"
// CHECK-SAME: -> (tensor<4xf32> {ckopt.updates = 0 : i64})
func.func @updates(%p: tensor<4xf32> {ckopt.name = "fc.weight", ckopt.role = "parameter"},
                   %g: tensor<4xf32>, %lr: tensor<f32>, %step: tensor<i64>)
    -> (tensor<4xf32> {ckopt.updates = 0 : i64}) {
  // CHECK: ckopt.moving_average %{{.*}}, %{{.*}} {momentum = 9.000000e-01 : f64}
  %0 = ckopt.moving_average %p, %g {momentum = 0.9 : f64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: ckopt.accumulate
  %1 = ckopt.accumulate %p, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: ckopt.sgd %{{.*}}, %{{.*}}, %{{.*}}, %{{[a-z0-9]*}} {dampening
  %2 = ckopt.sgd %p, %g, %lr, %step {momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.1 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i64>) -> tensor<4xf32>
  // CHECK: ckopt.sgd %{{.*}} velocity %{{.*}} {{{.*}}nesterov{{.*}}} : {{.*}} -> (tensor<4xf32>, tensor<4xf32>)
  %3, %v = ckopt.sgd %p, %g, %lr, %step velocity %g {nesterov, momentum = 0.9 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i64>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  // CHECK: ckopt.adam %{{.*}} {{{.*}}decoupled{{.*}}}
  %4:3 = ckopt.adam %p, %g, %g, %g, %lr, %step {decoupled, beta1 = 0.9 : f64, beta2 = 0.999 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.01 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i64>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %4#0 : tensor<4xf32>
}

// CHECK: func private @k({{.*}} attributes {ckopt.kernel = "elementwise"}
func.func private @k(%x: tensor<4xf32>) -> tensor<4xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func @step
// CHECK-SAME: ckopt.offset = 64 : i64
// CHECK-SAME: ckopt.arena_bytes = 128 : i64
func.func @step(%x: tensor<4xf32> {ckopt.offset = 64 : i64}) -> tensor<4xf32> attributes {ckopt.arena_bytes = 128 : i64} {
  // CHECK: ckopt.kernel_call @k(%{{.*}}) {clone = 1 : i64, cost = 5.000000e-01 : f64, offsets = array<i64: 64>, reuse = array<i64: 0, 0>, scalars = array<i64: 7>, workspace = 64 : i64, workspace_offset = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %0 = ckopt.kernel_call @k(%x) {cost = 0.5 : f64, workspace = 64 : i64, workspace_offset = 0 : i64, reuse = array<i64: 0, 0>, scalars = array<i64: 7>, offsets = array<i64: 64>, clone = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: ckopt.kernel_call @k(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = ckopt.kernel_call @k(%0) : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: ckopt.barrier %{{.*}} {clone = 2 : i64} : tensor<4xf32>
  %2 = ckopt.barrier %1 {clone = 2 : i64} : tensor<4xf32>
  return %2 : tensor<4xf32>
}
