// Shows how a row's sum becomes a tree: one barrier between two intervals, the
// last 32 lanes by shuffles, the result stored once a block.
// RUN: ckopt-opt %s --merge-lane-steps | FileCheck %s --check-prefix=MERGE
// RUN: ckopt-opt %s --block-to-gpu | FileCheck %s --check-prefix=GPU
// RUN: ckopt-opt %s --print-ptx=sm=80 -o /dev/null | FileCheck %s --check-prefix=PTX
// RUN: ckopt-opt %s --print-ptx=sm=90 -o /dev/null | FileCheck %s --check-prefix=PTX
// RUN: ckopt-opt %s --print-ptx=report -o /dev/null | FileCheck %s --check-prefix=REPORT

// The steps of 32 and more stay; the five of less than 32 lanes become one.
// MERGE-COUNT-4: scf.forall (%{{.*}}) in ({{256|128|64|32}})
// MERGE: scf.forall (%[[T:.*]]) in (32)
// MERGE-NEXT: %[[X:.*]] = memref.load %{{.*}}[%[[T]]]
// MERGE-NEXT: %{{.*}} = arith.constant 16 : i32
// MERGE: %[[Y:.*]], %{{.*}} = gpu.shuffle down %[[X]], %{{.*}}, %{{.*}} : f32
// MERGE: %[[BELOW:.*]] = arith.cmpi ult, %[[T]], %{{.*}}
// MERGE: %[[Z:.*]] = arith.addf %[[X]], %[[Y]] : f32
// MERGE: %[[X8:.*]] = arith.select %[[BELOW]], %[[Z]], %[[X]] : f32
// MERGE: gpu.shuffle down %[[X8]]
// MERGE-COUNT-3: gpu.shuffle down
// MERGE: memref.store %{{.*}}, %{{.*}}[%[[T]]]
// MERGE-NOT: scf.forall
// MERGE: return

// GPU: gpu.func @row_sum({{.*}}) workgroup(%{{.*}} : memref<256xf32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64})
// GPU-NOT: gpu.barrier
// GPU: scf.for
// GPU: memref.store
// GPU: gpu.barrier
// GPU: cmpi ult, %thread_id_x
// GPU: scf.if
// GPU: gpu.barrier
// GPU: scf.if
// GPU: gpu.barrier
// GPU: scf.if
// GPU: gpu.barrier
// GPU: scf.if
// GPU-COUNT-5: gpu.shuffle
// GPU: gpu.barrier
// GPU-NEXT: arith.constant 0
// GPU: memref.load
// GPU: arith.cmpi eq, %thread_id_x
// GPU: scf.if
// GPU-NEXT: llvm.store
// GPU-NOT: gpu.barrier
// GPU: gpu.return

