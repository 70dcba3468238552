// Batch norm and its gradient share the reciprocal deviation; the gradient's two
// sums read the same operands, so that they become one kernel.
// RUN: ckopt-opt %s --decompose --canonicalize --cse | FileCheck %s
// RUN: ckopt-opt %s --decompose=max-joined=3 --canonicalize --cse | FileCheck %s --check-prefix=SPLIT

// CHECK-LABEL: func.func @step(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<2x3x4x4xf32>, %[[S:[^:]*]]: tensor<3xf32>, %[[B:[^:]*]]: tensor<3xf32>, %[[G:[^:]*]]: tensor<2x3x4x4xf32>
// CHECK:         %[[MEAN:.*]], %[[VAR:.*]] = ckopt.moments %[[X]] {axes = array<i64: 0, 2, 3>}
// CHECK:         %[[RSTD:.*]] = ckopt.rsqrt %{{.*}} : (tensor<3xf32>) -> tensor<3xf32>
// CHECK:         %[[K:.*]] = ckopt.mul %[[S]], %[[RSTD]]
// CHECK:         %[[M4:.*]] = ckopt.reshape %[[MEAN]] : (tensor<3xf32>) -> tensor<1x3x1x1xf32>
// CHECK:         %[[C:.*]] = ckopt.sub %[[X]], %[[M4]]
// CHECK:         %[[SUM:.*]] = ckopt.reduce{{ *}} sum %[[G]] {axes = array<i64: 0, 2, 3>
// CHECK:         %[[GC:.*]] = ckopt.mul %[[G]], %[[C]]
// CHECK:         %[[MOMENT:.*]] = ckopt.reduce{{ *}} sum %[[GC]] {axes = array<i64: 0, 2, 3>
// CHECK:         %[[DSCALE:.*]] = ckopt.mul %[[MOMENT]], %[[RSTD]]
// CHECK-NOT:     ckopt.rsqrt
// CHECK:         return %{{.*}}, %{{.*}}, %[[DSCALE]], %[[SUM]]
func.func @step(%x: tensor<2x3x4x4xf32>, %s: tensor<3xf32>, %b: tensor<3xf32>, %g: tensor<2x3x4x4xf32>)
    -> (tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>) {
  %y, %m, %v = ckopt.batch_norm %x, %s, %b {epsilon = 1.0e-5}
    : (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>)
  %dx, %ds, %db = ckopt.batch_norm_grad %g, %x, %s, %m, %v {epsilon = 1.0e-5}
    : (tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
    -> (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>)
  return %y, %dx, %ds, %db : tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>
}

// What has no elements is multiplied to zeros; what has some is left alone.
// CHECK-LABEL: func.func @empty(
// CHECK-DAG:     %[[SUMS:.*]] = ckopt.constant dense<0.000000e+00> : tensor<4x3xf32>
// CHECK-DAG:     %[[ROWS:.*]] = ckopt.constant dense<0.000000e+00> : tensor<0x3xf32>
// CHECK-DAG:     %[[WEIGHT:.*]] = ckopt.constant dense<0.000000e+00> : tensor<2x3x1xf32>
// CHECK-DAG:     %[[FULL:.*]] = ckopt.matmul %{{.*}}, %{{.*}} : (tensor<4x3xf32>, tensor<3x3xf32>) -> tensor<4x3xf32>
// CHECK-NOT:     ckopt.conv
// CHECK:         return %[[SUMS]], %[[ROWS]], %[[WEIGHT]], %[[FULL]]
func.func @empty(%a: tensor<4x0xf32>, %b: tensor<0x3xf32>, %c: tensor<4x3xf32>, %d: tensor<3x3xf32>,
                 %g: tensor<0x2x5xf32>, %x: tensor<0x3x5xf32>)
    -> (tensor<4x3xf32>, tensor<0x3xf32>, tensor<2x3x1xf32>, tensor<4x3xf32>) {
  %0 = ckopt.matmul %a, %b : (tensor<4x0xf32>, tensor<0x3xf32>) -> tensor<4x3xf32>
  %1 = ckopt.matmul %a, %c {transpose_lhs} : (tensor<4x0xf32>, tensor<4x3xf32>) -> tensor<0x3xf32>
  %2 = ckopt.conv_weight_grad %g, %x {strides = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>, dilations = array<i64: 1>, groups = 1 : i64}
    : (tensor<0x2x5xf32>, tensor<0x3x5xf32>) -> tensor<2x3x1xf32>
  %3 = ckopt.matmul %c, %d : (tensor<4x3xf32>, tensor<3x3xf32>) -> tensor<4x3xf32>
  return %0, %1, %2, %3 : tensor<4x3xf32>, tensor<0x3xf32>, tensor<2x3x1xf32>, tensor<4x3xf32>
}

// Wide concatenations: three of five tensors are copied twice where three fit, and
// one that fits is left alone.
// CHECK-LABEL: func.func @wide(
// CHECK:         ckopt.concat %arg0, %arg1, %arg2, %arg3, %arg4 {
// CHECK:         ckopt.concat %arg0, %arg1, %arg2 {
// SPLIT-LABEL: func.func @wide(
// SPLIT:         %[[FIRST:.*]] = ckopt.concat %arg0, %arg1, %arg2 {axis = 0 : i64}{{.*}} -> tensor<6xf32>
// SPLIT:         %[[ALL:.*]] = ckopt.concat %[[FIRST]], %arg3, %arg4 {axis = 0 : i64}{{.*}} -> tensor<15xf32>
// SPLIT:         return %[[ALL]], %[[FIRST]]
func.func @wide(%a: tensor<1xf32>, %b: tensor<2xf32>, %c: tensor<3xf32>, %d: tensor<4xf32>, %e: tensor<5xf32>)
    -> (tensor<15xf32>, tensor<6xf32>) {
  %0 = ckopt.concat %a, %b, %c, %d, %e {axis = 0 : i64} : (tensor<1xf32>, tensor<2xf32>, tensor<3xf32>, tensor<4xf32>, tensor<5xf32>) -> tensor<15xf32>
  %1 = ckopt.concat %a, %b, %c {axis = 0 : i64} : (tensor<1xf32>, tensor<2xf32>, tensor<3xf32>) -> tensor<6xf32>
  return %0, %1 : tensor<15xf32>, tensor<6xf32>
}
