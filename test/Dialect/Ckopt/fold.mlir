// Constants fold through the reference interpreter: shape arithmetic vanishes,
// what is large, random or state stays.
// RUN: ckopt-opt %s --canonicalize | FileCheck %s

// Shape(x)[1] * 4 as exporters write it: gather, unsqueeze, concat, slice, cast.
// CHECK-LABEL: func @shape_arithmetic
func.func @shape_arithmetic() -> tensor<2xi64> {
  %shape = ckopt.constant dense<[8, 16, 32]> : tensor<3xi64>
  %index = ckopt.constant dense<1> : tensor<i64>
  %dim = ckopt.gather %shape, %index {axis = 0 : i64} : (tensor<3xi64>, tensor<i64>) -> tensor<i64>
  %four = ckopt.constant dense<4> : tensor<i64>
  %product = ckopt.mul %dim, %four : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %vector = ckopt.reshape %product : (tensor<i64>) -> tensor<1xi64>
  %minus = ckopt.constant dense<-1> : tensor<1xi64>
  %both = ckopt.concat %vector, %minus {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  // CHECK-NEXT: %[[C:.*]] = ckopt.constant dense<[64, -1]> : tensor<2xi64>
  // CHECK-NEXT: return %[[C]]
  return %both : tensor<2xi64>
}

// An op with several results becomes several constants.
// CHECK-LABEL: func @several_results
func.func @several_results() -> (tensor<f32>, tensor<f32>) {
  %x = ckopt.constant dense<[1.0, 3.0]> : tensor<2xf32>
  %0:2 = ckopt.moments %x {axes = array<i64: 0>} : (tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  // CHECK-DAG: %[[MEAN:.*]] = ckopt.constant dense<2.000000e+00>
  // CHECK-DAG: %[[VARIANCE:.*]] = ckopt.constant dense<1.000000e+00>
  // CHECK: return %[[MEAN]], %[[VARIANCE]]
  return %0#0, %0#1 : tensor<f32>, tensor<f32>
}

// A large splat stays a splat.
// CHECK-LABEL: func @large_splat
func.func @large_splat() -> tensor<512x512xf32> {
  %a = ckopt.constant dense<2.0> : tensor<512x512xf32>
  %b = ckopt.constant dense<0.5> : tensor<f32>
  %c = ckopt.expand %b : (tensor<f32>) -> tensor<512x1xf32>
  %0 = ckopt.add %a, %c : (tensor<512x512xf32>, tensor<512x1xf32>) -> tensor<512x512xf32>
  %1 = ckopt.sqrt %0 : (tensor<512x512xf32>) -> tensor<512x512xf32>
  // CHECK-NEXT: %[[C:.*]] = ckopt.constant dense<1.58113885> : tensor<512x512xf32>
  // CHECK-NEXT: return %[[C]]
  return %1 : tensor<512x512xf32>
}

// An elementwise op whose results are many different floats is not worth a
// constant; integers fold up to 64 KiB, since shapes need them.
// CHECK-LABEL: func @large_results
func.func @large_results() -> (tensor<1000x2xf32>, tensor<1000x2xi64>) {
  %i = ckopt.iota {axis = 0 : i64} : tensor<1000x2xi64>
  %f = ckopt.iota {axis = 0 : i64} : tensor<1000x2xf32>
  // CHECK-NOT: ckopt.iota {{.*}} : tensor<1000x2xi64>
  // CHECK: ckopt.neg %{{.*}} : (tensor<1000x2xf32>)
  // CHECK-NOT: ckopt.neg
  %0 = ckopt.neg %f : (tensor<1000x2xf32>) -> tensor<1000x2xf32>
  %1 = ckopt.neg %i : (tensor<1000x2xi64>) -> tensor<1000x2xi64>
  return %0, %1 : tensor<1000x2xf32>, tensor<1000x2xi64>
}

// Rounded once, as the op says: 1/3 in f32 and in bf16.
// CHECK-LABEL: func @rounding
func.func @rounding() -> (tensor<f32>, tensor<bf16>) {
  %a = ckopt.constant dense<3.0> : tensor<f32>
  %b = ckopt.constant dense<3.0> : tensor<bf16>
  // CHECK-DAG: dense<0.333333343> : tensor<f32>
  // CHECK-DAG: dense<3.339840e-01> : tensor<bf16>
  %0 = ckopt.reciprocal %a : (tensor<f32>) -> tensor<f32>
  %1 = ckopt.reciprocal %b : (tensor<bf16>) -> tensor<bf16>
  return %0, %1 : tensor<f32>, tensor<bf16>
}

// Masks: comparisons of constants, select of a splat condition.
// CHECK-LABEL: func @masks
func.func @masks(%x: tensor<2x2xf32>) -> (tensor<2x2xi1>, tensor<2x2xf32>) {
  %rows = ckopt.constant dense<[[0], [1]]> : tensor<2x1xi64>
  %cols = ckopt.constant dense<[[0, 1]]> : tensor<1x2xi64>
  %0 = ckopt.compare ge %rows, %cols : (tensor<2x1xi64>, tensor<1x2xi64>) -> tensor<2x2xi1>
  %true = ckopt.constant dense<true> : tensor<2x2xi1>
  %low = ckopt.constant dense<0xFF800000> : tensor<f32>
  %1 = ckopt.select %true, %x, %low : (tensor<2x2xi1>, tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
  // CHECK: %[[MASK:.*]] = ckopt.constant dense<{{\[\[}}true, false], [true, true]]> : tensor<2x2xi1>
  // CHECK-NEXT: return %[[MASK]], %arg0
  return %0, %1 : tensor<2x2xi1>, tensor<2x2xf32>
}

// Dropout, updates and calls never fold, nor what cannot be computed.
// CHECK-LABEL: func @stays
func.func @stays() -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<1xf32>) {
  %x = ckopt.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %s = ckopt.constant dense<1> : tensor<i64>
  %i = ckopt.constant dense<7> : tensor<1xi64>
  // CHECK: ckopt.dropout
  %0 = ckopt.dropout %x, %s, %s {ratio = 0.5 : f64, site = 0 : i64} : (tensor<2xf32>, tensor<i64>, tensor<i64>) -> tensor<2xf32>
  // CHECK: ckopt.accumulate
  %1 = ckopt.accumulate %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  // CHECK: ckopt.kernel_call
  %2 = ckopt.kernel_call @double(%x) : (tensor<2xf32>) -> tensor<2xf32>
  // CHECK: ckopt.gather
  %3 = ckopt.gather %x, %i {axis = 0 : i64} : (tensor<2xf32>, tensor<1xi64>) -> tensor<1xf32>
  return %0, %1, %2, %3 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<1xf32>
}
func.func private @double(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = ckopt.add %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// A constant with a layout keeps it.
// CHECK-LABEL: func @layout
func.func @layout() -> tensor<2x2xf32, #ckopt.layout<[1, 0]>> {
  %x = ckopt.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  // CHECK: ckopt.constant dense<{{\[\[}}1.000000e+00, 2.000000e+00], [3.000000e+00, 4.000000e+00]]> : tensor<2x2xf32, #ckopt.layout<[1, 0]>>
  %0 = ckopt.relayout %x : (tensor<2x2xf32>) -> tensor<2x2xf32, #ckopt.layout<[1, 0]>>
  return %0 : tensor<2x2xf32, #ckopt.layout<[1, 0]>>
}