// PTX: .visible .entry row_sum(
// PTX: .shared .align 16 .b8 {{.*}}[1024]
// PTX-COUNT-4: bar.sync 0
// PTX-COUNT-5: shfl.sync.down.b32
// PTX: bar.sync 0
// PTX-NOT: bar.sync
// PTX: ret;
// REPORT: row_sum(ppp): grid 6, block 256, shared 1024, wide 0, narrow {{[0-9]+}}, split 0, trees 1+0
func.func @row_sum(%x: !llvm.ptr {llvm.align = 64 : i64}, %y: !llvm.ptr {llvm.align = 64 : i64}, %scratch: !llvm.ptr {llvm.align = 64 : i64}, %sh: memref<256xf32, #gpu.address_space<workgroup>>)
    attributes {ckopt.gpu.grid = 6 : i64, ckopt.gpu.block = 256 : i64} {
  scf.forall (%b) in (6) {
    scf.forall (%t) in (256) {
      %n = arith.constant 1000 : index
      %c256 = arith.constant 256 : index
      %zero = arith.constant 0.0 : f32
      %row = arith.muli %b, %n : index
      %sum = scf.for %j = %t to %n step %c256 iter_args(%acc = %zero) -> (f32) {
        %o = arith.addi %row, %j : index
        %i = arith.index_cast %o : index to i64
        %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
        %v = llvm.load %p {alignment = 4 : i64} : !llvm.ptr -> f32
        %next = arith.addf %acc, %v : f32
        scf.yield %next : f32
      }
      memref.store %sum, %sh[%t] : memref<256xf32, #gpu.address_space<workgroup>>
    } {mapping = [#gpu.thread<x>]}
    scf.forall (%t) in (128) {
      %s = arith.constant 128 : index
      %u = arith.addi %t, %s : index
      %a = memref.load %sh[%t] : memref<256xf32, #gpu.address_space<workgroup>>
      %c = memref.load %sh[%u] : memref<256xf32, #gpu.address_space<workgroup>>
      %d = arith.addf %a, %c : f32
      memref.store %d, %sh[%t] : memref<256xf32, #gpu.address_space<workgroup>>
    } {mapping = [#gpu.thread<x>]}
    scf.forall (%t) in (64) {
      %s = arith.constant 64 : index
      %u = arith.addi %t, %s : index
      %a = memref.load %sh[%t] : memref<256xf32, #gpu.address_space<workgroup>>
      %c = memref.load %sh[%u] : memref<256xf32, #gpu.address_space<workgroup>>
      %d = arith.addf %a, %c : f32
      memref.store %d, %sh[%t] : memref<256xf32, #gpu.address_space<workgroup>>
    } {mapping = [#gpu.thread<x>]}
    scf.forall (%t) in (32) {
      %s = arith.constant 32 : index
      %u = arith.addi %t, %s : index
      %a = memref.load %sh[%t] : memref<256xf32, #gpu.address_space<workgroup>>
      %c = memref.load %sh[%u] : memref<256xf32, #gpu.address_space<workgroup>>
      %d = arith.addf %a, %c : f32
      memref.store %d, %sh[%t] : memref<256xf32, #gpu.address_space<workgroup>>
    } {mapping = [#gpu.thread<x>]}
    scf.forall (%t) in (32) {
      %s = arith.constant 16 : index
      %below = arith.cmpi ult, %t, %s : index
      scf.if %below {
      %u = arith.addi %t, %s : index
      %a = memref.load %sh[%t] : memref<256xf32, #gpu.address_space<workgroup>>
      %c = memref.load %sh[%u] : memref<256xf32, #gpu.address_space<workgroup>>
      %d = arith.addf %a, %c : f32
      memref.store %d, %sh[%t] : memref<256xf32, #gpu.address_space<workgroup>>
      }
    } {mapping = [#gpu.thread<x>], ckopt.gpu.lane_step = 16 : i64}
    scf.forall (%t) in (32) {
      %s = arith.constant 8 : index
      %below = arith.cmpi ult, %t, %s : index
      scf.if %below {
      %u = arith.addi %t, %s : index
      %a = memref.load %sh[%t] : memref<256xf32, #gpu.address_space<workgroup>>
      %c = memref.load %sh[%u] : memref<256xf32, #gpu.address_space<workgroup>>
      %d = arith.addf %a, %c : f32
      memref.store %d, %sh[%t] : memref<256xf32, #gpu.address_space<workgroup>>
      }
    } {mapping = [#gpu.thread<x>], ckopt.gpu.lane_step = 8 : i64}
    scf.forall (%t) in (32) {
      %s = arith.constant 4 : index
      %below = arith.cmpi ult, %t, %s : index
      scf.if %below {
      %u = arith.addi %t, %s : index
      %a = memref.load %sh[%t] : memref<256xf32, #gpu.address_space<workgroup>>
      %c = memref.load %sh[%u] : memref<256xf32, #gpu.address_space<workgroup>>
      %d = arith.addf %a, %c : f32
      memref.store %d, %sh[%t] : memref<256xf32, #gpu.address_space<workgroup>>
      }
    } {mapping = [#gpu.thread<x>], ckopt.gpu.lane_step = 4 : i64}
    scf.forall (%t) in (32) {
      %s = arith.constant 2 : index
      %below = arith.cmpi ult, %t, %s : index
      scf.if %below {
      %u = arith.addi %t, %s : index
      %a = memref.load %sh[%t] : memref<256xf32, #gpu.address_space<workgroup>>
      %c = memref.load %sh[%u] : memref<256xf32, #gpu.address_space<workgroup>>
      %d = arith.addf %a, %c : f32
      memref.store %d, %sh[%t] : memref<256xf32, #gpu.address_space<workgroup>>
      }
    } {mapping = [#gpu.thread<x>], ckopt.gpu.lane_step = 2 : i64}
    scf.forall (%t) in (32) {
      %s = arith.constant 1 : index
      %below = arith.cmpi ult, %t, %s : index
      scf.if %below {
      %u = arith.addi %t, %s : index
      %a = memref.load %sh[%t] : memref<256xf32, #gpu.address_space<workgroup>>
      %c = memref.load %sh[%u] : memref<256xf32, #gpu.address_space<workgroup>>
      %d = arith.addf %a, %c : f32
      memref.store %d, %sh[%t] : memref<256xf32, #gpu.address_space<workgroup>>
      }
    } {mapping = [#gpu.thread<x>], ckopt.gpu.lane_step = 1 : i64}
    %c0 = arith.constant 0 : index
    %total = memref.load %sh[%c0] : memref<256xf32, #gpu.address_space<workgroup>>
    %bi = arith.index_cast %b : index to i64
    %q = llvm.getelementptr %y[%bi] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %total, %q {alignment = 4 : i64} : f32, !llvm.ptr
  } {mapping = [#gpu.block<x>]}
  return
}

// Two buffers in one run, indices cast from i64, a load after the other buffer's
// store: still one interval, whose values travel together.
// MERGE: func.func @two
// MERGE: gpu.shuffle
// MERGE: %[[A:.*]] = arith.select {{.*}} : f32
// MERGE: %[[N:.*]] = arith.select {{.*}} : i8
// MERGE: gpu.shuffle down %[[A]],
// MERGE: %[[W:.*]] = arith.extui %[[N]] : i8 to i32
// MERGE: gpu.shuffle down %[[W]],
// MERGE-COUNT-2: memref.store
// MERGE-NOT: scf.forall
// MERGE: return
// REPORT: two(p): {{.*}} trees 1+0
func.func @two(%scratch: !llvm.ptr {llvm.align = 64 : i64}, %sh: memref<32xf32, #gpu.address_space<workgroup>>, %n: memref<32xi8, #gpu.address_space<workgroup>>)
    attributes {ckopt.gpu.grid = 1 : i64, ckopt.gpu.block = 32 : i64} {
  scf.forall (%b) in (1) {
    scf.forall (%t) in (32) {
      %s = arith.constant 16 : i64
      %ti = arith.index_cast %t : index to i64
      %below = arith.cmpi ult, %ti, %s : i64
      scf.if %below {
        %o = arith.index_cast %ti : i64 to index
        %ui = arith.addi %ti, %s : i64
        %u = arith.index_cast %ui : i64 to index
        %a = memref.load %sh[%o] : memref<32xf32, #gpu.address_space<workgroup>>
        %c = memref.load %sh[%u] : memref<32xf32, #gpu.address_space<workgroup>>
        %d = arith.maximumf %a, %c : f32
        memref.store %d, %sh[%o] : memref<32xf32, #gpu.address_space<workgroup>>
        %x = memref.load %n[%o] : memref<32xi8, #gpu.address_space<workgroup>>
        %y = memref.load %n[%u] : memref<32xi8, #gpu.address_space<workgroup>>
        %z = arith.addi %x, %y : i8
        memref.store %z, %n[%o] : memref<32xi8, #gpu.address_space<workgroup>>
      }
    } {mapping = [#gpu.thread<x>], ckopt.gpu.lane_step = 16 : i64}
    scf.forall (%t) in (32) {
      %s = arith.constant 8 : i64
      %ti = arith.index_cast %t : index to i64
      %below = arith.cmpi ult, %ti, %s : i64
      scf.if %below {
        %o = arith.index_cast %ti : i64 to index
        %ui = arith.addi %ti, %s : i64
        %u = arith.index_cast %ui : i64 to index
        %a = memref.load %sh[%o] : memref<32xf32, #gpu.address_space<workgroup>>
        %c = memref.load %sh[%u] : memref<32xf32, #gpu.address_space<workgroup>>
        %d = arith.maximumf %a, %c : f32
        memref.store %d, %sh[%o] : memref<32xf32, #gpu.address_space<workgroup>>
        %x = memref.load %n[%o] : memref<32xi8, #gpu.address_space<workgroup>>
        %y = memref.load %n[%u] : memref<32xi8, #gpu.address_space<workgroup>>
        %z = arith.addi %x, %y : i8
        memref.store %z, %n[%o] : memref<32xi8, #gpu.address_space<workgroup>>
      }
    } {mapping = [#gpu.thread<x>], ckopt.gpu.lane_step = 8 : i64}
    scf.forall (%t) in (32) {
      %s = arith.constant 4 : i64
      %ti = arith.index_cast %t : index to i64
      %below = arith.cmpi ult, %ti, %s : i64
      scf.if %below {
        %o = arith.index_cast %ti : i64 to index
        %ui = arith.addi %ti, %s : i64
        %u = arith.index_cast %ui : i64 to index
        %a = memref.load %sh[%o] : memref<32xf32, #gpu.address_space<workgroup>>
        %c = memref.load %sh[%u] : memref<32xf32, #gpu.address_space<workgroup>>
        %d = arith.maximumf %a, %c : f32
        memref.store %d, %sh[%o] : memref<32xf32, #gpu.address_space<workgroup>>
        %x = memref.load %n[%o] : memref<32xi8, #gpu.address_space<workgroup>>
        %y = memref.load %n[%u] : memref<32xi8, #gpu.address_space<workgroup>>
        %z = arith.addi %x, %y : i8
        memref.store %z, %n[%o] : memref<32xi8, #gpu.address_space<workgroup>>
      }
    } {mapping = [#gpu.thread<x>], ckopt.gpu.lane_step = 4 : i64}
    scf.forall (%t) in (32) {
      %s = arith.constant 2 : i64
      %ti = arith.index_cast %t : index to i64
      %below = arith.cmpi ult, %ti, %s : i64
      scf.if %below {
        %o = arith.index_cast %ti : i64 to index
        %ui = arith.addi %ti, %s : i64
        %u = arith.index_cast %ui : i64 to index
        %a = memref.load %sh[%o] : memref<32xf32, #gpu.address_space<workgroup>>
        %c = memref.load %sh[%u] : memref<32xf32, #gpu.address_space<workgroup>>
        %d = arith.maximumf %a, %c : f32
        memref.store %d, %sh[%o] : memref<32xf32, #gpu.address_space<workgroup>>
        %x = memref.load %n[%o] : memref<32xi8, #gpu.address_space<workgroup>>
        %y = memref.load %n[%u] : memref<32xi8, #gpu.address_space<workgroup>>
        %z = arith.addi %x, %y : i8
        memref.store %z, %n[%o] : memref<32xi8, #gpu.address_space<workgroup>>
      }
    } {mapping = [#gpu.thread<x>], ckopt.gpu.lane_step = 2 : i64}
    scf.forall (%t) in (32) {
      %s = arith.constant 1 : i64
      %ti = arith.index_cast %t : index to i64
      %below = arith.cmpi ult, %ti, %s : i64
      scf.if %below {
        %o = arith.index_cast %ti : i64 to index
        %ui = arith.addi %ti, %s : i64
        %u = arith.index_cast %ui : i64 to index
        %a = memref.load %sh[%o] : memref<32xf32, #gpu.address_space<workgroup>>
        %c = memref.load %sh[%u] : memref<32xf32, #gpu.address_space<workgroup>>
        %d = arith.maximumf %a, %c : f32
        memref.store %d, %sh[%o] : memref<32xf32, #gpu.address_space<workgroup>>
        %x = memref.load %n[%o] : memref<32xi8, #gpu.address_space<workgroup>>
        %y = memref.load %n[%u] : memref<32xi8, #gpu.address_space<workgroup>>
        %z = arith.addi %x, %y : i8
        memref.store %z, %n[%o] : memref<32xi8, #gpu.address_space<workgroup>>
      }
    } {mapping = [#gpu.thread<x>], ckopt.gpu.lane_step = 1 : i64}
  } {mapping = [#gpu.block<x>]}
  return
}

// A step that is not of that form (lane t + 1 rather than t + s) stays as it is.
// MERGE: func.func @other
// MERGE-COUNT-5: ckopt.gpu.lane_step
// REPORT: other(p): {{.*}} trees 0+1
func.func @other(%scratch: !llvm.ptr {llvm.align = 64 : i64}, %sh: memref<32xf32, #gpu.address_space<workgroup>>, %n: memref<32xi8, #gpu.address_space<workgroup>>)
    attributes {ckopt.gpu.grid = 1 : i64, ckopt.gpu.block = 32 : i64} {
  scf.forall (%b) in (1) {
    scf.forall (%t) in (32) {
      %s = arith.constant 16 : i64
      %ti = arith.index_cast %t : index to i64
      %below = arith.cmpi ult, %ti, %s : i64
      scf.if %below {
        %o = arith.index_cast %ti : i64 to index
        %one = arith.constant 1 : i64
        %ui = arith.addi %ti, %one : i64
        %u = arith.index_cast %ui : i64 to index
        %a = memref.load %sh[%o] : memref<32xf32, #gpu.address_space<workgroup>>
        %c = memref.load %sh[%u] : memref<32xf32, #gpu.address_space<workgroup>>
        %d = arith.maximumf %a, %c : f32
        memref.store %d, %sh[%o] : memref<32xf32, #gpu.address_space<workgroup>>
        %x = memref.load %n[%o] : memref<32xi8, #gpu.address_space<workgroup>>
        %y = memref.load %n[%u] : memref<32xi8, #gpu.address_space<workgroup>>
        %z = arith.addi %x, %y : i8
        memref.store %z, %n[%o] : memref<32xi8, #gpu.address_space<workgroup>>
      }
    } {mapping = [#gpu.thread<x>], ckopt.gpu.lane_step = 16 : i64}
    scf.forall (%t) in (32) {
      %s = arith.constant 8 : i64
      %ti = arith.index_cast %t : index to i64
      %below = arith.cmpi ult, %ti, %s : i64
      scf.if %below {
        %o = arith.index_cast %ti : i64 to index
        %one = arith.constant 1 : i64
        %ui = arith.addi %ti, %one : i64
        %u = arith.index_cast %ui : i64 to index
        %a = memref.load %sh[%o] : memref<32xf32, #gpu.address_space<workgroup>>
        %c = memref.load %sh[%u] : memref<32xf32, #gpu.address_space<workgroup>>
        %d = arith.maximumf %a, %c : f32
        memref.store %d, %sh[%o] : memref<32xf32, #gpu.address_space<workgroup>>
        %x = memref.load %n[%o] : memref<32xi8, #gpu.address_space<workgroup>>
        %y = memref.load %n[%u] : memref<32xi8, #gpu.address_space<workgroup>>
        %z = arith.addi %x, %y : i8
        memref.store %z, %n[%o] : memref<32xi8, #gpu.address_space<workgroup>>
      }
    } {mapping = [#gpu.thread<x>], ckopt.gpu.lane_step = 8 : i64}
    scf.forall (%t) in (32) {
      %s = arith.constant 4 : i64
      %ti = arith.index_cast %t : index to i64
      %below = arith.cmpi ult, %ti, %s : i64
      scf.if %below {
        %o = arith.index_cast %ti : i64 to index
        %one = arith.constant 1 : i64
        %ui = arith.addi %ti, %one : i64
        %u = arith.index_cast %ui : i64 to index
        %a = memref.load %sh[%o] : memref<32xf32, #gpu.address_space<workgroup>>
        %c = memref.load %sh[%u] : memref<32xf32, #gpu.address_space<workgroup>>
        %d = arith.maximumf %a, %c : f32
        memref.store %d, %sh[%o] : memref<32xf32, #gpu.address_space<workgroup>>
        %x = memref.load %n[%o] : memref<32xi8, #gpu.address_space<workgroup>>
        %y = memref.load %n[%u] : memref<32xi8, #gpu.address_space<workgroup>>
        %z = arith.addi %x, %y : i8
        memref.store %z, %n[%o] : memref<32xi8, #gpu.address_space<workgroup>>
      }
    } {mapping = [#gpu.thread<x>], ckopt.gpu.lane_step = 4 : i64}
    scf.forall (%t) in (32) {
      %s = arith.constant 2 : i64
      %ti = arith.index_cast %t : index to i64
      %below = arith.cmpi ult, %ti, %s : i64
      scf.if %below {
        %o = arith.index_cast %ti : i64 to index
        %one = arith.constant 1 : i64
        %ui = arith.addi %ti, %one : i64
        %u = arith.index_cast %ui : i64 to index
        %a = memref.load %sh[%o] : memref<32xf32, #gpu.address_space<workgroup>>
        %c = memref.load %sh[%u] : memref<32xf32, #gpu.address_space<workgroup>>
        %d = arith.maximumf %a, %c : f32
        memref.store %d, %sh[%o] : memref<32xf32, #gpu.address_space<workgroup>>
        %x = memref.load %n[%o] : memref<32xi8, #gpu.address_space<workgroup>>
        %y = memref.load %n[%u] : memref<32xi8, #gpu.address_space<workgroup>>
        %z = arith.addi %x, %y : i8
        memref.store %z, %n[%o] : memref<32xi8, #gpu.address_space<workgroup>>
      }
    } {mapping = [#gpu.thread<x>], ckopt.gpu.lane_step = 2 : i64}
    scf.forall (%t) in (32) {
      %s = arith.constant 1 : i64
      %ti = arith.index_cast %t : index to i64
      %below = arith.cmpi ult, %ti, %s : i64
      scf.if %below {
        %o = arith.index_cast %ti : i64 to index
        %one = arith.constant 1 : i64
        %ui = arith.addi %ti, %one : i64
        %u = arith.index_cast %ui : i64 to index
        %a = memref.load %sh[%o] : memref<32xf32, #gpu.address_space<workgroup>>
        %c = memref.load %sh[%u] : memref<32xf32, #gpu.address_space<workgroup>>
        %d = arith.maximumf %a, %c : f32
        memref.store %d, %sh[%o] : memref<32xf32, #gpu.address_space<workgroup>>
        %x = memref.load %n[%o] : memref<32xi8, #gpu.address_space<workgroup>>
        %y = memref.load %n[%u] : memref<32xi8, #gpu.address_space<workgroup>>
        %z = arith.addi %x, %y : i8
        memref.store %z, %n[%o] : memref<32xi8, #gpu.address_space<workgroup>>
      }
    } {mapping = [#gpu.thread<x>], ckopt.gpu.lane_step = 1 : i64}
  } {mapping = [#gpu.block<x>]}
  return
}

// Numbers of 64 bits travel in two halves.
// MERGE: func.func @wide
// MERGE: arith.bitcast %{{.*}} : f64 to i64
// MERGE-COUNT-2: gpu.shuffle down %{{.*}} : i32
// MERGE: arith.bitcast %{{.*}} : i64 to f64
// MERGE-COUNT-8: gpu.shuffle down
// MERGE-NOT: gpu.shuffle
// REPORT: wide(p): {{.*}}, f64, {{.*}} trees 1+0
func.func @wide(%scratch: !llvm.ptr {llvm.align = 64 : i64}, %sh: memref<32xf64, #gpu.address_space<workgroup>>)
    attributes {ckopt.gpu.grid = 1 : i64, ckopt.gpu.block = 32 : i64} {
  scf.forall (%b) in (1) {
    scf.forall (%t) in (32) {
      %s = arith.constant 16 : index
      %below = arith.cmpi ult, %t, %s : index
      scf.if %below {
        %u = arith.addi %t, %s : index
        %a = memref.load %sh[%t] : memref<32xf64, #gpu.address_space<workgroup>>
        %c = memref.load %sh[%u] : memref<32xf64, #gpu.address_space<workgroup>>
        %d = arith.addf %a, %c : f64
        memref.store %d, %sh[%t] : memref<32xf64, #gpu.address_space<workgroup>>
      }
    } {mapping = [#gpu.thread<x>], ckopt.gpu.lane_step = 16 : i64}
    scf.forall (%t) in (32) {
      %s = arith.constant 8 : index
      %below = arith.cmpi ult, %t, %s : index
      scf.if %below {
        %u = arith.addi %t, %s : index
        %a = memref.load %sh[%t] : memref<32xf64, #gpu.address_space<workgroup>>
        %c = memref.load %sh[%u] : memref<32xf64, #gpu.address_space<workgroup>>
        %d = arith.addf %a, %c : f64
        memref.store %d, %sh[%t] : memref<32xf64, #gpu.address_space<workgroup>>
      }
    } {mapping = [#gpu.thread<x>], ckopt.gpu.lane_step = 8 : i64}
    scf.forall (%t) in (32) {
      %s = arith.constant 4 : index
      %below = arith.cmpi ult, %t, %s : index
      scf.if %below {
        %u = arith.addi %t, %s : index
        %a = memref.load %sh[%t] : memref<32xf64, #gpu.address_space<workgroup>>
        %c = memref.load %sh[%u] : memref<32xf64, #gpu.address_space<workgroup>>
        %d = arith.addf %a, %c : f64
        memref.store %d, %sh[%t] : memref<32xf64, #gpu.address_space<workgroup>>
      }
    } {mapping = [#gpu.thread<x>], ckopt.gpu.lane_step = 4 : i64}
    scf.forall (%t) in (32) {
      %s = arith.constant 2 : index
      %below = arith.cmpi ult, %t, %s : index
      scf.if %below {
        %u = arith.addi %t, %s : index
        %a = memref.load %sh[%t] : memref<32xf64, #gpu.address_space<workgroup>>
        %c = memref.load %sh[%u] : memref<32xf64, #gpu.address_space<workgroup>>
        %d = arith.addf %a, %c : f64
        memref.store %d, %sh[%t] : memref<32xf64, #gpu.address_space<workgroup>>
      }
    } {mapping = [#gpu.thread<x>], ckopt.gpu.lane_step = 2 : i64}
    scf.forall (%t) in (32) {
      %s = arith.constant 1 : index
      %below = arith.cmpi ult, %t, %s : index
      scf.if %below {
        %u = arith.addi %t, %s : index
        %a = memref.load %sh[%t] : memref<32xf64, #gpu.address_space<workgroup>>
        %c = memref.load %sh[%u] : memref<32xf64, #gpu.address_space<workgroup>>
        %d = arith.addf %a, %c : f64
        memref.store %d, %sh[%t] : memref<32xf64, #gpu.address_space<workgroup>>
      }
    } {mapping = [#gpu.thread<x>], ckopt.gpu.lane_step = 1 : i64}
    scf.forall (%t) in (1) {
      %x = memref.load %sh[%t] : memref<32xf64, #gpu.address_space<workgroup>>
      llvm.store %x, %scratch {alignment = 8 : i64} : f64, !llvm.ptr
    } {mapping = [#gpu.thread<x>]}
  } {mapping = [#gpu.block<x>]}
  return
}
