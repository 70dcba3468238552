// Reductions, row ops, library calls, views and updates as kernels.
// RUN: ckopt-opt %s --fuse --split-input-file | FileCheck %s

// The statistics of a batch norm's gradient are one kernel over one domain, with the masked
// gradient computed inside it and inside the elementwise kernel after it.
// CHECK-LABEL: func.func @statistics
// CHECK: %[[R:.*]]:2 = ckopt.kernel_call @k_reduction_0(%[[Z:.*]], %[[D:.*]], %arg2)
// CHECK: %[[X:.*]] = ckopt.kernel_call @k_elementwise_0
// CHECK: return %[[X]], %[[R]]#0, %[[R]]#1
// CHECK: func.func private @k_reduction_0
// CHECK-SAME: ckopt.kernel = "reduction"
// CHECK: ckopt.select
// CHECK: ckopt.reduce sum
// CHECK: ckopt.reduce sum
func.func @statistics(%a: tensor<64x32xf32>, %w: tensor<32x32xf32>, %x: tensor<64x32xf32>)
    -> (tensor<64x32xf32>, tensor<32xf32>, tensor<32xf32>) {
  %zero = ckopt.constant dense<0.0> : tensor<f32>
  %z = ckopt.matmul %a, %w : (tensor<64x32xf32>, tensor<32x32xf32>) -> tensor<64x32xf32>
  %d = ckopt.matmul %z, %w : (tensor<64x32xf32>, tensor<32x32xf32>) -> tensor<64x32xf32>
  %m = ckopt.compare gt %z, %zero : (tensor<64x32xf32>, tensor<f32>) -> tensor<64x32xi1>
  %g = ckopt.select %m, %d, %zero : (tensor<64x32xi1>, tensor<64x32xf32>, tensor<f32>) -> tensor<64x32xf32>
  %s = ckopt.reduce sum %g {axes = array<i64: 0>, keepdims = false} : (tensor<64x32xf32>) -> tensor<32xf32>
  %gx = ckopt.mul %g, %x : (tensor<64x32xf32>, tensor<64x32xf32>) -> tensor<64x32xf32>
  %t = ckopt.reduce sum %gx {axes = array<i64: 0>, keepdims = false} : (tensor<64x32xf32>) -> tensor<32xf32>
  %u = ckopt.sub %g, %s : (tensor<64x32xf32>, tensor<32xf32>) -> tensor<64x32xf32>
  %v = ckopt.mul %u, %t : (tensor<64x32xf32>, tensor<32xf32>) -> tensor<64x32xf32>
  return %v, %s, %t : tensor<64x32xf32>, tensor<32xf32>, tensor<32xf32>
}

// -----

// A row op takes cheap elementwise work on its operand in; its result is stored.
// CHECK-LABEL: func.func @row
// CHECK: %[[P:.*]] = ckopt.kernel_call @k_row_0(%arg0, %arg1)
// CHECK: ckopt.kernel_call @k_elementwise_0(%[[P]])
// CHECK: func.func private @k_row_0
// CHECK-SAME: ckopt.kernel = "row"
// CHECK: ckopt.add
// CHECK: ckopt.softmax
func.func @row(%x: tensor<4x16xf32>, %mask: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %0 = ckopt.add %x, %mask : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  %1 = ckopt.softmax %0 {axis = 1} : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %2 = ckopt.neg %1 : (tensor<4x16xf32>) -> tensor<4x16xf32>
  return %2 : tensor<4x16xf32>
}

// -----

// A library kernel holds exactly its op; what it reads is stored. A reshape that moves
// elements between dimensions is a view of the step; one of unit dimensions is not even that.
// CHECK-LABEL: func.func @library
// CHECK: %[[E:.*]] = ckopt.kernel_call @k_elementwise_0(%arg0)
// CHECK: %[[V:.*]] = ckopt.reshape %[[E]] : (tensor<2x4x8xf32>) -> tensor<8x8xf32>
// CHECK: %[[P:.*]] = ckopt.kernel_call @k_library_0(%[[V]], %arg1)
// CHECK: ckopt.kernel_call @k_elementwise_1(%arg2, %[[P]])
// CHECK: func.func private @k_library_0
// CHECK-NEXT: ckopt.matmul
// CHECK-NEXT: return
// CHECK: func.func private @k_elementwise_1
// CHECK: ckopt.reshape %{{.*}} : (tensor<8xf32>) -> tensor<1x8xf32>
func.func @library(%x: tensor<2x4x8xf32>, %w: tensor<8x8xf32>, %b: tensor<8xf32>) -> tensor<8x8xf32> {
  %0 = ckopt.tanh %x : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %1 = ckopt.reshape %0 : (tensor<2x4x8xf32>) -> tensor<8x8xf32>
  %2 = ckopt.matmul %1, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = ckopt.reshape %b : (tensor<8xf32>) -> tensor<1x8xf32>
  %4 = ckopt.add %2, %3 : (tensor<8x8xf32>, tensor<1x8xf32>) -> tensor<8x8xf32>
  return %4 : tensor<8x8xf32>
}

// -----

