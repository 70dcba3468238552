// What block form approximates is one instruction a number on a GPU, and on a CPU the function in f64,
// moved by what the error leaves beside rounding. Nothing beside it is approximated.
// RUN: ckopt-opt %s --print-ptx | FileCheck %s
// RUN: ckopt-opt %s --block-to-loops | FileCheck %s --check-prefix=LOOPS

// CHECK-LABEL: .entry approximated(
// CHECK: ex2.approx.ftz.f32
// CHECK-COUNT-2: rcp.approx.ftz.f32
// CHECK-NOT: .approx
// CHECK: div.rn.ftz.f32
// LOOPS-LABEL: func.func @approximated(
// LOOPS: math.exp2 %{{.*}} : f64
// LOOPS: arith.mulf %{{.*}} : f64
// LOOPS: arith.truncf %{{.*}} : f64 to f32
// LOOPS-COUNT-2: arith.divf %{{.*}} : f64
// LOOPS: arith.divf %{{.*}} : vector<2xf32>
func.func @approximated(%x: !llvm.ptr {llvm.align = 64 : i64}, %y: !llvm.ptr {llvm.align = 64 : i64},
    %scratch: !llvm.ptr {llvm.align = 64 : i64}) attributes {ckopt.gpu.grid = 1 : i64, ckopt.gpu.block = 32 : i64} {
  scf.forall (%b) in (1) {
    scf.forall (%t) in (32) {
      %i = arith.index_cast %t : index to i64
      %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, vector<2xf32>
      %q = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, vector<2xf32>
      %v = llvm.load %p {alignment = 8 : i64} : !llvm.ptr -> vector<2xf32>
      %f = vector.extract %v[0] : f32 from vector<2xf32>
      %e = block.approx_exp2 %f : f32
      %r = block.approx_reciprocal %v : vector<2xf32>
      %w = vector.insert %e, %r[0] : f32 into vector<2xf32>
      %s = arith.addf %w, %r : vector<2xf32>
      %d = arith.divf %s, %v : vector<2xf32>
      llvm.store %d, %q {alignment = 8 : i64} : vector<2xf32>, !llvm.ptr
    } {mapping = [#gpu.thread<x>]}
  } {mapping = [#gpu.block<x>]}
  return
}
