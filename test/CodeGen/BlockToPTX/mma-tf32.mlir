// Shows a product of one warp by TF32: elements are rounded by one instruction on a
// GPU and by integers as loops; rows along k are read in pairs, columns across k one
// by one; unasked, the code is refused.
// RUN: ckopt-opt %s --print-ptx="sm=80 tf32=true" -o /dev/null | FileCheck %s --check-prefix=PTX
// RUN: ckopt-opt %s --print-ptx="sm=90 tf32=true" -o /dev/null | FileCheck %s --check-prefix=PTX
// RUN: not ckopt-opt %s --print-ptx=sm=80 -o /dev/null 2>&1 | FileCheck %s --check-prefix=UNASKED
// RUN: ckopt-opt %s --block-to-gpu | FileCheck %s --check-prefix=GPU
// RUN: ckopt-opt %s --block-to-loops | FileCheck %s --check-prefix=LOOPS
// RUN: ckopt-opt %s | ckopt-opt | FileCheck %s --check-prefix=TEXT

// PTX: .visible .entry product(
// PTX-NOT: .local
// PTX: cvt.rna.tf32.f32
// PTX: bar.sync 0
// PTX: ld.shared.v2.b32
// PTX: ld.shared.v2.b32
// PTX: ld.shared.b32
// PTX: ld.shared.b32
// PTX: mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32
// PTX-NOT: mma.sync

// UNASKED: generated PTX is not fit to run:
// UNASKED: kernel 'product', line {{[0-9]+}}: operands rounded to tf32 unasked: cvt.rna.tf32.f32
// UNASKED: kernel 'product', line {{[0-9]+}}: operands rounded to tf32 unasked: mma.sync

// k of memory 2q and 2q + 1 are a thread's two elements of row g (first pair), of row
// g + 8 (second pair) and of column g; the instruction wants those of 2q first.
// GPU: nvvm.convert.float.to.tf32 {{.*}} {rnd = #nvvm.fp_rnd_mode<rna>}
// GPU-DAG: %[[TWICE:.*]] = arith.muli %{{.*}}, %c2{{.*}} : index
// GPU-DAG: %[[C192:.*]] = arith.constant 192 : index
// GPU: %[[HIGH:.*]] = arith.addi %[[LOW:.*]], %[[C192]] : index
// GPU: %[[AT:.*]] = arith.addi %[[LOW]], %[[TWICE]] : index
// GPU: %[[P:.*]] = vector.load %{{.*}}[%[[AT]]] {alignment = 8 : i64} {{.*}} vector<2xf32>
// GPU: %[[P0:.*]] = vector.extract %[[P]][0]
// GPU: %[[P1:.*]] = vector.extract %[[P]][1]
// GPU: %[[A0:.*]] = arith.bitcast %[[P0]]
// GPU: %[[A2:.*]] = arith.bitcast %[[P1]]
// GPU: %[[AT8:.*]] = arith.addi %[[HIGH]], %[[TWICE]] : index
// GPU: %[[Q:.*]] = vector.load %{{.*}}[%[[AT8]]] {alignment = 8 : i64} {{.*}} vector<2xf32>
// GPU: %[[Q0:.*]] = vector.extract %[[Q]][0]
// GPU: %[[Q1:.*]] = vector.extract %[[Q]][1]
// GPU: %[[A1:.*]] = arith.bitcast %[[Q0]]
// GPU: %[[A3:.*]] = arith.bitcast %[[Q1]]
// GPU: %[[DEPTH:.*]] = arith.muli %[[TWICE]], %c12{{.*}} : index
// GPU: %[[FIRST:.*]] = arith.addi %{{.*}}, %[[DEPTH]] : index
// GPU: %[[R0:.*]] = memref.load %{{.*}}[%[[FIRST]]]
// GPU: %[[SECOND:.*]] = arith.addi %[[FIRST]], %c12{{.*}} : index
// GPU: %[[R1:.*]] = memref.load %{{.*}}[%[[SECOND]]]
// GPU: %[[B0:.*]] = arith.bitcast %[[R0]]
// GPU: %[[B1:.*]] = arith.bitcast %[[R1]]
// GPU: nvvm.mma.sync A[%[[A0]], %[[A1]], %[[A2]], %[[A3]]] B[%[[B0]], %[[B1]]]
// GPU-SAME: multiplicandAPtxType = #nvvm.mma_type<tf32>
// GPU-SAME: shape = #nvvm.shape<m = 16, n = 8, k = 8>
// GPU-NOT: block.

