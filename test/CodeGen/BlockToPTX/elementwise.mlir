// Shows how a pointwise kernel with a tail becomes loops, GPU code and assembly:
// 16-byte accesses come from the alignment of arguments alone, no barrier is
// left, arithmetic is rounded and never contracted, denormals are flushed.
// RUN: ckopt-opt %s --block-to-loops | FileCheck %s --check-prefix=LOOPS
// RUN: ckopt-opt %s --block-to-gpu | FileCheck %s --check-prefix=GPU
// RUN: ckopt-opt %s --print-ptx=sm=80 -o /dev/null | FileCheck %s --check-prefixes=PTX,SM80
// RUN: ckopt-opt %s --print-ptx=sm=90 -o /dev/null | FileCheck %s --check-prefixes=PTX,SM90
// RUN: ckopt-opt %s --print-ptx="sm=90 keep-denormals" -o /dev/null | FileCheck %s --check-prefix=KEEP
// RUN: ckopt-opt %s --print-ptx="sm=80 report" -o /dev/null | FileCheck %s --check-prefix=REPORT

// LOOPS: func.func @scale_add(
// LOOPS-SAME: %[[X:.*]]: !llvm.ptr {llvm.align = 64 : i64}, %{{.*}}: !llvm.ptr {llvm.align = 64 : i64}, %{{.*}}: i64, %{{.*}}: !llvm.ptr {llvm.align = 64 : i64}, %[[DESCENDING:.*]]: i1)
// LOOPS: scf.for %[[B:.*]] = %c0{{.*}} to %c2
// LOOPS: %[[BACK:.*]] = arith.subi %c1{{.*}}, %[[B]]
// LOOPS: arith.select %[[DESCENDING]], %[[BACK]], %[[B]]
// LOOPS: scf.for %{{.*}} = %c0{{.*}} to %c256
// LOOPS-NOT: scf.forall
// LOOPS: func.func @scale_add__emul(%[[P:.*]]: !llvm.ptr)
// LOOPS: %[[S:.*]] = llvm.getelementptr %[[P]][2]
// LOOPS: %[[A:.*]] = llvm.load %[[S]] : !llvm.ptr -> !llvm.ptr
// LOOPS: llvm.load %[[A]] : !llvm.ptr -> i64
// LOOPS: %[[FALSE:.*]] = arith.constant false
// LOOPS: call @scale_add({{.*}}, %[[FALSE]])
// LOOPS: func.func @scale_add__emul_descending(
// LOOPS: %[[TRUE:.*]] = arith.constant true
// LOOPS: call @scale_add({{.*}}, %[[TRUE]])

// GPU: gpu.module @ckopt_kernels
// GPU: gpu.func @scale_add(
// GPU-SAME: kernel attributes {known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 2, 1, 1>}
// GPU-DAG: gpu.block_id
// GPU-DAG: gpu.thread_id
// GPU-NOT: gpu.barrier
// GPU-NOT: scf.forall
// GPU: gpu.return

// SM80: .version 7.0
// SM80: .target sm_80
// SM90: .version 7.8
// SM90: .target sm_90
// PTX: .visible .entry scale_add(
// PTX: .maxntid 256
// PTX-NOT: bar.sync
// PTX-DAG: ld.global.v4.b32
// PTX-DAG: mul.rn.ftz.f32
// PTX-DAG: add.rn.ftz.f32
// PTX-DAG: st.global.v4.b32
// PTX-NOT: fma.
// PTX: ret;

// KEEP: mul.rn.f32

// REPORT: sm_80, PTX 7.0, driver 11000: 450.36 (CUDA 11.0)
// REPORT: scale_add(ppsp): grid 2, block 256, shared 0, wide 2, narrow {{[0-9]+}}, split 0, trees 0+0
func.func @scale_add(%x: !llvm.ptr {llvm.align = 64 : i64}, %y: !llvm.ptr {llvm.align = 64 : i64}, %s0: i64,
                     %scratch: !llvm.ptr {llvm.align = 64 : i64})
    attributes {ckopt.gpu.grid = 2 : i64, ckopt.gpu.block = 256 : i64} {
  scf.forall (%b) in (2) {
    scf.forall (%t) in (256) {
      %c256 = arith.constant 256 : index
      %c4 = arith.constant 4 : i64
      %c1 = arith.constant 1 : i64
      %n = arith.constant 1027 : i64
      %bb = arith.muli %b, %c256 : index
      %g = arith.addi %bb, %t : index
      %gi = arith.index_cast %g : index to i64
      %i = arith.muli %gi, %c4 : i64
      %end = arith.addi %i, %c4 : i64
      %whole = arith.cmpi sle, %end, %n : i64
      %three = arith.constant 3.0 : f32
      scf.if %whole {
        %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
        %v = llvm.load %p {alignment = 4 : i64} : !llvm.ptr -> vector<4xf32>
        %f = vector.broadcast %three : f32 to vector<4xf32>
        %m = arith.mulf %v, %f : vector<4xf32>
        %a = arith.addf %m, %v : vector<4xf32>
        %q = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
        llvm.store %a, %q {alignment = 4 : i64} : vector<4xf32>, !llvm.ptr
      } else {
        scf.for %j = %i to %n step %c1 : i64 {
          %p = llvm.getelementptr %x[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f32
          %v = llvm.load %p {alignment = 4 : i64} : !llvm.ptr -> f32
          %m = arith.mulf %v, %three : f32
          %a = arith.addf %m, %v : f32
          %q = llvm.getelementptr %y[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f32
          llvm.store %a, %q {alignment = 4 : i64} : f32, !llvm.ptr
        }
      }
    } {mapping = [#gpu.thread<x>]}
  } {mapping = [#gpu.block<x>]}
  return
}

// Rows of 1,023 floats begin at odd words: no vector is promised where the
// alignment does not allow it, and the report counts the two that were asked.
// PTX: .visible .entry odd_rows(
// PTX-NOT: .v4.
// PTX: ret;
// REPORT: odd_rows(ppp): grid 8, block 64, shared 0, wide 0, narrow {{[0-9]+}}, split 2, trees 0+0
func.func @odd_rows(%x: !llvm.ptr {llvm.align = 64 : i64}, %y: !llvm.ptr {llvm.align = 64 : i64},
                    %scratch: !llvm.ptr {llvm.align = 64 : i64})
    attributes {ckopt.gpu.grid = 8 : i64, ckopt.gpu.block = 64 : i64} {
  scf.forall (%b) in (8) {
    scf.forall (%t) in (64) {
      %c1023 = arith.constant 1023 : index
      %c4 = arith.constant 4 : index
      %row = arith.muli %b, %c1023 : index
      %col = arith.muli %t, %c4 : index
      %o = arith.addi %row, %col : index
      %i = arith.index_cast %o : index to i64
      %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %v = llvm.load %p {alignment = 4 : i64} : !llvm.ptr -> vector<4xf32>
      %n = arith.negf %v : vector<4xf32>
      %q = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      llvm.store %n, %q {alignment = 4 : i64} : vector<4xf32>, !llvm.ptr
    } {mapping = [#gpu.thread<x>]}
  } {mapping = [#gpu.block<x>]}
  return
}
