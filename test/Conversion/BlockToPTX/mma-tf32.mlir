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

// The k of memory 2q and 2q + 1 are those of a thread's two elements of a row.
// GPU: nvvm.convert.float.to.tf32 {{.*}} {rnd = #nvvm.fp_rnd_mode<rna>}
// GPU-COUNT-2: vector.load {{.*}} vector<2xf32>
// GPU-COUNT-2: memref.load
// GPU: nvvm.mma.sync
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
