// Shows a tiled product: accumulators stay in registers through the loop over k,
// tiles in shared memory, two barriers an iteration, one rounding a term.
// RUN: ckopt-opt %s --block-to-gpu | FileCheck %s --check-prefix=GPU
// RUN: ckopt-opt %s --print-ptx=sm=80 -o /dev/null | FileCheck %s --check-prefix=PTX
// RUN: ckopt-opt %s --print-ptx=sm=90 -o /dev/null | FileCheck %s --check-prefix=PTX
// RUN: ckopt-opt %s --print-ptx=report -o /dev/null | FileCheck %s --check-prefix=REPORT

// GPU: gpu.func @matmul(
// GPU: memref.alloca() {alignment = 16 : i64} : memref<16xf32>
// GPU-NOT: gpu.barrier
// GPU: scf.for
// GPU-NOT: gpu.barrier
// GPU: vector.store
// GPU-NEXT: gpu.barrier
// GPU: scf.for
// GPU: memref.store
// GPU: gpu.barrier
// GPU-NEXT: }
// GPU-NOT: gpu.barrier
// GPU: gpu.return

// PTX: .visible .entry matmul(
// PTX-NOT: .local
// PTX: .shared .align 16 .b8 {{.*}}[4096]
// PTX: .shared .align 16 .b8 {{.*}}[4096]
// PTX: ld.global.v4.b32
// PTX: ld.global.v4.b32
// PTX: st.shared.v4.b32
// PTX: bar.sync 0
// PTX: ld.shared.v4.b32
// PTX-COUNT-16: fma.rn.ftz.f32
// PTX: bar.sync 0
// PTX-COUNT-4: st.global.v4.b32
// REPORT: matmul(pppp): grid 6, block 256, shared 8192, wide 6, narrow 0, split 0, trees 0+0, loads 2 together, 1 times
func.func @matmul(%a: !llvm.ptr {llvm.align = 64 : i64}, %b: !llvm.ptr {llvm.align = 64 : i64}, %c: !llvm.ptr {llvm.align = 64 : i64}, %scratch: !llvm.ptr {llvm.align = 64 : i64},
                  %as: memref<16x64xf32, #gpu.address_space<workgroup>>, %bs: memref<16x64xf32, #gpu.address_space<workgroup>>,
                  %acc: memref<256x16xf32, #gpu.address_space<private>>)
    attributes {ckopt.gpu.grid = 6 : i64, ckopt.gpu.block = 256 : i64} {
  %gn = arith.constant 3 : index
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %cK = arith.constant 64 : index
  %cN = arith.constant 192 : index
  %ck = arith.constant 16 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  %i1 = arith.constant 1 : index
  %i2 = arith.constant 2 : index
  %i3 = arith.constant 3 : index
  %i5 = arith.constant 5 : index
  %i6 = arith.constant 6 : index
  %i7 = arith.constant 7 : index
  %i8 = arith.constant 8 : index
  %i9 = arith.constant 9 : index
  %i10 = arith.constant 10 : index
  %i11 = arith.constant 11 : index
  %i12 = arith.constant 12 : index
  %i13 = arith.constant 13 : index
  %i14 = arith.constant 14 : index
  %i15 = arith.constant 15 : index
  %i4 = arith.constant 4 : index
  %i0 = arith.constant 0 : index
  scf.forall (%block) in (6) {
    %bm = arith.divui %block, %gn : index
    %bn = arith.remui %block, %gn : index
    %m0 = arith.muli %bm, %c64 : index
    %n0 = arith.muli %bn, %c64 : index
    scf.forall (%t) in (256) {
      memref.store %zero, %acc[%t, %i0] : memref<256x16xf32, #gpu.address_space<private>>
      memref.store %zero, %acc[%t, %i1] : memref<256x16xf32, #gpu.address_space<private>>
      memref.store %zero, %acc[%t, %i2] : memref<256x16xf32, #gpu.address_space<private>>
      memref.store %zero, %acc[%t, %i3] : memref<256x16xf32, #gpu.address_space<private>>
      memref.store %zero, %acc[%t, %i4] : memref<256x16xf32, #gpu.address_space<private>>
      memref.store %zero, %acc[%t, %i5] : memref<256x16xf32, #gpu.address_space<private>>
      memref.store %zero, %acc[%t, %i6] : memref<256x16xf32, #gpu.address_space<private>>
      memref.store %zero, %acc[%t, %i7] : memref<256x16xf32, #gpu.address_space<private>>
      memref.store %zero, %acc[%t, %i8] : memref<256x16xf32, #gpu.address_space<private>>
      memref.store %zero, %acc[%t, %i9] : memref<256x16xf32, #gpu.address_space<private>>
      memref.store %zero, %acc[%t, %i10] : memref<256x16xf32, #gpu.address_space<private>>
      memref.store %zero, %acc[%t, %i11] : memref<256x16xf32, #gpu.address_space<private>>
      memref.store %zero, %acc[%t, %i12] : memref<256x16xf32, #gpu.address_space<private>>
      memref.store %zero, %acc[%t, %i13] : memref<256x16xf32, #gpu.address_space<private>>
      memref.store %zero, %acc[%t, %i14] : memref<256x16xf32, #gpu.address_space<private>>
      memref.store %zero, %acc[%t, %i15] : memref<256x16xf32, #gpu.address_space<private>>
    } {mapping = [#gpu.thread<x>]}
    scf.for %k0 = %c0 to %cK step %ck {
      scf.forall (%t) in (256) {
        %ar = arith.divui %t, %c4 : index
        %aq = arith.remui %t, %c4 : index
        %ac = arith.muli %aq, %c4 : index
        %am = arith.addi %m0, %ar : index
        %arow = arith.muli %am, %cK : index
        %ak = arith.addi %k0, %ac : index
        %ao = arith.addi %arow, %ak : index
        %ai = arith.index_cast %ao : index to i64
        %ap = llvm.getelementptr %a[%ai] : (!llvm.ptr, i64) -> !llvm.ptr, f32
        %av = llvm.load %ap {alignment = 4 : i64} : !llvm.ptr -> vector<4xf32>
        %ae0 = vector.extract %av[0] : f32 from vector<4xf32>
        %ak0 = arith.addi %ac, %i0 : index
        memref.store %ae0, %as[%ak0, %ar] : memref<16x64xf32, #gpu.address_space<workgroup>>
        %ae1 = vector.extract %av[1] : f32 from vector<4xf32>
        %ak1 = arith.addi %ac, %i1 : index
        memref.store %ae1, %as[%ak1, %ar] : memref<16x64xf32, #gpu.address_space<workgroup>>
        %ae2 = vector.extract %av[2] : f32 from vector<4xf32>
        %ak2 = arith.addi %ac, %i2 : index
        memref.store %ae2, %as[%ak2, %ar] : memref<16x64xf32, #gpu.address_space<workgroup>>
        %ae3 = vector.extract %av[3] : f32 from vector<4xf32>
        %ak3 = arith.addi %ac, %i3 : index
        memref.store %ae3, %as[%ak3, %ar] : memref<16x64xf32, #gpu.address_space<workgroup>>
        %tm = arith.divui %t, %c16 : index
        %tn = arith.remui %t, %c16 : index
        %tn4 = arith.muli %tn, %c4 : index
        %bk = arith.addi %k0, %tm : index
        %brow = arith.muli %bk, %cN : index
        %bcol = arith.addi %n0, %tn4 : index
        %bo = arith.addi %brow, %bcol : index
        %bi = arith.index_cast %bo : index to i64
        %bp = llvm.getelementptr %b[%bi] : (!llvm.ptr, i64) -> !llvm.ptr, f32
        %bv = llvm.load %bp {alignment = 4 : i64} : !llvm.ptr -> vector<4xf32>
        vector.store %bv, %bs[%tm, %tn4] : memref<16x64xf32, #gpu.address_space<workgroup>>, vector<4xf32>
      } {mapping = [#gpu.thread<x>]}
      scf.forall (%t) in (256) {
        %tm = arith.divui %t, %c16 : index
        %tn = arith.remui %t, %c16 : index
        %tm4 = arith.muli %tm, %c4 : index
        %tn4 = arith.muli %tn, %c4 : index
        %x0 = memref.load %acc[%t, %i0] : memref<256x16xf32, #gpu.address_space<private>>
        %x1 = memref.load %acc[%t, %i1] : memref<256x16xf32, #gpu.address_space<private>>
        %x2 = memref.load %acc[%t, %i2] : memref<256x16xf32, #gpu.address_space<private>>
        %x3 = memref.load %acc[%t, %i3] : memref<256x16xf32, #gpu.address_space<private>>
        %x4 = memref.load %acc[%t, %i4] : memref<256x16xf32, #gpu.address_space<private>>
        %x5 = memref.load %acc[%t, %i5] : memref<256x16xf32, #gpu.address_space<private>>
        %x6 = memref.load %acc[%t, %i6] : memref<256x16xf32, #gpu.address_space<private>>
        %x7 = memref.load %acc[%t, %i7] : memref<256x16xf32, #gpu.address_space<private>>
        %x8 = memref.load %acc[%t, %i8] : memref<256x16xf32, #gpu.address_space<private>>
        %x9 = memref.load %acc[%t, %i9] : memref<256x16xf32, #gpu.address_space<private>>
        %x10 = memref.load %acc[%t, %i10] : memref<256x16xf32, #gpu.address_space<private>>
        %x11 = memref.load %acc[%t, %i11] : memref<256x16xf32, #gpu.address_space<private>>
        %x12 = memref.load %acc[%t, %i12] : memref<256x16xf32, #gpu.address_space<private>>
        %x13 = memref.load %acc[%t, %i13] : memref<256x16xf32, #gpu.address_space<private>>
        %x14 = memref.load %acc[%t, %i14] : memref<256x16xf32, #gpu.address_space<private>>
        %x15 = memref.load %acc[%t, %i15] : memref<256x16xf32, #gpu.address_space<private>>
        %r:16 = scf.for %k = %c0 to %ck step %i1 iter_args(%y0 = %x0, %y1 = %x1, %y2 = %x2, %y3 = %x3, %y4 = %x4, %y5 = %x5, %y6 = %x6, %y7 = %x7, %y8 = %x8, %y9 = %x9, %y10 = %x10, %y11 = %x11, %y12 = %x12, %y13 = %x13, %y14 = %x14, %y15 = %x15) -> (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32) {
          %va = vector.load %as[%k, %tm4] : memref<16x64xf32, #gpu.address_space<workgroup>>, vector<4xf32>
          %vb = vector.load %bs[%k, %tn4] : memref<16x64xf32, #gpu.address_space<workgroup>>, vector<4xf32>
          %p0 = vector.extract %va[0] : f32 from vector<4xf32>
          %q0 = vector.extract %vb[0] : f32 from vector<4xf32>
          %p1 = vector.extract %va[1] : f32 from vector<4xf32>
          %q1 = vector.extract %vb[1] : f32 from vector<4xf32>
          %p2 = vector.extract %va[2] : f32 from vector<4xf32>
          %q2 = vector.extract %vb[2] : f32 from vector<4xf32>
          %p3 = vector.extract %va[3] : f32 from vector<4xf32>
          %q3 = vector.extract %vb[3] : f32 from vector<4xf32>
          %z0 = math.fma %p0, %q0, %y0 : f32
          %z1 = math.fma %p0, %q1, %y1 : f32
          %z2 = math.fma %p0, %q2, %y2 : f32
          %z3 = math.fma %p0, %q3, %y3 : f32
          %z4 = math.fma %p1, %q0, %y4 : f32
          %z5 = math.fma %p1, %q1, %y5 : f32
          %z6 = math.fma %p1, %q2, %y6 : f32
          %z7 = math.fma %p1, %q3, %y7 : f32
          %z8 = math.fma %p2, %q0, %y8 : f32
          %z9 = math.fma %p2, %q1, %y9 : f32
          %z10 = math.fma %p2, %q2, %y10 : f32
          %z11 = math.fma %p2, %q3, %y11 : f32
          %z12 = math.fma %p3, %q0, %y12 : f32
          %z13 = math.fma %p3, %q1, %y13 : f32
          %z14 = math.fma %p3, %q2, %y14 : f32
          %z15 = math.fma %p3, %q3, %y15 : f32
          scf.yield %z0, %z1, %z2, %z3, %z4, %z5, %z6, %z7, %z8, %z9, %z10, %z11, %z12, %z13, %z14, %z15 : f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32
        }
        memref.store %r#0, %acc[%t, %i0] : memref<256x16xf32, #gpu.address_space<private>>
        memref.store %r#1, %acc[%t, %i1] : memref<256x16xf32, #gpu.address_space<private>>
        memref.store %r#2, %acc[%t, %i2] : memref<256x16xf32, #gpu.address_space<private>>
        memref.store %r#3, %acc[%t, %i3] : memref<256x16xf32, #gpu.address_space<private>>
        memref.store %r#4, %acc[%t, %i4] : memref<256x16xf32, #gpu.address_space<private>>
        memref.store %r#5, %acc[%t, %i5] : memref<256x16xf32, #gpu.address_space<private>>
        memref.store %r#6, %acc[%t, %i6] : memref<256x16xf32, #gpu.address_space<private>>
        memref.store %r#7, %acc[%t, %i7] : memref<256x16xf32, #gpu.address_space<private>>
        memref.store %r#8, %acc[%t, %i8] : memref<256x16xf32, #gpu.address_space<private>>
        memref.store %r#9, %acc[%t, %i9] : memref<256x16xf32, #gpu.address_space<private>>
        memref.store %r#10, %acc[%t, %i10] : memref<256x16xf32, #gpu.address_space<private>>
        memref.store %r#11, %acc[%t, %i11] : memref<256x16xf32, #gpu.address_space<private>>
        memref.store %r#12, %acc[%t, %i12] : memref<256x16xf32, #gpu.address_space<private>>
        memref.store %r#13, %acc[%t, %i13] : memref<256x16xf32, #gpu.address_space<private>>
        memref.store %r#14, %acc[%t, %i14] : memref<256x16xf32, #gpu.address_space<private>>
        memref.store %r#15, %acc[%t, %i15] : memref<256x16xf32, #gpu.address_space<private>>
      } {mapping = [#gpu.thread<x>]}
    }
    scf.forall (%t) in (256) {
      %tm = arith.divui %t, %c16 : index
      %tn = arith.remui %t, %c16 : index
      %tm4 = arith.muli %tm, %c4 : index
      %tn4 = arith.muli %tn, %c4 : index
      %col = arith.addi %n0, %tn4 : index
      %rr0 = arith.addi %tm4, %i0 : index
      %row0 = arith.addi %m0, %rr0 : index
      %ro0 = arith.muli %row0, %cN : index
      %o0 = arith.addi %ro0, %col : index
      %oi0 = arith.index_cast %o0 : index to i64
      %op0 = llvm.getelementptr %c[%oi0] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %ti = arith.index_cast %t : index to i64
      %own = arith.index_cast %ti : i64 to index
      %ov0 = vector.load %acc[%own, %i0] : memref<256x16xf32, #gpu.address_space<private>>, vector<4xf32>
      llvm.store %ov0, %op0 {alignment = 4 : i64} : vector<4xf32>, !llvm.ptr
      %rr1 = arith.addi %tm4, %i1 : index
      %row1 = arith.addi %m0, %rr1 : index
      %ro1 = arith.muli %row1, %cN : index
      %o1 = arith.addi %ro1, %col : index
      %oi1 = arith.index_cast %o1 : index to i64
      %op1 = llvm.getelementptr %c[%oi1] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %ov1 = vector.load %acc[%t, %i4] : memref<256x16xf32, #gpu.address_space<private>>, vector<4xf32>
      llvm.store %ov1, %op1 {alignment = 4 : i64} : vector<4xf32>, !llvm.ptr
      %rr2 = arith.addi %tm4, %i2 : index
      %row2 = arith.addi %m0, %rr2 : index
      %ro2 = arith.muli %row2, %cN : index
      %o2 = arith.addi %ro2, %col : index
      %oi2 = arith.index_cast %o2 : index to i64
      %op2 = llvm.getelementptr %c[%oi2] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %ov2 = vector.load %acc[%t, %i8] : memref<256x16xf32, #gpu.address_space<private>>, vector<4xf32>
      llvm.store %ov2, %op2 {alignment = 4 : i64} : vector<4xf32>, !llvm.ptr
      %rr3 = arith.addi %tm4, %i3 : index
      %row3 = arith.addi %m0, %rr3 : index
      %ro3 = arith.muli %row3, %cN : index
      %o3 = arith.addi %ro3, %col : index
      %oi3 = arith.index_cast %o3 : index to i64
      %op3 = llvm.getelementptr %c[%oi3] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %ov3 = vector.load %acc[%t, %i12] : memref<256x16xf32, #gpu.address_space<private>>, vector<4xf32>
      llvm.store %ov3, %op3 {alignment = 4 : i64} : vector<4xf32>, !llvm.ptr
    } {mapping = [#gpu.thread<x>]}
  } {mapping = [#gpu.block<x>]}
  return
}
