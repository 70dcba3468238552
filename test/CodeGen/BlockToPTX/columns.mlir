// Shows sums over columns in two stages of threads, a uniform condition, call
// scalars, a constant table and a narrow element type.
// RUN: ckopt-opt %s --block-to-loops | FileCheck %s --check-prefix=LOOPS
// RUN: ckopt-opt %s --block-to-gpu | FileCheck %s --check-prefix=GPU
// RUN: ckopt-opt %s --print-ptx=sm=80 -o /dev/null | FileCheck %s --check-prefix=PTX
// RUN: ckopt-opt %s --print-ptx=sm=90 -o /dev/null | FileCheck %s --check-prefix=PTX

// LOOPS: func.func @columns(
// LOOPS: memref.alloca() {alignment = 64 : i64} : memref<8x32xf32>
// GPU: gpu.module @ckopt_kernels
// GPU: llvm.mlir.global private constant @weights(
// GPU: gpu.func @columns(
// One barrier before the loop of the uniform branch, one an interval.
// GPU: gpu.return

// The table lies in the module; the kernel reads it as global memory.
// PTX: .global .align 64 .b8 weights[32]
// PTX: .visible .entry columns(
// PTX: .param .u64 columns_param_2
// PTX: cvt.ftz.f32.f16
// PTX: mul.rn.ftz.f32
// PTX: add.rn.ftz.f32
// PTX: st.shared
// PTX: bar.sync
// PTX: ret;
llvm.mlir.global private constant @weights(dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>) {alignment = 64 : i64} : !llvm.array<8 x f32>
func.func @columns(%x: !llvm.ptr {llvm.align = 64 : i64}, %y: !llvm.ptr {llvm.align = 64 : i64}, %double: i64,
                   %scratch: !llvm.ptr {llvm.align = 64 : i64},
                   %part: memref<8x32xf32, #gpu.address_space<workgroup>>)
    attributes {ckopt.gpu.grid = 4 : i64, ckopt.gpu.block = 256 : i64} {
  %table = llvm.mlir.addressof @weights : !llvm.ptr
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %c100 = arith.constant 100 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0 : i64
  scf.forall (%b) in (4) {
    %first = arith.muli %b, %c32 : index
    // Eight threads a column, rows r, r + 8, ...
    scf.forall (%t) in (256) {
      %r = arith.divui %t, %c32 : index
      %c = arith.remui %t, %c32 : index
      %col = arith.addi %first, %c : index
      %ri = arith.index_cast %r : index to i64
      %wp = llvm.getelementptr %table[%ri] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %w = llvm.load %wp {alignment = 4 : i64} : !llvm.ptr -> f32
      %sum = scf.for %row = %r to %c100 step %c8 iter_args(%acc = %zero) -> (f32) {
        %base = arith.muli %row, %c128 : index
        %o = arith.addi %base, %col : index
        %i = arith.index_cast %o : index to i64
        %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f16
        %h = llvm.load %p {alignment = 2 : i64} : !llvm.ptr -> f16
        %v = arith.extf %h : f16 to f32
        %m = arith.mulf %v, %w : f32
        %next = arith.addf %acc, %m : f32
        scf.yield %next : f32
      }
      memref.store %sum, %part[%r, %c] : memref<8x32xf32, #gpu.address_space<workgroup>>
    } {mapping = [#gpu.thread<x>]}
    %twice = arith.cmpi ne, %double, %none : i64
    scf.if %twice {
      scf.forall (%t) in (256) {
        %r = arith.divui %t, %c32 : index
        %c = arith.remui %t, %c32 : index
        %v = memref.load %part[%r, %c] : memref<8x32xf32, #gpu.address_space<workgroup>>
        %d = arith.addf %v, %v : f32
        memref.store %d, %part[%r, %c] : memref<8x32xf32, #gpu.address_space<workgroup>>
      } {mapping = [#gpu.thread<x>]}
    }
    scf.forall (%t) in (32) {
      %sum = scf.for %r = %c0 to %c8 step %c1 iter_args(%acc = %zero) -> (f32) {
        %v = memref.load %part[%r, %t] : memref<8x32xf32, #gpu.address_space<workgroup>>
        %next = arith.addf %acc, %v : f32
        scf.yield %next : f32
      }
      %col = arith.addi %first, %t : index
      %i = arith.index_cast %col : index to i64
      %p = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      llvm.store %sum, %p {alignment = 4 : i64} : f32, !llvm.ptr
    } {mapping = [#gpu.thread<x>]}
  } {mapping = [#gpu.block<x>]}
  return
}
