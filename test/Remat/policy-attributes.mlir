// Attributes on ops say what to keep and what to compute again; fuse hands them on to calls, equal kernels stay one.
// REQUIRES: compiler
// RUN: ckopt-opt %s --fuse | FileCheck %s --check-prefix=FUSE
// RUN: ckopt-opt %s --fuse --annotate-kernels --remat | FileCheck %s --check-prefix=REMAT
// RUN: ckopt-opt %s --fuse --annotate-kernels --remat=auto=softmax. | FileCheck %s --check-prefix=AUTO
// RUN: ckopt-opt %s --fuse --annotate-kernels --remat="budget=min remarks" 2>&1 >/dev/null | FileCheck %s --check-prefix=SAVE --implicit-check-not="recomputed: softmax1"

// FUSE-LABEL: func.func @step
// FUSE: ckopt.kernel_call @[[SOFTMAX:k_row_0]](%arg0) {ckopt.remat = "save"}
// FUSE: ckopt.kernel_call @[[SOFTMAX]]({{.*}}) {ckopt.remat = "recompute"}
// FUSE: ckopt.kernel_call @[[SOFTMAX]]({{.*}}) {ckopt.checkpoint = "tail"}
// FUSE: func.func private @k_row_0
// FUSE-NOT: ckopt.remat
// FUSE-NOT: ckopt.checkpoint

// The second one runs again by its attribute, the third one as part of its region.
// REMAT-LABEL: func.func @step
// REMAT-SAME: recomputed = 2 : i64, regions = 1 : i64
// AUTO-LABEL: func.func @step
// AUTO-SAME: recomputed = 0 : i64
// SAVE: recomputed: softmax2
func.func @step(%x: tensor<64x256xf32>) -> (tensor<64x256xf32>, tensor<64x256xf32>) {
  %0 = ckopt.softmax %x {axis = 1 : i64, ckopt.remat = "save"} : (tensor<64x256xf32>) -> tensor<64x256xf32> loc("softmax1")
  %1 = ckopt.softmax %0 {axis = 1 : i64, ckopt.remat = "recompute"} : (tensor<64x256xf32>) -> tensor<64x256xf32> loc("softmax2")
  %2 = ckopt.softmax %1 {axis = 1 : i64, ckopt.checkpoint = "tail"} : (tensor<64x256xf32>) -> tensor<64x256xf32> loc("softmax3")
  %loss = ckopt.softmax %2 {axis = 0 : i64} : (tensor<64x256xf32>) -> tensor<64x256xf32> loc("loss")
  %3 = ckopt.softmax_grad %2, %2 {axis = 1 : i64} : (tensor<64x256xf32>, tensor<64x256xf32>) -> tensor<64x256xf32> loc("grad/softmax3")
  %4 = ckopt.softmax_grad %1, %3 {axis = 1 : i64} : (tensor<64x256xf32>, tensor<64x256xf32>) -> tensor<64x256xf32> loc("grad/softmax2")
  %5 = ckopt.softmax_grad %0, %4 {axis = 1 : i64} : (tensor<64x256xf32>, tensor<64x256xf32>) -> tensor<64x256xf32> loc("grad/softmax1")
  return %loss, %5 : tensor<64x256xf32>, tensor<64x256xf32>
}
