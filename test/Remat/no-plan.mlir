// Where nothing fits, report and plan file say what is known: proven bound, smallest budget found, names in the way.
// RUN: not ckopt-opt %s --remat="budget=4KiB report=%t.json plan-out=%t.plan.json" 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: FileCheck %s --check-prefix=REPORT < %t.json
// RUN: FileCheck %s --check-prefix=PLAN < %t.plan.json
// RUN: not ckopt-opt %s --pass-pipeline="builtin.module(func.func(remat{budget=4KiB report=%t.each.json}))" 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: FileCheck %s --check-prefix=REPORT < %t.each.json

// A report that cannot be written is told beside it.
// RUN: not ckopt-opt %s --remat="budget=4KiB report=%t/no/such/folder/r.json" 2>&1 | FileCheck %s --check-prefix=BOTH

// A hint is a start that is never lost, and one for another function says nothing.
// RUN: ckopt-opt %s --remat="budget=min plan-out=%t.min.json" -o /dev/null
// RUN: ckopt-opt %s --remat="budget=20KiB strategy=none plan-hint=%t.min.json" | FileCheck %s --check-prefix=HINT
// RUN: not ckopt-opt %s --remat="plan=%t.min.json plan-hint=%t.min.json" 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not ckopt-opt %s --remat="plan=%t.min.json report=%t.min.json" 2>&1 | FileCheck %s --check-prefix=OVER
// OVER: error: remat: report={{.*}}.min.json would replace plan, '{{.*}}.min.json'
// RUN: not ckopt-opt %s --remat="plan-hint=%t.none" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: sed 's/"graph_hash":"/"graph_hash":"0/' %t.min.json > %t.other.json
// RUN: not ckopt-opt %s --remat="plan-hint=%t.other.json" 2>&1 | FileCheck %s --check-prefix=OTHER

// ERROR: error: no plan of @step fits the budget of 4.00 KiB (4,096 B)
// BOTH: error: no plan of @step fits
// BOTH: error: {{.*}}r.json
// REPORT: "format": "ckopt-remat-report/1"
// REPORT: "name": "step"
// REPORT-NEXT: "status": "infeasible"
// REPORT-NEXT: "budget_bytes": 4096
// REPORT: "memory_bound_bytes": 12288
// REPORT: "message": "no plan of @step fits
// REPORT: "smallest_found_bytes": {{[0-9]+}}
// REPORT: "alive_at_peak_of_smallest": [
// REPORT: "needed_at_once": {
// REPORT-NEXT: "node": "{{.+}}"
// REPORT: "proves_the_bound": true
// REPORT: "values": [
// REPORT: "bytes": 4096
// PLAN: "status":"infeasible"
// HINT: ckopt.plan = {{{.*}}budget = 20480
// TWICE: error: plan file '{{.*}}': a plan that is given leaves nothing to search from a hint
// NONE: error: plan file '{{.*}}.none': No such file or directory
// OTHER: error: plan file '{{.*}}': it is for another @step
func.func @step(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = math.exp %x : tensor<1024xf32> loc("a")
  %1 = math.sin %0 : tensor<1024xf32> loc("b")
  %2 = math.cos %1 : tensor<1024xf32> loc("c")
  %3 = math.tanh %2 : tensor<1024xf32> loc("d")
  %4 = arith.mulf %3, %2 : tensor<1024xf32> loc("e")
  %5 = arith.mulf %4, %1 : tensor<1024xf32> loc("f")
  %6 = arith.mulf %5, %0 : tensor<1024xf32> loc("g")
  return %6 : tensor<1024xf32>
}
