// A scatter copies what it starts from, 16 bytes a thread on a GPU, unless its
// result takes the same bytes: then the code sees equal addresses and copies
// nothing.
// RUN: ckopt-opt %s --lower-kernels | FileCheck %s
// RUN: ckopt-opt %s --lower-kernels=target=cuda | FileCheck %s --check-prefix=CUDA
// RUN: ckopt-opt %s --annotate-kernels | FileCheck %s --check-prefix=REUSE

// REUSE: kernel_call @scatter{{.*}}reuse = array<i64: 0, 0>
func.func @step(%x: tensor<50x64xf32>, %i: tensor<9xi64>, %u: tensor<9x64xf32>) -> tensor<50x64xf32> {
  %0 = ckopt.kernel_call @scatter(%x, %i, %u) : (tensor<50x64xf32>, tensor<9xi64>, tensor<9x64xf32>) -> tensor<50x64xf32>
  return %0 : tensor<50x64xf32>
}
// CHECK: func.func @scatter.s0
// CHECK: %[[MOVES:.*]] = llvm.icmp "ne" %{{.*}}, %{{.*}} : !llvm.ptr
// CHECK-NEXT: scf.if %[[MOVES]] {
// CHECK: llvm.store
// CHECK: func.func @scatter.s1
// CHECK-NOT: llvm.icmp
// CUDA: func.func @scatter_s0({{.*}}ckopt.gpu.grid = 4 : i64
// CUDA: %[[MOVES:.*]] = llvm.icmp "ne" %arg0, %arg3 : !llvm.ptr
// CUDA-NEXT: scf.if %[[MOVES]] {
// CUDA: llvm.store %{{.*}} : vector<4xf32>, !llvm.ptr
// CUDA: func.func @scatter_s1
// CUDA-NOT: llvm.icmp
func.func private @scatter(%x: tensor<50x64xf32>, %i: tensor<9xi64>, %u: tensor<9x64xf32>) -> tensor<50x64xf32> attributes {ckopt.kernel = "structured"} {
  %0 = ckopt.scatter_add %x, %i, %u {axis = 0 : i64} : (tensor<50x64xf32>, tensor<9xi64>, tensor<9x64xf32>) -> tensor<50x64xf32>
  return %0 : tensor<50x64xf32>
}
