// Rules on names and kinds keep values or let go of them; names beat kinds.
// REQUIRES: compiler
// RUN: ckopt-opt %s --remat="recompute=b2" | FileCheck %s --check-prefix=ONE
// RUN: ckopt-opt %s --remat="recompute=op:sqrt save=b[13]" | FileCheck %s --check-prefix=ONE
// RUN: ckopt-opt %s --remat="recompute='op:ckopt.sqrt'" | FileCheck %s --check-prefix=KIND
// RUN: not ckopt-opt %s --remat="save=.* budget=0.9x" 2>&1 | FileCheck %s --check-prefix=BUDGET
// RUN: ckopt-opt %s --remat="recompute='a1;b1' report=-" -o /dev/null | FileCheck %s --check-prefix=REPORT
// RUN: ckopt-opt %s --remat="policy=save_only_these_names=a.*" | FileCheck %s --check-prefix=ONLY
// RUN: ckopt-opt %s --remat="policy=save_anything_except_these_names=b2" | FileCheck %s --check-prefix=ONE

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

// ONE-LABEL: func.func @step
// ONE-SAME: recomputed = 1 : i64
// ONE: ckopt.kernel_call @g(
// ONE: ckopt.kernel_call @g(
// ONE: ckopt.kernel_call @h({{.*}}clone = 1 : i64

// KIND-LABEL: func.func @step
// KIND-SAME: recomputed = 3 : i64

// What may not run again leaves the budget no plan; the error says that one without the rule exists.
// BUDGET: no plan of @step that follows the policy fits the budget
// BUDGET-SAME: it is the policy that does not fit: without it a plan of
// REPORT: "rule": "recompute 'a1'"
// REPORT-NEXT: "nodes": 1
// REPORT-NEXT: "bytes": 1024
// REPORT: "recomputed_nodes": 2

// ONLY-LABEL: func.func @step
// ONLY-SAME: recomputed = 3 : i64
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
