// Costs of contractions on a GPU know their tiles, how many blocks fill the
// device's multiprocessors, and their launches: one block of 64 x 64 keeps 131
// of 132 idle, a row more costs another block, and a long k is cut into parts
// that a second launch adds.
// RUN: ckopt-opt %s --annotate-kernels="target=cuda device-rates=h100" | FileCheck %s
// Without rates there is nothing to compare with, and CPUs have no blocks.
// RUN: ckopt-opt %s --annotate-kernels=target=cuda | FileCheck %s --check-prefix=BARE --implicit-check-not=product_time
// RUN: ckopt-opt %s --annotate-kernels | FileCheck %s --check-prefix=CPU --implicit-check-not=product_time --implicit-check-not=ckopt.launches
// A variant for measurements changes the blocks.
// RUN: ckopt-opt %s --annotate-kernels="target=cuda device-rates=h100 contractions=parts=1" | FileCheck %s --check-prefix=PARTS
// A call that libraries may run has room for them, no more than its tensors
// take, or for our own parts beside them, whichever is larger.
// RUN: ckopt-opt %s --annotate-kernels="target=cuda library-workspace=65536 own-beside-libraries" | FileCheck %s --check-prefix=BOTH
// RUN: ckopt-opt %s --annotate-kernels="target=cuda library-workspace=65536" | FileCheck %s --check-prefix=ALL

// BOTH: kernel_call @one{{.*}}workspace = 49152 : i64
// BOTH: kernel_call @long{{.*}}workspace = 262144 : i64
// ALL: kernel_call @one{{.*}}workspace = 65536 : i64
// ALL: kernel_call @long{{.*}}workspace = 65536 : i64

// CHECK: module attributes {ckopt.alignment = 256 : i64
// CPU-NOT: ckopt.alignment
// CHECK: @one{{.*}}ckopt.launches = 1 : i64, ckopt.product_time = 485.29
// BARE: @one{{.*}}ckopt.launches = 1
// CPU: @one
func.func private @one(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.matmul %x, %y : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
// CHECK: @odd{{.*}}ckopt.product_time = 477.82
func.func private @odd(%x: tensor<65x64xf32>, %y: tensor<64x64xf32>) -> tensor<65x64xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.matmul %x, %y : (tensor<65x64xf32>, tensor<64x64xf32>) -> tensor<65x64xf32>
  return %0 : tensor<65x64xf32>
}
// CHECK: @long{{.*}}ckopt.launches = 2 : i64, ckopt.product_time = 30.33
// PARTS: @long{{.*}}ckopt.launches = 1 : i64, ckopt.product_time = 485.29
func.func private @long(%x: tensor<64x4096xf32>, %y: tensor<4096x64xf32>) -> tensor<64x64xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.matmul %x, %y : (tensor<64x4096xf32>, tensor<4096x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
// A tensor that the product is added to is loaded by the tiles, too, beside operands of
// short sums.
// CHECK: @short{{.*}}ckopt.product_time = 2.09090
// CHECK: @added{{.*}}ckopt.product_time = 4.18181
func.func private @short(%x: tensor<2048x8xf32>, %y: tensor<8x2048xf32>) -> tensor<2048x2048xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.matmul %x, %y : (tensor<2048x8xf32>, tensor<8x2048xf32>) -> tensor<2048x2048xf32>
  return %0 : tensor<2048x2048xf32>
}
func.func private @added(%x: tensor<2048x8xf32>, %y: tensor<8x2048xf32>, %z: tensor<2048x2048xf32>) -> tensor<2048x2048xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.matmul_add %x, %y, %z : (tensor<2048x8xf32>, tensor<8x2048xf32>, tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  return %0 : tensor<2048x2048xf32>
}
// Threads of a sum of columns have 8 rows of 4 columns on their way. Elements one by one, of
// rows that are no multiple of a vector, have what the device's threads load and store at once.
// CHECK: @columns{{.*}}ckopt.bytes_in_flight = 8388608
func.func private @columns(%x: tensor<65536x64xf32>) -> tensor<64xf32> attributes {ckopt.kernel = "reduction"} {
  %0 = ckopt.reduce sum %x {axes = array<i64: 0>, keepdims = false} : (tensor<65536x64xf32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}
// CHECK: @halves{{.*}}ckopt.bytes_in_flight = 4194304
func.func private @halves(%x: tensor<65536x64xbf16>) -> tensor<64xbf16> attributes {ckopt.kernel = "reduction"} {
  %0 = ckopt.reduce sum %x {axes = array<i64: 0>, keepdims = false} : (tensor<65536x64xbf16>) -> tensor<64xbf16>
  return %0 : tensor<64xbf16>
}
// CHECK: @scalars{{.*}}ckopt.bytes_in_flight = 2162688
func.func private @scalars(%x: tensor<4096x50257xf32>, %y: tensor<4096x1xf32>) -> tensor<4096x50257xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.sub %x, %y : (tensor<4096x50257xf32>, tensor<4096x1xf32>) -> tensor<4096x50257xf32>
  return %0 : tensor<4096x50257xf32>
}
// CHECK-NOT: bytes_in_flight
func.func @step(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>, %u: tensor<64x4096xf32>, %v: tensor<4096x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %0 = ckopt.kernel_call @one(%x, %y) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = ckopt.kernel_call @long(%u, %v) : (tensor<64x4096xf32>, tensor<4096x64xf32>) -> tensor<64x64xf32>
  return %0, %1 : tensor<64x64xf32>, tensor<64x64xf32>
}
