// With programmatic launches a kernel lets the next one begin, and waits for those before it, in every thread
// and before it touches memory. Code for GPUs before 9.0 cannot.
// RUN: ckopt-opt %s --print-ptx=sm=90 | FileCheck %s --check-prefix=PLAIN --implicit-check-not=griddepcontrol
// RUN: ckopt-opt %s --print-ptx="sm=90 programmatic" | FileCheck %s
// RUN: ckopt-opt %s --print-ptx="sm=90 programmatic" | grep -v griddepcontrol > %t.without
// RUN: ckopt-opt %s --print-ptx=sm=90 | diff %t.without -
// RUN: not ckopt-opt %s --print-ptx=programmatic 2>&1 | FileCheck %s --check-prefix=OLD

// PLAIN: .entry copied(
// CHECK-LABEL: .entry copied(
// CHECK-NOT: {{ld.global|st.global|bra}}
// CHECK: griddepcontrol.launch_dependents;
// CHECK-NEXT: griddepcontrol.wait;
// CHECK: ld.global
// CHECK-LABEL: .entry nothing(
// CHECK: griddepcontrol.launch_dependents;
// CHECK-NEXT: griddepcontrol.wait;
// CHECK: ret;
// OLD: kernels that wait by themselves need sm_90
func.func @copied(%x: !llvm.ptr {llvm.align = 64 : i64}, %y: !llvm.ptr {llvm.align = 64 : i64},
    %scratch: !llvm.ptr {llvm.align = 64 : i64}) attributes {ckopt.gpu.grid = 1 : i64, ckopt.gpu.block = 32 : i64} {
  scf.forall (%b) in (1) {
    scf.forall (%t) in (20) {
      %i = arith.index_cast %t : index to i64
      %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %q = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %v = llvm.load %p : !llvm.ptr -> f32
      llvm.store %v, %q : f32, !llvm.ptr
    } {mapping = [#gpu.thread<x>]}
  } {mapping = [#gpu.block<x>]}
  return
}

func.func @nothing(%x: !llvm.ptr {llvm.align = 64 : i64},
    %scratch: !llvm.ptr {llvm.align = 64 : i64}) attributes {ckopt.gpu.grid = 1 : i64, ckopt.gpu.block = 32 : i64} {
  scf.forall (%b) in (1) {
  } {mapping = [#gpu.block<x>]}
  return
}