// LOOPS-NOT: nvvm
// LOOPS: arith.constant 4096 : i32
// LOOPS: arith.constant -8192 : i32
// LOOPS: arith.constant 2139095040 : i32
// LOOPS: arith.cmpi ugt
// LOOPS: arith.select
// LOOPS-COUNT-4: math.fma
// LOOPS-NOT: block.

// TEXT: block.round_tf32 %{{.*}} : f32
// TEXT: block.mma %{{.*}}, %{{.*}}[%{{.*}}] pitch 24, %{{.*}}[%{{.*}}] pitch 1 step 12,
func.func @product(%x: !llvm.ptr {llvm.align = 64 : i64}, %y: !llvm.ptr {llvm.align = 64 : i64},
                   %scratch: !llvm.ptr {llvm.align = 64 : i64},
                   %a: memref<384xf32, #gpu.address_space<workgroup>>,
                   %b: memref<96xf32, #gpu.address_space<workgroup>>,
                   %own: memref<32x4xf32, #gpu.address_space<private>>)
    attributes {ckopt.gpu.grid = 1 : i64, ckopt.gpu.block = 32 : i64} {
  scf.forall (%block) in (1) {
    scf.forall (%t) in (32) {
      %c3 = arith.constant 3 : index
      %c12 = arith.constant 12 : index
      %i = arith.index_cast %t : index to i64
      %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %v = llvm.load %p {alignment = 4 : i64} : !llvm.ptr -> f32
      %r = block.round_tf32 %v : f32
      %at = arith.muli %t, %c12 : index
      memref.store %r, %a[%at] : memref<384xf32, #gpu.address_space<workgroup>>
      %to = arith.muli %t, %c3 : index
      memref.store %r, %b[%to] : memref<96xf32, #gpu.address_space<workgroup>>
    } {mapping = [#gpu.thread<x>]}
    scf.forall (%t) in (32) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %zero = arith.constant 0.0 : f32
      %d:4 = block.mma %t, %a[%c0] pitch 24, %b[%c0] pitch 1 step 12, %zero, %zero, %zero, %zero
          : memref<384xf32, #gpu.address_space<workgroup>>, memref<96xf32, #gpu.address_space<workgroup>>
      memref.store %d#0, %own[%t, %c0] : memref<32x4xf32, #gpu.address_space<private>>
      memref.store %d#1, %own[%t, %c1] : memref<32x4xf32, #gpu.address_space<private>>
      memref.store %d#2, %own[%t, %c2] : memref<32x4xf32, #gpu.address_space<private>>
      memref.store %d#3, %own[%t, %c3] : memref<32x4xf32, #gpu.address_space<private>>
    } {mapping = [#gpu.thread<x>]}
    scf.forall (%t) in (32) {
      %i = arith.index_cast %t : index to i64
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %d0 = memref.load %own[%t, %c0] : memref<32x4xf32, #gpu.address_space<private>>
      %d1 = memref.load %own[%t, %c1] : memref<32x4xf32, #gpu.address_space<private>>
      %d2 = memref.load %own[%t, %c2] : memref<32x4xf32, #gpu.address_space<private>>
      %d3 = memref.load %own[%t, %c3] : memref<32x4xf32, #gpu.address_space<private>>
      %s = arith.addf %d0, %d1 : f32
      %u = arith.addf %d2, %d3 : f32
      %v = arith.addf %s, %u : f32
      %p = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      llvm.store %v, %p {alignment = 4 : i64} : f32, !llvm.ptr
    } {mapping = [#gpu.thread<x>]}
  } {mapping = [#gpu.block<x>]}
  return
}
