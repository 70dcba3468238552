// Options of remat: relative budgets, reproducible limits, order, and their errors; one report for all
// functions however the pass is scheduled.
// RUN: ckopt-opt %s --remat=budget=0.75x | FileCheck %s --check-prefix=RATIO
// RUN: ckopt-opt %s --remat="budget=min seed=7 work-limit=200000" -o %t.1
// RUN: ckopt-opt %s --remat="budget=min seed=7 work-limit=200000" -o %t.2
// RUN: diff %t.1 %t.2
// RUN: ckopt-opt %s --remat="budget=min fixed-order" | FileCheck %s --check-prefix=FIXED
// RUN: ckopt-opt %s --pass-pipeline="builtin.module(func.func(remat{report=%t.json}))" -o /dev/null
// RUN: FileCheck %s --check-prefix=REPORT < %t.json
// RUN: not ckopt-opt %s --remat=budget=0x 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not ckopt-opt %s --remat=budget=1.5x 2>&1 | FileCheck %s --check-prefix=MORE
// RUN: not ckopt-opt %s --remat=work-limit=-1 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not ckopt-opt %s --pass-pipeline="builtin.module(func.func(remat{strategy=x}))" 2>&1 | FileCheck %s --check-prefix=STRATEGY
// RUN: not ckopt-opt %s --pass-pipeline="builtin.module(func.func(remat{save=;}))" 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: not ckopt-opt %s --remat=policy=x 2>&1 | FileCheck %s --check-prefix=POLICY

// EMPTY: error: remat: save: there is no rule in ';'
// EMPTY-NOT: error
// POLICY: error: remat: 'x' is none of auto

// RATIO-LABEL: func.func @chain
// RATIO-SAME: budget = 18432 : i64
// RATIO-SAME: full_arena = 24576 : i64

// With the program's order the first runs stand as written.
// FIXED-LABEL: func.func @chain
// FIXED: math.exp
// FIXED: math.sin
// FIXED: math.cos
// FIXED: math.tanh

// REPORT: "format": "ckopt-remat-report/1"
// REPORT: "name": "chain"
// REPORT: "cost_sources": {
// REPORT: "plan": {
// REPORT: "values": [
// REPORT: "name": "other"

// ZERO: error: remat: {{.*}}budget
// MORE: error: remat: {{.*}}budget
// NEGATIVE: error: remat: work-limit is an integer of at least 1
// STRATEGY: error: remat: strategy: 'x' is not one of auto
func.func @chain(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = math.exp %x : tensor<1024xf32>
  %1 = math.sin %0 : tensor<1024xf32>
  %2 = math.cos %1 : tensor<1024xf32>
  %3 = math.tanh %2 : tensor<1024xf32>
  %4 = arith.mulf %3, %3 : tensor<1024xf32>
  %5 = arith.mulf %4, %2 : tensor<1024xf32>
  %6 = arith.mulf %5, %1 : tensor<1024xf32>
  %7 = arith.mulf %6, %0 : tensor<1024xf32>
  return %7 : tensor<1024xf32>
}
func.func @other(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = math.exp %x : tensor<1024xf32>
  return %0 : tensor<1024xf32>
}
