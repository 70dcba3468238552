// Ops that the tool does not know are planned by what a table says of them.
// RUN: ckopt-opt %s --remat="budget=min remat-ops=%S/../../share/ckopt/ops/stablehlo.json" --split-input-file --allow-unregistered-dialect --mlir-print-op-generic | FileCheck %s
// RUN: ckopt-opt %s --remat="budget=min apart=attribute remat-ops=%S/../../share/ckopt/ops/stablehlo.json" --split-input-file --allow-unregistered-dialect | FileCheck %s --check-prefix=ATTRIBUTE
// RUN: ckopt-opt %s --remat="budget=min apart=stablehlo.optimization_barrier remat-ops=%S/../../share/ckopt/ops/stablehlo.json" --split-input-file --allow-unregistered-dialect -o %t.own.mlir
// RUN: FileCheck %s --check-prefix=OWN < %t.own.mlir
// RUN: ckopt-opt %t.own.mlir --strip-barriers --split-input-file --allow-unregistered-dialect | FileCheck %s --check-prefix=STRIPPED
// RUN: not ckopt-opt %s --remat=budget=min --split-input-file --allow-unregistered-dialect -o /dev/null 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// Without the table every kind of op is named.
// UNKNOWN: error: @layers cannot be held to a budget: its plan would not count what the unregistered op 'stablehlo.dot_general' needs
// UNKNOWN: error: @layers cannot be held to a budget: its plan would not count what the unregistered op 'stablehlo.tanh' needs

// The descriptions are gone behind the pass; a client's own barrier is stripped like ckopt's.
// CHECK-LABEL: sym_name = "layers"
// CHECK-NOT: ckopt.described
// CHECK-NOT: ckopt.pure
// CHECK: ckopt.barrier
// CHECK-NEXT: "stablehlo.{{.*}}ckopt.clone
// ATTRIBUTE-LABEL: func.func @layers
// ATTRIBUTE-NOT: barrier
// ATTRIBUTE: "stablehlo.{{.*}}ckopt.clone
// ATTRIBUTE-NOT: barrier
// ATTRIBUTE: return
// OWN-LABEL: func.func @layers
// OWN: %[[B:.*]] = "stablehlo.optimization_barrier"
// OWN-NEXT: "stablehlo.{{.*}}(%[[B]]{{.*}}ckopt.clone
// STRIPPED-LABEL: func.func @layers
// STRIPPED-NOT: barrier
// STRIPPED: return
func.func @layers(%x: tensor<8x64xf32>, %w: tensor<64x64xf32>) -> tensor<8x64xf32> {
  %0 = "stablehlo.dot_general"(%x, %w) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
  %1 = "stablehlo.tanh"(%0) : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %2 = "stablehlo.exponential"(%1) : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %3 = "stablehlo.tanh"(%2) : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %4 = "stablehlo.exponential"(%3) : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %5 = "stablehlo.multiply"(%4, %3) : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %6 = "stablehlo.multiply"(%5, %2) : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %7 = "stablehlo.multiply"(%6, %1) : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %8 = "stablehlo.multiply"(%7, %0) : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  return %8 : tensor<8x64xf32>
}

// -----

// A reshape is a view, a constant has no bytes, a body of pure ops is one; a call of pure ops may
// run again. 256 B of argument, 256 B of relu, and 64 B of the sum.
// CHECK-LABEL: sym_name = "sum"
// OWN-LABEL: func.func @sum
// OWN-SAME: arena = 516 : i64
// OWN: "stablehlo.reduce"
func.func @sum(%x: tensor<8x8xf32>) -> tensor<f32> {
  %z = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
  %0 = call @relu(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = "stablehlo.reshape"(%0) : (tensor<8x8xf32>) -> tensor<64xf32>
  %2 = "stablehlo.reduce"(%1, %z) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }) : (tensor<64xf32>, tensor<f32>) -> tensor<f32>
  return %2 : tensor<f32>
}
func.func private @relu(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = "stablehlo.maximum"(%x, %x) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
