// Shows a product of one warp: on a GPU fragments are pairs of neighbours and one
// instruction multiplies; as loops every thread computes its four sums.
// RUN: ckopt-opt %s --print-ptx=sm=80 -o /dev/null | FileCheck %s --check-prefix=PTX
// RUN: ckopt-opt %s --print-ptx=sm=90 -o /dev/null | FileCheck %s --check-prefix=PTX
// RUN: ckopt-opt %s --block-to-gpu | FileCheck %s --check-prefix=GPU
// RUN: ckopt-opt %s --block-to-loops | FileCheck %s --check-prefix=LOOPS

// PTX: .visible .entry product(
// PTX-NOT: .local
// PTX-NOT: shfl
// PTX: bar.sync 0
// PTX-COUNT-2: ldmatrix.sync.aligned.m8n8.x{{[24]}}.shared.b16
// PTX: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// PTX-NOT: mma.sync

// GPU-COUNT-2: block.load_matrices
// GPU: nvvm.mma.sync
// GPU-NOT: block.mma

// LOOPS-NOT: nvvm
// LOOPS: %[[SIXTEEN:.*]] = arith.constant 16 : index
// LOOPS: scf.for {{.*}} to %{{.*}} step {{.*}} iter_args
// LOOPS-COUNT-4: math.fma
// LOOPS-NOT: block.mma
func.func @product(%x: !llvm.ptr {llvm.align = 64 : i64}, %y: !llvm.ptr {llvm.align = 64 : i64},
                   %scratch: !llvm.ptr {llvm.align = 64 : i64},
                   %a: memref<384xbf16, #gpu.address_space<workgroup>>,
                   %b: memref<192xbf16, #gpu.address_space<workgroup>>,
                   %own: memref<32x4xf32, #gpu.address_space<private>>)
    attributes {ckopt.gpu.grid = 1 : i64, ckopt.gpu.block = 32 : i64} {
  scf.forall (%block) in (1) {
    scf.forall (%t) in (32) {
      %c8 = arith.constant 8 : index
      %c12 = arith.constant 12 : index
      %i = arith.index_cast %t : index to i64
      %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, bf16
      %v = llvm.load %p {alignment = 2 : i64} : !llvm.ptr -> bf16
      %at = arith.muli %t, %c12 : index
      memref.store %v, %a[%at] : memref<384xbf16, #gpu.address_space<workgroup>>
      %to = arith.addi %t, %c8 : index
      memref.store %v, %b[%to] : memref<192xbf16, #gpu.address_space<workgroup>>
    } {mapping = [#gpu.thread<x>]}
    scf.forall (%t) in (32) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %zero = arith.constant 0.0 : f32
      %d:4 = block.mma %t, %a[%c0] pitch 24, %b[%c0] pitch 24, %zero, %zero, %zero, %zero
          : memref<384xbf16, #gpu.address_space<workgroup>>, memref<192xbf16, #gpu.address_space<workgroup>>
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
