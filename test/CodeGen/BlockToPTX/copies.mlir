// Shows copies to shared memory that are on their way while threads compute: of 16 bytes past the
// multiprocessor's cache, unless others read the same soon, of fewer through it; zeros where nothing
// is inside; groups, and the wait for all but the newest. A CPU makes them at the wait.
// RUN: ckopt-opt %s | ckopt-opt | FileCheck %s --check-prefix=TEXT
// RUN: ckopt-opt %s --print-ptx=sm=80 -o /dev/null | FileCheck %s --check-prefix=PTX
// RUN: ckopt-opt %s --print-ptx=sm=90 -o /dev/null | FileCheck %s --check-prefix=PTX
// RUN: ckopt-opt %s --block-to-loops | FileCheck %s --check-prefix=LOOPS --implicit-check-not=copy_async

// TEXT: block.copy_async %{{.*}}[%{{.*}}], %{{.*}} : !llvm.ptr if %{{.*}}, 4 : memref
// TEXT: block.copy_async %{{.*}}, 4 cached : memref
// TEXT: block.copy_async %{{.*}}, 2 : memref
// TEXT: block.commit_copies
// TEXT: block.wait_copies 0
// PTX: cp.async.cg.shared.global [{{.*}}], [{{.*}}], 16;
// PTX: cp.async.ca.shared.global [{{.*}}], [{{.*}}], 16;
// PTX: cp.async.ca.shared.global [{{.*}}], [{{.*}}], 8, %r{{[0-9]+}};
// PTX: cp.async.commit_group;
// PTX: cp.async.wait_group 0;
// LOOPS-LABEL: func.func @copies
func.func @copies(%x: !llvm.ptr {llvm.align = 64 : i64}, %y: !llvm.ptr {llvm.align = 64 : i64},
                  %scratch: !llvm.ptr {llvm.align = 64 : i64}, %a: memref<384xf32, #gpu.address_space<workgroup>>)
    attributes {ckopt.gpu.grid = 1 : i64, ckopt.gpu.block = 32 : i64} {
  scf.forall (%block) in (1) {
    scf.forall (%t) in (32) {
      %c4 = arith.constant 4 : index
      %c128 = arith.constant 128 : index
      %c256 = arith.constant 256 : index
      %c3 = arith.constant 3 : index
      %yes = arith.constant true
      %some = arith.cmpi ult, %t, %c3 : index
      %at = arith.muli %t, %c4 : index
      %n = arith.index_cast %at : index to i64
      %from = llvm.getelementptr %x[%n] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %second = arith.addi %at, %c128 : index
      %third = arith.addi %at, %c256 : index
      block.copy_async %a[%at], %from : !llvm.ptr if %yes, 4 : memref<384xf32, #gpu.address_space<workgroup>>
      block.copy_async %a[%second], %from : !llvm.ptr if %yes, 4 cached : memref<384xf32, #gpu.address_space<workgroup>>
      block.copy_async %a[%third], %from : !llvm.ptr if %some, 2 : memref<384xf32, #gpu.address_space<workgroup>>
      block.commit_copies
    } {mapping = [#gpu.thread<x>]}
    scf.forall (%t) in (32) {
      block.wait_copies 0
    } {mapping = [#gpu.thread<x>]}
    scf.forall (%t) in (32) {
      %c8 = arith.constant 8 : index
      %at = arith.muli %t, %c8 : index
      %v = memref.load %a[%at] : memref<384xf32, #gpu.address_space<workgroup>>
      %n = arith.index_cast %t : index to i64
      %to = llvm.getelementptr %y[%n] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      llvm.store %v, %to {alignment = 4 : i64} : f32, !llvm.ptr
    } {mapping = [#gpu.thread<x>]}
  } {mapping = [#gpu.block<x>]}
  return
}
