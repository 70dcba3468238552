// Shows which barriers stay: those between whose sides accesses of the same
// memory conflict.
// RUN: ckopt-opt %s --block-to-gpu | FileCheck %s

// Intervals over different buffers do not wait for each other; one that reads
// what another wrote does; the last one needs none after it.
// CHECK-LABEL: gpu.func @buffers
// CHECK-NOT: gpu.barrier
// CHECK: memref.store %{{.*}}, %[[A:.*]][
// CHECK-NOT: gpu.barrier
// CHECK: memref.store %{{.*}}, %[[B:.*]][
// CHECK: gpu.barrier
// CHECK: memref.load %[[A]]
// CHECK: llvm.store
// CHECK-NOT: gpu.barrier
// CHECK: gpu.return
func.func @buffers(%y: !llvm.ptr {llvm.align = 64 : i64}, %scratch: !llvm.ptr,
                   %a: memref<32xf32, #gpu.address_space<workgroup>>, %b: memref<32xf32, #gpu.address_space<workgroup>>)
    attributes {ckopt.gpu.grid = 1 : i64, ckopt.gpu.block = 32 : i64} {
  %one = arith.constant 1.0 : f32
  %c31 = arith.constant 31 : index
  scf.forall (%block) in (1) {
    scf.forall (%t) in (32) {
      memref.store %one, %a[%t] : memref<32xf32, #gpu.address_space<workgroup>>
    } {mapping = [#gpu.thread<x>]}
    scf.forall (%t) in (32) {
      memref.store %one, %b[%t] : memref<32xf32, #gpu.address_space<workgroup>>
    } {mapping = [#gpu.thread<x>]}
    scf.forall (%t) in (32) {
      %u = arith.subi %c31, %t : index
      %v = memref.load %a[%u] : memref<32xf32, #gpu.address_space<workgroup>>
      %i = arith.index_cast %t : index to i64
      %p = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      llvm.store %v, %p {alignment = 4 : i64} : f32, !llvm.ptr
    } {mapping = [#gpu.thread<x>]}
  } {mapping = [#gpu.block<x>]}
  return
}

// A uniform store is made by thread 0 between barriers, since other threads
// read before and after; the loop around it needs none of its own.
// CHECK-LABEL: gpu.func @uniform
// CHECK: %[[T:.*]] = gpu.thread_id x
// CHECK-NOT: gpu.barrier
// CHECK: scf.for
// CHECK: llvm.load
// CHECK: gpu.barrier
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[T]], %{{.*}} : index
// CHECK-NEXT: scf.if %[[FIRST]] {
// CHECK-NEXT: llvm.store {{.*}}
// CHECK-NEXT: {{^ *}}}
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: {{^ *}}}
// CHECK-NOT: gpu.barrier
// CHECK: gpu.return
func.func @uniform(%y: !llvm.ptr {llvm.align = 64 : i64}, %scratch: !llvm.ptr)
    attributes {ckopt.gpu.grid = 1 : i64, ckopt.gpu.block = 64 : i64} {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  scf.forall (%block) in (1) {
    scf.for %i = %c0 to %c5 step %c1 {
      %v = llvm.load %y {alignment = 4 : i64} : !llvm.ptr -> f32
      %w = arith.addf %v, %one : f32
      llvm.store %w, %y {alignment = 4 : i64} : f32, !llvm.ptr
    }
  } {mapping = [#gpu.block<x>]}
  return
}

// Each iteration writes what the next one reads, from an interval of fewer
// threads than the block: one barrier an interval in the loop.
// CHECK-LABEL: gpu.func @loop
// CHECK: memref.store
// CHECK-NOT: gpu.barrier
// CHECK: scf.for
// CHECK-NEXT: gpu.barrier
// CHECK: memref.load %[[A:.*]][
// CHECK: memref.store %{{.*}}, %[[B:.*]][
// CHECK: gpu.barrier
// CHECK: arith.cmpi ult
// CHECK: scf.if
// CHECK: memref.load %[[B]]
// CHECK: memref.store %{{.*}}, %[[A]]
// CHECK-NOT: gpu.barrier
// CHECK: gpu.return
func.func @loop(%scratch: !llvm.ptr,
                %a: memref<64xf32, #gpu.address_space<workgroup>>, %b: memref<64xf32, #gpu.address_space<workgroup>>)
    attributes {ckopt.gpu.grid = 1 : i64, ckopt.gpu.block = 64 : i64} {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c31 = arith.constant 31 : index
  %c63 = arith.constant 63 : index
  scf.forall (%block) in (1) {
    scf.forall (%t) in (64) {
      memref.store %one, %a[%t] : memref<64xf32, #gpu.address_space<workgroup>>
    } {mapping = [#gpu.thread<x>]}
    scf.for %i = %c0 to %c5 step %c1 {
      scf.forall (%t) in (64) {
        %u = arith.subi %c63, %t : index
        %v = memref.load %a[%u] : memref<64xf32, #gpu.address_space<workgroup>>
        memref.store %v, %b[%t] : memref<64xf32, #gpu.address_space<workgroup>>
      } {mapping = [#gpu.thread<x>]}
      scf.forall (%t) in (32) {
        %u = arith.subi %c31, %t : index
        %v = memref.load %b[%u] : memref<64xf32, #gpu.address_space<workgroup>>
        memref.store %v, %a[%t] : memref<64xf32, #gpu.address_space<workgroup>>
      } {mapping = [#gpu.thread<x>]}
    }
  } {mapping = [#gpu.block<x>]}
  return
}
