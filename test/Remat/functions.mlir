// Functions of any kind, in modules inside of modules; one pass on single functions does not read others.
// RUN: ckopt-opt %s --remat="budget=min functions=inner::f,g,outer" | FileCheck %s
// RUN: ckopt-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(remat{budget=min})))" | FileCheck %s --check-prefix=GPU
// RUN: not ckopt-opt %s --pass-pipeline="builtin.module(func.func(remat{budget=1MiB functions=outer}))" -o /dev/null 2>&1 | FileCheck %s --check-prefix=SINGLE
// RUN: ckopt-opt %s --remat="report=%t.json" -o /dev/null
// RUN: FileCheck %s --check-prefix=REPORT < %t.json

// SINGLE: error: @outer cannot be held to a budget: its plan would not count what @callee needs: a pass on one function must not read others; builtin.module(remat{...}) counts it

// REPORT-DAG: "name": "f"
// REPORT-DAG: "name": "inner::f"
// REPORT-DAG: "name": "device::g"

// CHECK-LABEL: func.func @f
// CHECK-NOT: ckopt.plan
// CHECK-SAME: {
func.func @f(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = math.exp %x : tensor<1024xf32>
  return %0 : tensor<1024xf32>
}

// The lowering overwrites this argument, so that nothing is gained by recomputation.
// CHECK: module @inner
// CHECK: func.func @f
// CHECK-SAME: ckopt.plan
// CHECK-SAME: unchanged
module @inner {
  func.func @f(%x: tensor<1024xf32>) -> tensor<1024xf32> {
    %0 = math.exp %x : tensor<1024xf32>
    %1 = math.exp %0 : tensor<1024xf32>
    %2 = math.exp %1 : tensor<1024xf32>
    %3 = arith.mulf %2, %1 : tensor<1024xf32>
    %4 = arith.mulf %3, %0 : tensor<1024xf32>
    return %4 : tensor<1024xf32>
  }
}

// CHECK: gpu.func @g
// CHECK-SAME: ckopt.plan
// CHECK: ckopt.barrier
// GPU: gpu.func @g
// GPU-SAME: ckopt.plan
// GPU: ckopt.barrier
gpu.module @device {
  gpu.func @g(%x: tensor<1024xf32>, %m: memref<1024xf32>) {
    %0 = math.exp %x : tensor<1024xf32>
    %1 = math.exp %0 : tensor<1024xf32>
    %2 = math.exp %1 : tensor<1024xf32>
    %3 = arith.mulf %2, %1 : tensor<1024xf32>
    %4 = arith.mulf %3, %0 : tensor<1024xf32>
    bufferization.materialize_in_destination %4 in writable %m : (tensor<1024xf32>, memref<1024xf32>) -> ()
    gpu.return
  }
  // Nothing here is a tensor: it is left alone.
  // CHECK-LABEL: gpu.func @scalars
  // CHECK-NOT: ckopt.plan
  gpu.func @scalars(%m: memref<?xf32>) {
    gpu.return
  }
}

// CHECK-LABEL: func.func @outer
// CHECK-SAME: ckopt.plan
func.func @outer(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = call @callee(%x) : (tensor<1024xf32>) -> tensor<1024xf32>
  return %0 : tensor<1024xf32>
}
func.func private @callee(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = math.exp %x : tensor<1024xf32>
  return %0 : tensor<1024xf32>
}
