// Loops of unknown length have no price: they run once unless ckopt.cost states one. What may never
// end stays where it stands between effects.
// RUN: ckopt-opt %s --remat="budget=min remarks" --split-input-file -o %t.mlir 2>&1 | FileCheck %s --check-prefix=WHY
// RUN: FileCheck %s < %t.mlir

// WHY: remark: @unknown: 6 of 7 ops may be recomputed; the others run once: 1 with a loop of unknown length that no ckopt.cost prices
// WHY: remark: kept: scf.for{{.*}}its node runs once: a loop of unknown length that no ckopt.cost prices
// CHECK-LABEL: func.func @unknown
// CHECK-SAME: cost_model = "analytic: 6 ops, guess: 1 op"
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: return
func.func @unknown(%x: tensor<64x64xf32>, %n: index) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = scf.for %i = %c0 to %n step %c1 iter_args(%o = %x) -> tensor<64x64xf32> {
    %q = math.tanh %o : tensor<64x64xf32>
    scf.yield %q : tensor<64x64xf32>
  }
  %b = math.exp %a : tensor<64x64xf32>
  %c = math.exp %b : tensor<64x64xf32>
  %d = math.exp %c : tensor<64x64xf32>
  %e = arith.addf %d, %c : tensor<64x64xf32>
  %f = arith.addf %e, %b : tensor<64x64xf32>
  %g = arith.addf %f, %a : tensor<64x64xf32>
  return %g : tensor<64x64xf32>
}

// -----

// The same loop with a price runs again; so does one of known length.
// CHECK-LABEL: func.func @priced
// CHECK: scf.for
// CHECK: scf.for
// CHECK: return
func.func @priced(%x: tensor<64x64xf32>, %n: index) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = scf.for %i = %c0 to %n step %c1 iter_args(%o = %x) -> tensor<64x64xf32> {
    %q = math.tanh %o : tensor<64x64xf32>
    scf.yield %q : tensor<64x64xf32>
  } {ckopt.cost = 1.0e-6 : f64}
  %b = math.exp %a : tensor<64x64xf32>
  %c = math.exp %b : tensor<64x64xf32>
  %d = math.exp %c : tensor<64x64xf32>
  %e = arith.addf %d, %c : tensor<64x64xf32>
  %f = arith.addf %e, %b : tensor<64x64xf32>
  %g = arith.addf %f, %a : tensor<64x64xf32>
  return %g : tensor<64x64xf32>
}

// -----

// A loop that may never end stays between the prints, although it is pure; what must end does not.
// CHECK-LABEL: func.func @order
// CHECK: vector.print str "before
// CHECK: scf.while
// CHECK: vector.print str "after
// CHECK-NOT: scf.while
// CHECK: return
func.func @order(%x: tensor<64x64xi32>, %d: tensor<64x64xi32>, %p: i1) -> (tensor<64x64xi32>, tensor<64x64xi32>) {
  %a = arith.addi %x, %x : tensor<64x64xi32>
  vector.print str "before\n"
  cf.assert %p, "no zero"
  %q = arith.divsi %a, %d : tensor<64x64xi32>
  %w = scf.while (%i = %q) : (tensor<64x64xi32>) -> tensor<64x64xi32> {
    %z = arith.addi %i, %i : tensor<64x64xi32>
    scf.condition(%p) %z : tensor<64x64xi32>
  } do {
  ^bb0(%j: tensor<64x64xi32>):
    scf.yield %j : tensor<64x64xi32>
  }
  vector.print str "after\n"
  %s = arith.muli %w, %a : tensor<64x64xi32>
  %u = arith.muli %s, %q : tensor<64x64xi32>
  %v = arith.xori %u, %w : tensor<64x64xi32>
  return %v, %s : tensor<64x64xi32>, tensor<64x64xi32>
}
