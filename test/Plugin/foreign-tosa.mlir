// A chain of TOSA as converters print it is planned.
// REQUIRES: mlir-tools, mlir-22
// RUN: mlir-opt %s %load_remat --pass-pipeline="builtin.module(func.func(remat{budget=0.85x}))" | FileCheck %s

// A reshape is a view; what is cheap runs again, not the convolution, whose work counts.
// CHECK-LABEL: func.func @network
// CHECK: tosa.conv2d
// CHECK-NOT: tosa.conv2d
// CHECK: ckopt.clone
// CHECK-NOT: tosa.conv2d
// CHECK: return
func.func @network(%x: tensor<1x16x16x8xf32>, %w: tensor<8x3x3x8xf32>, %b: tensor<8xf32>) -> tensor<1x2048xf32> {
  %zp = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %0 = tosa.conv2d %x, %w, %b, %zp, %zp {acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>} : (tensor<1x16x16x8xf32>, tensor<8x3x3x8xf32>, tensor<8xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x16x16x8xf32>
  %1 = tosa.tanh %0 : (tensor<1x16x16x8xf32>) -> tensor<1x16x16x8xf32>
  %2 = tosa.exp %1 : (tensor<1x16x16x8xf32>) -> tensor<1x16x16x8xf32>
  %3 = tosa.exp %2 : (tensor<1x16x16x8xf32>) -> tensor<1x16x16x8xf32>
  %4 = tosa.add %3, %2 : (tensor<1x16x16x8xf32>, tensor<1x16x16x8xf32>) -> tensor<1x16x16x8xf32>
  %5 = tosa.add %4, %1 : (tensor<1x16x16x8xf32>, tensor<1x16x16x8xf32>) -> tensor<1x16x16x8xf32>
  %7 = tosa.add %5, %0 : (tensor<1x16x16x8xf32>, tensor<1x16x16x8xf32>) -> tensor<1x16x16x8xf32>
  %s = tosa.const_shape {values = dense<[1, 2048]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %8 = tosa.reshape %7, %s : (tensor<1x16x16x8xf32>, !tosa.shape<2>) -> tensor<1x2048xf32>
  return %8 : tensor<1x2048xf32>
}
