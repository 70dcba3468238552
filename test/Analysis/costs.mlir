// Seconds of each op and their source: the first that knows the op counts.
// REQUIRES: compiler
// RUN: split-file %s %t
// RUN: ckopt-opt %t/f.mlir --print-costs -o /dev/null 2>&1 | FileCheck %s --check-prefix=ANALYTIC
// RUN: ckopt-opt %t/f.mlir --print-costs=cost-model=profile=%t/p.json -o /dev/null 2>&1 | FileCheck %s --check-prefix=PROFILE
// RUN: not ckopt-opt %t/f.mlir --print-costs=cost-model=magic -o /dev/null 2>&1 | FileCheck %s --check-prefix=MODEL

// A loop of unknown length is a guess; constants and tensor.empty cost nothing and are left out.
// ANALYTIC: costs @f
// ANALYTIC-NEXT: math.exp: 0.5 s, attribute
// ANALYTIC-NEXT: math.tanh: {{[0-9.]+}}e-{{[0-9]+}} s, analytic
// ANALYTIC-NEXT: scf.for: {{[0-9.]+}}e-{{[0-9]+}} s, guess
// ANALYTIC-NEXT: ckopt.kernel_call @k: {{[0-9.]+}}e-{{[0-9]+}} s, analytic
// Four rows of a table of 256 MB are read, not the table (18 ms); where another op of the kernel reads it whole, all of it.
// ANALYTIC: costs @rows
// ANALYTIC-NEXT: ckopt.kernel_call @lookup: {{[0-9.]+}}e-06 s, analytic
// ANALYTIC-NEXT: ckopt.kernel_call @slice: {{[0-9.]+}}e-06 s, analytic
// ANALYTIC-NEXT: ckopt.kernel_call @both: 0.0{{[0-9]+}} s, analytic

// PROFILE: costs @f
// PROFILE-NEXT: math.exp: 0.5 s, attribute
// PROFILE-NEXT: math.tanh: 0.25 s, profile
// PROFILE-NEXT: scf.for: {{[0-9.e-]+}} s, guess
// PROFILE-NEXT: ckopt.kernel_call @k: 0.125 s, profile

// MODEL: error: print-costs: unknown cost model 'magic'

//--- f.mlir
func.func private @k(%x: tensor<16xf32>) -> tensor<16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.exp %x : (tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
func.func @f(%x: tensor<16xf32>, %n: index) -> tensor<16xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %e = tensor.empty() : tensor<16xf32>
  %0 = math.exp %x {ckopt.cost = 0.5 : f64} : tensor<16xf32>
  %1 = math.tanh %0 : tensor<16xf32> loc("middle")
  %2 = scf.for %i = %zero to %n step %one iter_args(%a = %1) -> tensor<16xf32> {
    %b = math.exp %a : tensor<16xf32>
    scf.yield %b : tensor<16xf32>
  }
  %3 = ckopt.kernel_call @k(%2) : (tensor<16xf32>) -> tensor<16xf32>
  return %3 : tensor<16xf32>
}
func.func private @lookup(%table: tensor<1000000x64xf32>, %ids: tensor<4xi64>, %x: tensor<4x64xf32>)
    -> tensor<4x64xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.gather %table, %ids {axis = 0 : i64} : (tensor<1000000x64xf32>, tensor<4xi64>) -> tensor<4x64xf32>
  %1 = ckopt.add %0, %x : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
  return %1 : tensor<4x64xf32>
}
func.func private @slice(%table: tensor<1000000x64xf32>) -> tensor<4x64xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.slice %table {starts = array<i64: 8, 0>, sizes = array<i64: 4, 64>, steps = array<i64: 1, 1>} : (tensor<1000000x64xf32>) -> tensor<4x64xf32>
  return %0 : tensor<4x64xf32>
}
func.func private @both(%table: tensor<1000000x64xf32>, %ids: tensor<4xi64>)
    -> (tensor<4x64xf32>, tensor<1000000x64xf32>) attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.gather %table, %ids {axis = 0 : i64} : (tensor<1000000x64xf32>, tensor<4xi64>) -> tensor<4x64xf32>
  %1 = ckopt.exp %table : (tensor<1000000x64xf32>) -> tensor<1000000x64xf32>
  return %0, %1 : tensor<4x64xf32>, tensor<1000000x64xf32>
}
func.func @rows(%table: tensor<1000000x64xf32>, %ids: tensor<4xi64>, %x: tensor<4x64xf32>)
    -> (tensor<4x64xf32>, tensor<4x64xf32>, tensor<4x64xf32>, tensor<1000000x64xf32>) {
  %0 = ckopt.kernel_call @lookup(%table, %ids, %x) : (tensor<1000000x64xf32>, tensor<4xi64>, tensor<4x64xf32>) -> tensor<4x64xf32>
  %1 = ckopt.kernel_call @slice(%table) : (tensor<1000000x64xf32>) -> tensor<4x64xf32>
  %2:2 = ckopt.kernel_call @both(%table, %ids) : (tensor<1000000x64xf32>, tensor<4xi64>) -> (tensor<4x64xf32>, tensor<1000000x64xf32>)
  return %0, %1, %2#0, %2#1 : tensor<4x64xf32>, tensor<4x64xf32>, tensor<4x64xf32>, tensor<1000000x64xf32>
}

//--- p.json
{"format": "ckopt-profile/1", "ops": [{"name": "middle", "seconds": 0.25}, {"op": "k", "seconds": 0.125}]}
