// What a policy costs against a plan without it: quickly, thoroughly, or not at all.
// REQUIRES: compiler
// RUN: ckopt-opt %s --remat="policy=nothing_saveable report=%t.quick.json" -o %t.quick.mlir
// RUN: FileCheck %s --check-prefix=QUICK < %t.quick.json
// RUN: ckopt-opt %s --remat="policy=nothing_saveable compare=on budget=min report=%t.on.json" | FileCheck %s --check-prefix=ON
// RUN: FileCheck %s --check-prefix=QUICK < %t.on.json
// RUN: ckopt-opt %s --remat="policy=nothing_saveable compare=off report=%t.off.json" -o %t.off.mlir
// RUN: FileCheck %s --check-prefix=OFF --implicit-check-not='"auto"' < %t.off.json
// RUN: FileCheck %s --check-prefix=PLAN --implicit-check-not=auto_ < %t.off.mlir
// RUN: not ckopt-opt %s --remat=compare=never 2>&1 | FileCheck %s --check-prefix=WORD

// The comparison changes nothing of the plan.
// RUN: grep kernel_call %t.quick.mlir > %t.a
// RUN: grep kernel_call %t.off.mlir > %t.b
// RUN: diff %t.a %t.b

// QUICK: "policy": {
// QUICK: "auto": {
// QUICK-NEXT: "feasible": true
// QUICK: "policy_costs_seconds": {{[0-9]}}
// ON: ckopt.plan = {{{.*}}auto_arena = {{[0-9]+}} : i64, auto_seconds
// OFF: "policy": {
// OFF: "recomputed_nodes": {{[1-9]}}
// PLAN: ckopt.plan = {{{.*}}policy
// WORD: error: remat: compare: 'never' is not one of quick, on, off

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