// A scatter's zero start is a constant of its kernel.
// CHECK-LABEL: func.func @scatter
// CHECK: ckopt.kernel_call @k_structured_0(%arg0, %arg1)
// CHECK: func.func private @k_structured_0
// CHECK: ckopt.constant
// CHECK: ckopt.scatter_add
func.func @scatter(%i: tensor<4xi64>, %u: tensor<4x8xf32>) -> tensor<16x8xf32> {
  %z = ckopt.constant dense<0.0> : tensor<16x8xf32>
  %0 = ckopt.scatter_add %z, %i, %u {axis = 0} : (tensor<16x8xf32>, tensor<4xi64>, tensor<4x8xf32>) -> tensor<16x8xf32>
  return %0 : tensor<16x8xf32>
}

// -----

// An update takes the scaling of its gradient in, says which result is which operand's new
// value, and stands after the last reader of the old value.
// CHECK-LABEL: func.func @update
// CHECK: %[[G:.*]] = ckopt.kernel_call @k_library_0(%arg1)
// CHECK: %[[P:.*]] = ckopt.kernel_call @k_library_1(%arg1, %arg0)
// CHECK: %[[N:.*]] = ckopt.kernel_call @k_elementwise_0(%[[G]], %arg0, %arg2, %arg3) {updates = array<i64: 1, 0>}
// CHECK: return %[[P]], %[[N]]
// CHECK: func.func private @k_elementwise_0
// CHECK: ckopt.mul
// CHECK: ckopt.sgd
func.func @update(%w: tensor<8x8xf32>, %x: tensor<8x8xf32>, %lr: tensor<f32>, %step: tensor<i64>)
    -> (tensor<8x8xf32>, tensor<8x8xf32> {ckopt.updates = 0 : i64}) {
  %half = ckopt.constant dense<0.5> : tensor<f32>
  %g = ckopt.matmul %x, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %s = ckopt.mul %g, %half : (tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
  %n = ckopt.sgd %w, %s, %lr, %step {momentum = 0.0, dampening = 0.0, weight_decay = 0.0} : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>, tensor<i64>) -> tensor<8x8xf32>
  %p = ckopt.matmul %x, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %p, %n : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// Of a padded gradient an update reads what comes first where it lies. Columns that lie apart
// are a copy.
// CHECK-LABEL: func.func @prefix
// CHECK: %[[G:.*]] = ckopt.kernel_call @k_library_0(%arg2)
// CHECK: %[[C:.*]] = ckopt.kernel_call @k_elementwise_0(%[[G]]) : (tensor<8x8xf32>) -> tensor<8x6xf32>
// CHECK: ckopt.kernel_call @k_elementwise_{{[12]}}(%[[G]], %arg0, %arg3, %arg4) {updates = array<i64: 1, 0>}
// CHECK: ckopt.kernel_call @k_elementwise_{{[12]}}(%arg1, %[[C]], %arg3, %arg4)
func.func @prefix(%w: tensor<6x8xf32>, %v: tensor<8x6xf32>, %x: tensor<8x8xf32>, %lr: tensor<f32>, %step: tensor<i64>)
    -> (tensor<6x8xf32> {ckopt.updates = 0 : i64}, tensor<8x6xf32> {ckopt.updates = 1 : i64}) {
  %g = ckopt.matmul %x, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %r = ckopt.slice %g {starts = array<i64: 0, 0>, sizes = array<i64: 6, 8>, steps = array<i64: 1, 1>} : (tensor<8x8xf32>) -> tensor<6x8xf32>
  %c = ckopt.slice %g {starts = array<i64: 0, 0>, sizes = array<i64: 8, 6>, steps = array<i64: 1, 1>} : (tensor<8x8xf32>) -> tensor<8x6xf32>
  %n = ckopt.sgd %w, %r, %lr, %step {momentum = 0.0, dampening = 0.0, weight_decay = 0.0} : (tensor<6x8xf32>, tensor<6x8xf32>, tensor<f32>, tensor<i64>) -> tensor<6x8xf32>
  %m = ckopt.sgd %v, %c, %lr, %step {momentum = 0.0, dampening = 0.0, weight_decay = 0.0} : (tensor<8x6xf32>, tensor<8x6xf32>, tensor<f32>, tensor<i64>) -> tensor<8x6xf32>
  return %n, %m : tensor<6x8xf32>, tensor<8x6xf32>
}

// -----

// A sum that needs the maximum of the same rows is a kernel of its own, also
// where a third reduction of the rows could stand with either.
// CHECK-LABEL: func.func @log_sum_exp
// CHECK: ckopt.kernel_call @k_reduction
// CHECK: ckopt.kernel_call @k_reduction
func.func @log_sum_exp(%x: tensor<8x4xf32>) -> (tensor<8x1xf32>, tensor<8xf32>) {
  %0 = ckopt.reduce max %x {axes = array<i64: 1>, keepdims = true} : (tensor<8x4xf32>) -> tensor<8x1xf32>
  %1 = ckopt.reduce mean %x {axes = array<i64: 1>, keepdims = false} : (tensor<8x4xf32>) -> tensor<8xf32>
  %2 = ckopt.sub %x, %0 : (tensor<8x4xf32>, tensor<8x1xf32>) -> tensor<8x4xf32>
  %3 = ckopt.exp %2 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %4 = ckopt.reduce sum %3 {axes = array<i64: 1>, keepdims = true} : (tensor<8x4xf32>) -> tensor<8x1xf32>
  return %4, %1 : tensor<8x1xf32>, tensor<8xf32>
}
