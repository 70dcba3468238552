// Where costs come from: an estimate, a profile file, attributes; the plan says which.
// RUN: split-file %s %t
// RUN: ckopt-opt %t/f.mlir --remat=report=- -o /dev/null | FileCheck %s --check-prefix=MIXED
// RUN: ckopt-opt %t/f.mlir --remat="cost-model=profile=%t/p.json report=-" -o /dev/null | FileCheck %s --check-prefix=PROFILE
// RUN: ckopt-opt %t/all.mlir --remat="cost-model=attribute" | FileCheck %s --check-prefix=ALL
// RUN: not ckopt-opt %t/f.mlir --remat="cost-model=attribute" 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not ckopt-opt %t/f.mlir --remat="cost-model=magic" 2>&1 | FileCheck %s --check-prefix=MODEL
// RUN: not ckopt-opt %t/f.mlir --remat="cost-model=profile=%t/none.json" 2>&1 | FileCheck %s --check-prefix=NOFILE
// RUN: not ckopt-opt %t/f.mlir --remat="cost-model=profile=%t/bad.json" 2>&1 | FileCheck %s --check-prefix=BAD
// RUN: not ckopt-opt %t/negative.mlir --remat 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: ckopt-opt %t/f.mlir --remat="cost-model=profile=%t/other.json" -o /dev/null 2>&1 | FileCheck %s --check-prefix=OTHER

// OTHER: warning: no entry of the profile agrees with any op of @f

// The attribute is preferred to the estimate.
// MIXED: "cost_sources": {
// MIXED-NEXT: "attribute": 1
// MIXED-NEXT: "profile": 0
// MIXED-NEXT: "analytic": 2

// Attribute 0.5, by name 0.25, by op and type 0.125: the most specific entries.
// PROFILE: "base_seconds": 0.875
// PROFILE: "attribute": 1
// PROFILE-NEXT: "profile": 2
// PROFILE-NEXT: "analytic": 0

// ALL: ckopt.plan = {{.*}}base_seconds = 3.0{{.*}}cost_model = "attribute: 2 ops"

// MISSING: error: {{.*}}"middle"{{.*}}has no ckopt.cost; with cost-model=attribute every op needs one (2 of 3 have none)
// MODEL: error: remat: unknown cost model 'magic'; known are analytic, attribute and profile=FILE
// NOFILE: error: remat: cannot read the profile {{.*}}none.json
// BAD: error: remat: {{.*}}bad.json: ops[1]: needs 'seconds', a number that is not negative
// NEGATIVE: error: {{.*}}ckopt.cost must be a finite number of seconds, not negative

//--- f.mlir
func.func @f(%x: tensor<16xf32>) -> tensor<16xf32> {
  %0 = math.exp %x {ckopt.cost = 0.5 : f64} : tensor<16xf32>
  %1 = math.tanh %0 : tensor<16xf32> loc("middle")
  %2 = math.tanh %1 : tensor<16xf32>
  return %2 : tensor<16xf32>
}

//--- all.mlir
func.func @f(%x: tensor<16xf32>) -> tensor<16xf32> {
  %0 = math.exp %x {ckopt.cost = 1 : i64} : tensor<16xf32>
  %1 = math.tanh %0 {ckopt.cost = 2.0 : f32} : tensor<16xf32>
  return %1 : tensor<16xf32>
}

//--- negative.mlir
func.func @f(%x: tensor<16xf32>) -> tensor<16xf32> {
  %0 = math.exp %x {ckopt.cost = -1.0 : f64} : tensor<16xf32>
  return %0 : tensor<16xf32>
}

//--- p.json
{"format": "ckopt-profile/1", "rates": {"bandwidth": 1e9},
 "ops": [{"op": "math.exp", "seconds": 7}, {"op": "math.tanh", "seconds": 9},
         {"name": "middle", "seconds": 0.25},
         {"op": "math.tanh", "type": "(tensor<16xf32>) -> tensor<16xf32>", "seconds": 0.125}]}

//--- bad.json
{"format": "ckopt-profile/1", "ops": [{"op": "math.exp", "seconds": 1}, {"op": "math.tanh", "seconds": -1}]}

//--- other.json
{"format": "ckopt-profile/1", "ops": [{"op": "math.none", "seconds": 1.0}]}
