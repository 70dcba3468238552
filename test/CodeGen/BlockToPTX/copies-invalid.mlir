// Shows what copies under way may not be: of another size than an instruction has, from what is
// no pointer, in a loop, outside of threads.
// RUN: ckopt-opt %s --block-to-gpu -split-input-file -verify-diagnostics

func.func @bytes(%x: !llvm.ptr, %scratch: !llvm.ptr, %a: memref<384xf32, #gpu.address_space<workgroup>>)
    attributes {ckopt.gpu.grid = 1 : i64, ckopt.gpu.block = 32 : i64} {
  scf.forall (%block) in (1) {
    scf.forall (%t) in (32) {
      %yes = arith.constant true
      // expected-error @+1 {{copies 12 bytes; 4, 8 or 16 may be}}
      block.copy_async %a[%t], %x : !llvm.ptr if %yes, 3 : memref<384xf32, #gpu.address_space<workgroup>>
    } {mapping = [#gpu.thread<x>]}
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

func.func @pointer(%x: !llvm.ptr, %scratch: !llvm.ptr, %a: memref<384xf32, #gpu.address_space<workgroup>>)
    attributes {ckopt.gpu.grid = 1 : i64, ckopt.gpu.block = 32 : i64} {
  scf.forall (%block) in (1) {
    scf.forall (%t) in (32) {
      %yes = arith.constant true
      // expected-error @+1 {{copies from a pointer}}
      block.copy_async %a[%t], %t : index if %yes, 4 : memref<384xf32, #gpu.address_space<workgroup>>
    } {mapping = [#gpu.thread<x>]}
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

func.func @looped(%x: !llvm.ptr, %scratch: !llvm.ptr, %a: memref<384xf32, #gpu.address_space<workgroup>>)
    attributes {ckopt.gpu.grid = 1 : i64, ckopt.gpu.block = 32 : i64} {
  scf.forall (%block) in (1) {
    scf.forall (%t) in (32) {
      %yes = arith.constant true
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      scf.for %i = %c0 to %c4 step %c1 {
        // expected-error @+1 {{must not be in a loop: it runs once a group}}
        block.copy_async %a[%t], %x : !llvm.ptr if %yes, 4 : memref<384xf32, #gpu.address_space<workgroup>>
      }
    } {mapping = [#gpu.thread<x>]}
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

func.func @outside(%x: !llvm.ptr, %scratch: !llvm.ptr, %a: memref<384xf32, #gpu.address_space<workgroup>>)
    attributes {ckopt.gpu.grid = 1 : i64, ckopt.gpu.block = 32 : i64} {
  scf.forall (%block) in (1) {
    %yes = arith.constant true
    %c0 = arith.constant 0 : index
    // expected-error @+1 {{must be in a forall over threads}}
    block.copy_async %a[%c0], %x : !llvm.ptr if %yes, 4 : memref<384xf32, #gpu.address_space<workgroup>>
  } {mapping = [#gpu.block<x>]}
  return
}
