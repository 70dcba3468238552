// Checkpointed regions keep only their inputs; blocks are found by structure; regions may keep what a policy names.
// REQUIRES: compiler
// RUN: ckopt-opt %s --remat="policy=per-block report=%t.json" | FileCheck %s --check-prefix=BLOCKS
// RUN: FileCheck %s --check-prefix=REPORT < %t.json
// RUN: ckopt-opt %s --remat="policy=sequential:2" | FileCheck %s --check-prefix=SEQUENTIAL
// RUN: ckopt-opt %s --remat="policy=nothing_saveable" | FileCheck %s --check-prefix=NOTHING
// RUN: ckopt-opt %s --remat="policy=everything_saveable" | FileCheck %s --check-prefix=KEPT
// RUN: ckopt-opt %s --remat="policy=per-block auto=.*" | FileCheck %s --check-prefix=KEPT
// RUN: ckopt-opt %s --remat="policy=per-block+everything_saveable" | FileCheck %s --check-prefix=KEPT
// RUN: ckopt-opt %s --remat="policy=per-block budget=min" --plan-memory | FileCheck %s --check-prefix=MIN

func.func private @f(%x: tensor<256xf32>) -> tensor<256xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.exp %x : (tensor<256xf32>) -> tensor<256xf32>
  return %0 : tensor<256xf32>
}
func.func private @h(%x: tensor<256xf32>) -> tensor<256xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.sqrt %x : (tensor<256xf32>) -> tensor<256xf32>
  return %0 : tensor<256xf32>
}
func.func private @g(%x: tensor<256xf32>, %y: tensor<256xf32>) -> tensor<256xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.mul %x, %y : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32>
  return %0 : tensor<256xf32>
}

// Blocks (f, h) three times: their inputs are kept, so of each the inner value is made again, of the last one also its
// result.
// BLOCKS-LABEL: func.func @step
// BLOCKS-SAME: ckopt.plan = {{{.*}}auto_arena = {{[0-9]+}} : i64, {{.*}}recomputed = 4 : i64, regions = 3 : i64
// BLOCKS: ckopt.kernel_call @f({{.*}}clone = 1 : i64
// BLOCKS: ckopt.kernel_call @h({{.*}}clone = 2 : i64
// BLOCKS-NOT: ckopt.kernel_call @h

// REPORT: "policy": {
// REPORT: "regions": [
// REPORT-NEXT: "block 0"
// REPORT-NEXT: "block 1"
// REPORT-NEXT: "block 2"
// REPORT: "recomputed_nodes": 4
// REPORT: "auto": {
// REPORT-NEXT: "feasible": true
// REPORT: "policy_costs_seconds": {{[0-9]}}
// REPORT-NEXT: "policy_costs_bytes": -

// One segment, of all blocks but the last: that one is no region.
// SEQUENTIAL-LABEL: func.func @step
// SEQUENTIAL-SAME: recomputed = 2 : i64, regions = 1 : i64

// NOTHING-LABEL: func.func @step
// NOTHING-SAME: recomputed = 6 : i64, regions = 1 : i64

// What may be saved is saved; a rule `auto` takes nodes out of their regions.
// KEPT-LABEL: func.func @step
// KEPT-SAME: recomputed = 0 : i64

// The least budget that the policy allows, and the arena within it.
// MIN-LABEL: func.func @step
// MIN-SAME: ckopt.arena_bytes = [[BYTES:[0-9]+]] : i64
// MIN-SAME: budget = [[BYTES]] : i64
func.func @step(%x: tensor<256xf32>) -> (tensor<256xf32>, tensor<256xf32>) {
  %a1 = ckopt.kernel_call @f(%x) : (tensor<256xf32>) -> tensor<256xf32> loc("a1")
  %b1 = ckopt.kernel_call @h(%a1) : (tensor<256xf32>) -> tensor<256xf32> loc("b1")
  %a2 = ckopt.kernel_call @f(%b1) : (tensor<256xf32>) -> tensor<256xf32> loc("a2")
  %b2 = ckopt.kernel_call @h(%a2) : (tensor<256xf32>) -> tensor<256xf32> loc("b2")
  %a3 = ckopt.kernel_call @f(%b2) : (tensor<256xf32>) -> tensor<256xf32> loc("a3")
  %b3 = ckopt.kernel_call @h(%a3) : (tensor<256xf32>) -> tensor<256xf32> loc("b3")
  %loss = ckopt.kernel_call @g(%b3, %b3) : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32> loc("loss")
  %gb3 = ckopt.kernel_call @g(%b3, %a3) : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32> loc("grad/b3")
  %ga3 = ckopt.kernel_call @g(%gb3, %a3) : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32> loc("grad/a3")
  %gb2 = ckopt.kernel_call @g(%ga3, %b2) : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32> loc("grad/b2")
  %ga2 = ckopt.kernel_call @g(%gb2, %a2) : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32> loc("grad/a2")
  %gb1 = ckopt.kernel_call @g(%ga2, %b1) : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32> loc("grad/b1")
  %ga1 = ckopt.kernel_call @g(%gb1, %a1) : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32> loc("grad/a1")
  return %loss, %ga1 : tensor<256xf32>, tensor<256xf32>
}
