// What runs once although tables describe it, and what plans say then.
// RUN: ckopt-opt %s --remat="remarks budget=1MiB remat-ops=%S/../../share/ckopt/ops/stablehlo.json" --split-input-file --allow-unregistered-dialect -o %t.mlir 2>&1 | FileCheck %s
// RUN: FileCheck %s --check-prefix=PLAN < %t.mlir
// RUN: ckopt-opt %s --remat="budget=1MiB report=%t.json remat-ops=%S/../../share/ckopt/ops/stablehlo.json" --split-input-file --allow-unregistered-dialect -o /dev/null
// RUN: FileCheck %s --check-prefix=REPORT < %t.json

// A loop runs an unknown number of times; random numbers differ from run to run; a body with an
// effect is not pure. Nothing that may not run again is called optimal.
// CHECK: remark: @loop: 1 of 2 ops may be recomputed; the others run once: 1 with a loop of unknown length
func.func @loop(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = "stablehlo.while"(%x) ({
  ^bb0(%a: tensor<64xf32>):
    %c = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
    "stablehlo.return"(%c) : (tensor<i1>) -> ()
  }, {
  ^bb0(%a: tensor<64xf32>):
    %b = "stablehlo.tanh"(%a) : (tensor<64xf32>) -> tensor<64xf32>
    "stablehlo.return"(%b) : (tensor<64xf32>) -> ()
  }) : (tensor<64xf32>) -> tensor<64xf32>
  %1 = "stablehlo.tanh"(%0) : (tensor<64xf32>) -> tensor<64xf32>
  return %1 : tensor<64xf32>
}

// -----

// CHECK: remark: @effects: 0 of 2 ops may be recomputed, because all run once: 1 with a word of its own, or the client's, that it does, 1 with unknown effects inside
// PLAN-LABEL: func.func @effects
// PLAN-SAME: restricted_to = ["order_only"]
// PLAN-SAME: status = "feasible"
// REPORT: "name": "effects",
// REPORT-NEXT: "status": "feasible",
func.func @effects(%x: tensor<f32>, %n: tensor<1xi64>, %i: tensor<i32>) -> tensor<4xf32> {
  %0 = "stablehlo.rng"(%x, %x, %n) : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>
  %1 = "stablehlo.case"(%i) ({
    %2 = "stablehlo.rng"(%x, %x, %n) : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>
    "stablehlo.return"(%2) : (tensor<4xf32>) -> ()
  }) : (tensor<i32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
