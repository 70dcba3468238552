// Functions of a module share one budget: a ratio is one of the largest peak, `min` what all of them fit,
// and whatever cannot be planned is told of all functions at once.
// RUN: split-file %s %t
// RUN: ckopt-opt %t/two.mlir --remat=budget=1.0x | FileCheck %s --check-prefix=RATIO
// RUN: ckopt-opt %t/two.mlir --remat=budget=min | FileCheck %s --check-prefix=MIN
// RUN: ckopt-opt %t/bad.mlir --remat=budget=1MiB --verify-diagnostics
// RUN: not ckopt-opt %t/two.mlir --pass-pipeline="builtin.module(func.func(remat{budget=0.6}))" 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: ckopt-opt %t/two.mlir --pass-pipeline="builtin.module(func.func(remat{budget=min functions=small,none plan-out=%t/plan.json}))" -o /dev/null 2>&1 | FileCheck %s --check-prefix=NAMES
// RUN: ckopt-opt %t/two.mlir --pass-pipeline="builtin.module(func.func(remat{budget=min plan-out=%t/plan.json}))" -o /dev/null
// RUN: ckopt-opt %t/two.mlir --pass-pipeline="builtin.module(func.func(remat{plan=%t/plan.json}))" | FileCheck %s --check-prefix=BACK

// Functions that are planned one by one: one plan is written, that of the first, and read back for it.
// NAMES: warning: remat: functions: there is no function 'none'
// NAMES-NOT: warning
// BACK-LABEL: func.func @small
// BACK-SAME: budget = 8192 : i64
// BACK-LABEL: func.func @large
// BACK-NOT: budget =

// Nothing has to be computed again within the largest peak.
// RATIO-LABEL: func.func @small
// RATIO-SAME: budget = 28672 : i64
// RATIO-LABEL: func.func @large
// RATIO-SAME: budget = 28672 : i64
// RATIO-SAME: full_arena = 28672 : i64
// RATIO-SAME: recomputed = 0 : i64

// The second one needs more than the first.
// MIN-LABEL: func.func @small
// MIN-SAME: ckopt.plan = {arena = 16384 : i64, {{.*}}budget = [[LEAST:[0-9]+]] : i64
// MIN-LABEL: func.func @large
// MIN-SAME: ckopt.plan = {arena = [[LEAST]] : i64
// MIN-SAME: budget = [[LEAST]] : i64

// OPTION: error: remat: budget: '0.6' is not a byte size: {{.*}}'0.6x' for a share
// OPTION-NOT: error: remat

//--- two.mlir
func.func @small(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = math.exp %x : tensor<1024xf32>
  return %0 : tensor<1024xf32>
}
func.func @large(%x: tensor<1024xf32>, %y: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = arith.divf %x, %y : tensor<1024xf32>
  %1 = math.exp %0 : tensor<1024xf32>
  %2 = math.sin %1 : tensor<1024xf32>
  %3 = math.tanh %2 : tensor<1024xf32>
  %4 = arith.addf %0, %3 : tensor<1024xf32>
  %5 = arith.addf %4, %2 : tensor<1024xf32>
  %6 = arith.addf %5, %1 : tensor<1024xf32>
  return %6 : tensor<1024xf32>
}

//--- bad.mlir
// expected-error @+1 {{planning needs static shapes; the size of 'tensor<?xf32>' is unknown}}
func.func @shape(%x: tensor<?xf32>) {
  return
}
// expected-error @+1 {{planning needs ranked tensors; the size of 'tensor<*xf32>' is unknown}}
func.func @rank(%x: tensor<*xf32>) {
  return
}
