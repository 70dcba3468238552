// Elementwise ops survive printing, the generic form and bytecode.
// RUN: ckopt-opt %s | ckopt-opt | FileCheck %s
// RUN: ckopt-opt %s --mlir-print-op-generic | ckopt-opt | FileCheck %s
// RUN: ckopt-opt %s --emit-bytecode | ckopt-opt | FileCheck %s

// CHECK-LABEL: func @unary
func.func @unary(%x: tensor<2x3xf32>, %i: tensor<4xi64>, %b: tensor<4xi1>) {
  // CHECK: ckopt.neg %{{.*}} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %0 = ckopt.neg %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: ckopt.abs %{{.*}} : (tensor<4xi64>) -> tensor<4xi64>
  %1 = ckopt.abs %i : (tensor<4xi64>) -> tensor<4xi64>
  // CHECK: ckopt.sign
  %2 = ckopt.sign %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: ckopt.exp
  %3 = ckopt.exp %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: ckopt.log
  %4 = ckopt.log %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: ckopt.sqrt
  %5 = ckopt.sqrt %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: ckopt.rsqrt
  %6 = ckopt.rsqrt %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: ckopt.reciprocal
  %7 = ckopt.reciprocal %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: ckopt.tanh
  %8 = ckopt.tanh %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: ckopt.sigmoid
  %9 = ckopt.sigmoid %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: ckopt.erf
  %10 = ckopt.erf %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: ckopt.sin
  %11 = ckopt.sin %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: ckopt.cos
  %12 = ckopt.cos %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: ckopt.floor
  %13 = ckopt.floor %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: ckopt.ceil
  %14 = ckopt.ceil %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: ckopt.round
  %15 = ckopt.round %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: ckopt.relu
  %16 = ckopt.relu %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: ckopt.softplus
  %17 = ckopt.softplus %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: ckopt.not %{{.*}} : (tensor<4xi1>) -> tensor<4xi1>
  %18 = ckopt.not %b : (tensor<4xi1>) -> tensor<4xi1>
  // CHECK: ckopt.gelu %{{.*}} {tanh} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %19 = ckopt.gelu %x {tanh} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: ckopt.gelu %{{.*}} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %20 = ckopt.gelu %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: ckopt.clip %{{.*}} {max = 6.000000e+00 : f64, min = 0.000000e+00 : f64}
  %21 = ckopt.clip %x {min = 0.0 : f64, max = 6.0 : f64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: ckopt.cast %{{.*}} : (tensor<4xi64>) -> tensor<4xbf16>
  %22 = ckopt.cast %i : (tensor<4xi64>) -> tensor<4xbf16>
  return
}

// CHECK-LABEL: func @binary
func.func @binary(%x: tensor<2x3xf32>, %y: tensor<3xf32>, %i: tensor<4xui8>, %b: tensor<4xi1>) {
  // CHECK: ckopt.add %{{.*}}, %{{.*}} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %0 = ckopt.add %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK: ckopt.sub %{{.*}} : (tensor<3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = ckopt.sub %y, %x : (tensor<3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: ckopt.mul
  %2 = ckopt.mul %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK: ckopt.div %{{.*}} : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  %3 = ckopt.div %i, %i : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  // CHECK: ckopt.mod %{{.*}} {fmod} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %4 = ckopt.mod %x, %y {fmod} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK: ckopt.pow
  %5 = ckopt.pow %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK: ckopt.maximum
  %6 = ckopt.maximum %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK: ckopt.minimum
  %7 = ckopt.minimum %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK: ckopt.and
  %8 = ckopt.and %b, %b : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  // CHECK: ckopt.or
  %9 = ckopt.or %b, %b : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  // CHECK: ckopt.xor
  %10 = ckopt.xor %b, %b : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  // CHECK: ckopt.compare le %{{.*}}, %{{.*}} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xi1>
  %11 = ckopt.compare le %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xi1>
  // CHECK: ckopt.select %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2x3xi1>, tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %12 = ckopt.select %11, %x, %y : (tensor<2x3xi1>, tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}

// CHECK-LABEL: func @dropout
func.func @dropout(%x: tensor<8xf32>, %seed: tensor<i64>, %step: tensor<i64>) -> tensor<8xf32> {
  // CHECK: ckopt.dropout %{{.*}}, %{{.*}}, %{{.*}} {ratio = 1.000000e-01 : f64, site = 3 : i64} : (tensor<8xf32>, tensor<i64>, tensor<i64>) -> tensor<8xf32>
  %0 = ckopt.dropout %x, %seed, %step {ratio = 0.1 : f64, site = 3 : i64} : (tensor<8xf32>, tensor<i64>, tensor<i64>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: func @random
func.func @random(%seed: tensor<i64>, %step: tensor<i64>) -> (tensor<8xf32>, tensor<2x3xf64>) {
  // CHECK: ckopt.random uniform %{{.*}}, %{{.*}} {site = 3 : i64} : (tensor<i64>, tensor<i64>) -> tensor<8xf32>
  %0 = ckopt.random uniform %seed, %step {site = 3 : i64} : (tensor<i64>, tensor<i64>) -> tensor<8xf32>
  // CHECK: ckopt.random normal %{{.*}}, %{{.*}} {site = 4 : i64} : (tensor<i64>, tensor<i64>) -> tensor<2x3xf64>
  %1 = ckopt.random normal %seed, %step {site = 4 : i64} : (tensor<i64>, tensor<i64>) -> tensor<2x3xf64>
  return %0, %1 : tensor<8xf32>, tensor<2x3xf64>
}

// A layout is part of the type; the result may have another one than the
// operand, and the identity order is no layout.
// CHECK-LABEL: func @layouts
func.func @layouts(%x: tensor<2x3x4x5xf32, #ckopt.layout<[0, 2, 3, 1]>>) {
  // CHECK: ckopt.relu %{{.*}} : (tensor<2x3x4x5xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<2x3x4x5xf32>
  %0 = ckopt.relu %x : (tensor<2x3x4x5xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<2x3x4x5xf32>
  return
}
