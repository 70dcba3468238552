// Calls learn the scratch that their code needs and which bytes may be shared.
// RUN: ckopt-opt %s --annotate-kernels | FileCheck %s

// CHECK-LABEL: func.func @step
func.func @step(%x: tensor<64x100xf32>, %y: tensor<100xf32>, %big: tensor<300000xf32>)
    -> (tensor<64x100xf32>, tensor<64x100xf32>, tensor<f32>, tensor<64x64xf32>) {
  // Read at the point that is written: reuse. The broadcast operand: none.
  // CHECK: kernel_call @add(%{{.*}}, %{{.*}}) {reuse = array<i64: 0, 0>}
  %0 = ckopt.kernel_call @add(%x, %y) : (tensor<64x100xf32>, tensor<100xf32>) -> tensor<64x100xf32>
  // Rows are read whole before they are written.
  // CHECK: kernel_call @softmax(%{{.*}}) {reuse = array<i64: 0, 0>}
  %1 = ckopt.kernel_call @softmax(%0) : (tensor<64x100xf32>) -> tensor<64x100xf32>
  // One partial sum a chunk.
  // CHECK: kernel_call @sum(%{{.*}}) {workspace = {{[1-9][0-9]*}} : i64}
  %2 = ckopt.kernel_call @sum(%big) : (tensor<300000xf32>) -> tensor<f32>
  // CHECK: kernel_call @matmul(%{{.*}}, %{{.*}})
  %3 = ckopt.kernel_call @matmul(%0, %1) : (tensor<64x100xf32>, tensor<64x100xf32>) -> tensor<64x64xf32>
  return %0, %1, %2, %3 : tensor<64x100xf32>, tensor<64x100xf32>, tensor<f32>, tensor<64x64xf32>
}
func.func private @add(%x: tensor<64x100xf32>, %y: tensor<100xf32>) -> tensor<64x100xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.add %x, %y : (tensor<64x100xf32>, tensor<100xf32>) -> tensor<64x100xf32>
  return %0 : tensor<64x100xf32>
}
func.func private @softmax(%x: tensor<64x100xf32>) -> tensor<64x100xf32> attributes {ckopt.kernel = "row"} {
  %0 = ckopt.softmax %x {axis = 1 : i64} : (tensor<64x100xf32>) -> tensor<64x100xf32>
  return %0 : tensor<64x100xf32>
}
func.func private @sum(%x: tensor<300000xf32>) -> tensor<f32> attributes {ckopt.kernel = "reduction"} {
  %0 = ckopt.reduce sum %x {axes = array<i64: 0>, keepdims = false} : (tensor<300000xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @matmul(%x: tensor<64x100xf32>, %y: tensor<64x100xf32>) -> tensor<64x64xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.matmul %x, %y {transpose_rhs} : (tensor<64x100xf32>, tensor<64x100xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
