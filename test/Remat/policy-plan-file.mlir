// A plan is written, edited and fed back; one that is stale or wrong is refused with the reason.
// REQUIRES: compiler
// RUN: ckopt-opt %s --remat="budget=min plan-out=%t.json" | FileCheck %s --check-prefix=MIN
// RUN: FileCheck %s --check-prefix=FILE < %t.json
// RUN: ckopt-opt %s --remat="plan=%t.json" | FileCheck %s --check-prefix=MIN

// Edited: the third layer's result is made again before its last reader, figures and offsets left out.
// RUN: echo '{"format": "ckopt-plan/1", "graph": "step", "status": "feasible", "cost": 0, "peak": 0, "steps": [0, 1, 2, 3, 2, 4, 5, 6]}' > %t.edited.json
// RUN: ckopt-opt %s --remat="plan=%t.edited.json" | FileCheck %s --check-prefix=EDITED

// RUN: sed 's/[[]0, 1, 2, 3, 2, 4/[1, 0, 2, 3, 2, 4/' %t.edited.json > %t.wrong.json
// RUN: not ckopt-opt %s --remat="plan=%t.wrong.json" 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: sed 's/256xf32/128xf32/g' %s > %t.other.mlir
// RUN: not ckopt-opt %t.other.mlir --remat="plan=%t.json" 2>&1 | FileCheck %s --check-prefix=STALE
// RUN: not ckopt-opt %s --remat="plan=%t.json budget=4000" 2>&1 | FileCheck %s --check-prefix=BUDGET
// RUN: sed 's/"step"/"train"/' %t.edited.json > %t.name.json
// RUN: not ckopt-opt %s --remat="plan=%t.name.json" 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not ckopt-opt %s --remat="plan=%t.missing.json" 2>&1 | FileCheck %s --check-prefix=MISSING
// A budget that the file states holds, too; and rules beside a plan would be without effect.
// RUN: sed 's/"cost": 0/"budget": 4000, "cost": 0/' %t.edited.json > %t.stated.json
// RUN: not ckopt-opt %s --remat="plan=%t.stated.json" 2>&1 | FileCheck %s --check-prefix=STATED
// RUN: not ckopt-opt %s --remat="plan=%t.json save=f1" 2>&1 | FileCheck %s --check-prefix=RULES

// MIN-LABEL: func.func @step
// MIN-SAME: recomputed = [[N:[1-9]]] : i64
// MIN: clone = 1 : i64
// FILE: "graph_hash":
// FILE: "nodes":["f1","f2","f3","f4","g3","g2","g1"]
// EDITED-LABEL: func.func @step
// EDITED-SAME: recomputed = 1 : i64
// EDITED: ckopt.kernel_call @f({{.*}}clone = 1 : i64
// WRONG: error: plan file '{{.*}}wrong.json': it is no valid plan:
// STALE: error: plan file '{{.*}}': it is for another @step (problem {{[0-9a-f]+}}, this one is {{[0-9a-f]+}}): the model, its batch, the optimizer or ckopt changed since it was written; write it anew
// BUDGET: error: plan file '{{.*}}': it takes {{.*}}; the budget is {{.*}}4,000
// STATED: error: plan file '{{.*}}': it takes {{.*}}; the budget that it states is {{.*}}4,000
// RULES: error: plan file '{{.*}}': a plan that is given leaves nothing for rules and policies to decide
// NAME: error: plan file '{{.*}}': it is for 'train', which is no function here
// MISSING: error: plan file '{{.*}}missing.json': No such file or directory

func.func private @f(%x: tensor<256xf32>) -> tensor<256xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.exp %x : (tensor<256xf32>) -> tensor<256xf32>
  return %0 : tensor<256xf32>
}
func.func private @g(%x: tensor<256xf32>, %y: tensor<256xf32>) -> tensor<256xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.mul %x, %y : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32>
  return %0 : tensor<256xf32>
}
func.func @step(%x: tensor<256xf32>) -> tensor<256xf32> {
  %0 = ckopt.kernel_call @f(%x) : (tensor<256xf32>) -> tensor<256xf32> loc("f1")
  %1 = ckopt.kernel_call @f(%0) : (tensor<256xf32>) -> tensor<256xf32> loc("f2")
  %2 = ckopt.kernel_call @f(%1) : (tensor<256xf32>) -> tensor<256xf32> loc("f3")
  %3 = ckopt.kernel_call @f(%2) : (tensor<256xf32>) -> tensor<256xf32> loc("f4")
  %4 = ckopt.kernel_call @g(%3, %2) : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32> loc("g3")
  %5 = ckopt.kernel_call @g(%4, %1) : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32> loc("g2")
  %6 = ckopt.kernel_call @g(%5, %0) : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32> loc("g1")
  return %6 : tensor<256xf32>
}
