// Order and recomputation of kernel calls under a budget.
// REQUIRES: compiler
// RUN: ckopt-opt %s --remat | FileCheck %s --check-prefix=FREE
// RUN: ckopt-opt %s --remat=budget=min | FileCheck %s --check-prefix=MIN
// RUN: ckopt-opt %s --remat=budget=min --cse --canonicalize --cse | FileCheck %s --check-prefix=MIN
// RUN: ckopt-opt %s --remat="budget=min report=%t.json" --plan-memory | FileCheck %s --check-prefix=PLACED
// RUN: FileCheck %s --check-prefix=REPORT < %t.json
// RUN: ckopt-opt %s --remat="budget=min remarks" 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

func.func private @f(%x: tensor<256xf32>) -> tensor<256xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.exp %x : (tensor<256xf32>) -> tensor<256xf32>
  return %0 : tensor<256xf32>
}
func.func private @g(%x: tensor<256xf32>, %y: tensor<256xf32>) -> tensor<256xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.mul %x, %y : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32>
  return %0 : tensor<256xf32>
}

// Without a budget nothing runs twice, and the plan is known to be optimal.
// FREE-LABEL: func.func @step
// FREE-SAME: ckopt.plan = {{{.*}}recomputed = 0 : i64{{.*}}status = "optimal"
// FREE-NOT: clone

// Under the least budget early values are made again for the way back; clones differ from
// their originals in their number, so that CSE keeps them.
// MIN-LABEL: func.func @step
// MIN: ckopt.kernel_call @f(%arg0)
// MIN: ckopt.kernel_call @f({{.*}}clone = 1 : i64

// What runs again and what is kept is told on request, by the name of its source.
// REMARK: kernels.mlir:{{.*}}: remark: recomputed: f #{{[0-9]+}}, 1.00 KiB from step 0 to step {{[0-9]+}}, made {{[2-9]}} times for {{.*}} more: gone for {{[0-9]+}} steps, in which the load reaches 4.00 KiB; with it, it would pass the budget by
// REMARK: remark: kept: g #{{[0-9]+}}, 1.00 KiB from step {{[0-9]+}} to step {{[0-9]+}}, made once for {{.*}}: making it again would cost

// The offsets of the plan survive, and the arena is within the budget.
// PLACED-LABEL: func.func @step
// PLACED-SAME: ckopt.arena_bytes = [[BYTES:[0-9]+]] : i64
// PLACED-SAME: arena = [[BYTES]] : i64
// PLACED-SAME: budget = [[BYTES]] : i64

// REPORT: "format": "ckopt-remat-report/1"
// REPORT: "name": "step"
// REPORT: "budget_bytes"
// REPORT: "memory_bound_bytes"
// REPORT: "recomputed_steps"
func.func @step(%x: tensor<256xf32>) -> tensor<256xf32> {
  %0 = ckopt.kernel_call @f(%x) : (tensor<256xf32>) -> tensor<256xf32>
  %1 = ckopt.kernel_call @f(%0) : (tensor<256xf32>) -> tensor<256xf32>
  %2 = ckopt.kernel_call @f(%1) : (tensor<256xf32>) -> tensor<256xf32>
  %3 = ckopt.kernel_call @f(%2) : (tensor<256xf32>) -> tensor<256xf32>
  %4 = ckopt.kernel_call @g(%3, %2) : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32>
  %5 = ckopt.kernel_call @g(%4, %1) : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32>
  %6 = ckopt.kernel_call @g(%5, %0) : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32>
  return %6 : tensor<256xf32>
}
