// What holds without recomputation alone, or in program order, says so: in the error, in the plan file, in the report and on the function.
// RUN: not ckopt-opt %s --remat="budget=16KiB order-only plan-out=%t.none.json report=%t.none.report.json" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: FileCheck %s --check-prefix=FILE < %t.none.json
// RUN: FileCheck %s --check-prefix=REPORT < %t.none.report.json
// RUN: ckopt-opt %s --remat="budget=min order-only" | FileCheck %s --check-prefix=LEAST
// RUN: ckopt-opt %s --remat="budget=min fixed-order" | FileCheck %s --check-prefix=ORDER

// A stored plan is not what was searched: nothing of that restricts it.
// RUN: ckopt-opt %s --remat="budget=16KiB plan-out=%t.free.json" | FileCheck %s --check-prefix=FREE
// RUN: ckopt-opt %s --remat="order-only plan=%t.free.json" | FileCheck %s --check-prefix=FREE

// NONE: error: no plan of @chain that recomputes nothing fits the budget of 16.0 KiB (16,384 B); {{.*}}; no plan that recomputes nothing needs less than 20.0 KiB (20,480 B) (proven)
// FILE: "proven_minimum":20480,"restricted_to":"order_only","status":"infeasible"
// REPORT: "status": "infeasible",
// REPORT-NEXT: "restricted_to": "order_only"
// LEAST: memory_bound = 20480
// LEAST-SAME: restricted_to = ["order_only"]
// ORDER: restricted_to = ["fixed_order"]
// FREE: ckopt.plan = {
// FREE-NOT: restricted_to
func.func @chain(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = math.exp %x : tensor<1024xf32>
  %1 = math.sin %0 : tensor<1024xf32>
  %2 = math.cos %1 : tensor<1024xf32>
  %3 = math.tanh %2 : tensor<1024xf32>
  %4 = arith.mulf %3, %2 : tensor<1024xf32>
  %5 = arith.mulf %4, %1 : tensor<1024xf32>
  %6 = arith.mulf %5, %0 : tensor<1024xf32>
  %7 = arith.mulf %6, %x : tensor<1024xf32>
  return %7 : tensor<1024xf32>
}
