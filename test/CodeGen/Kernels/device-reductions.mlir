// Sums of columns start two blocks of 256 threads for each multiprocessor, with
// 16 bytes of columns a thread, or as many as have 16 rows each; then as many
// threads as there are chunks for, up to 256, combine those of a column.
// RUN: ckopt-opt %s --annotate-kernels="target=cuda multiprocessors=132" | FileCheck %s
// RUN: ckopt-opt %s --annotate-kernels="target=cuda multiprocessors=8" | FileCheck %s --check-prefix=FEW
// RUN: ckopt-opt %s --lower-kernels="target=cuda" | FileCheck %s --check-prefix=CODE

// 4,182 chunks of 48 rows, whose sums the workspace has; 8 rows of 16 bytes are
// on their way to each of 66,912 threads.
// CHECK: kernel_call @sums{{.*}}workspace = 1070592 : i64
// CHECK: kernel_call @halves{{.*}}workspace = 1073152 : i64
// CHECK: @sums{{.*}}bytes_in_flight = 8564736 : i64
// CHECK: @halves{{.*}}bytes_in_flight = 4292608 : i64
// FEW: @sums{{.*}}bytes_in_flight = 524288 : i64
// FEW: @halves{{.*}}bytes_in_flight = 262144 : i64
func.func @step(%x: tensor<200704x64xf32>, %h: tensor<3136x2048xbf16>) -> (tensor<64xf32>, tensor<2048xf32>) {
  %0 = ckopt.kernel_call @sums(%x) : (tensor<200704x64xf32>) -> tensor<64xf32>
  %1 = ckopt.kernel_call @halves(%h) : (tensor<3136x2048xbf16>) -> tensor<2048xf32>
  return %0, %1 : tensor<64xf32>, tensor<2048xf32>
}

// CODE: @sums_s0({{.*}}ckopt.gpu.block = 256 : i64, ckopt.gpu.grid = 262 : i64
// CODE: @sums_s1({{.*}}ckopt.gpu.block = 256 : i64, ckopt.gpu.grid = 64 : i64
func.func private @sums(%x: tensor<200704x64xf32>) -> tensor<64xf32> attributes {ckopt.kernel = "reduction"} {
  %0 = ckopt.reduce sum %x {axes = array<i64: 0>, keepdims = false} : (tensor<200704x64xf32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}
// 131 chunks: a warp.
// CODE: @halves_s0({{.*}}ckopt.gpu.block = 256 : i64, ckopt.gpu.grid = 262 : i64
// CODE: @halves_s1({{.*}}ckopt.gpu.block = 32 : i64, ckopt.gpu.grid = 2048 : i64
func.func private @halves(%x: tensor<3136x2048xbf16>) -> tensor<2048xf32> attributes {ckopt.kernel = "reduction"} {
  %0 = ckopt.cast %x : (tensor<3136x2048xbf16>) -> tensor<3136x2048xf32>
  %1 = ckopt.reduce sum %0 {axes = array<i64: 0>, keepdims = false} : (tensor<3136x2048xf32>) -> tensor<2048xf32>
  return %1 : tensor<2048xf32>
}
// Rows of two loops, which a broadcast operand keeps apart, are one range.
// CODE: @both_s0({{.*}}ckopt.gpu.block = 256 : i64, ckopt.gpu.grid = 96 : i64
func.func private @both(%x: tensor<8x256x768xf32>, %y: tensor<256x768xf32>) -> tensor<768xf32> attributes {ckopt.kernel = "reduction"} {
  %0 = ckopt.mul %x, %y : (tensor<8x256x768xf32>, tensor<256x768xf32>) -> tensor<8x256x768xf32>
  %1 = ckopt.reduce sum %0 {axes = array<i64: 0, 1>, keepdims = false} : (tensor<8x256x768xf32>) -> tensor<768xf32>
  return %1 : tensor<768xf32>
}
