// Shows what is refused, naming the operation: forms that are no block form,
// and operations that have no code on a GPU.
// RUN: ckopt-opt %s --block-to-gpu --split-input-file --verify-diagnostics

// A function of libm.
func.func @sine(%x: !llvm.ptr, %scratch: !llvm.ptr)
    attributes {ckopt.gpu.grid = 1 : i64, ckopt.gpu.block = 32 : i64} {
  scf.forall (%b) in (1) {
    scf.forall (%t) in (32) {
      %v = llvm.load %x {alignment = 4 : i64} : !llvm.ptr -> f32
      // expected-error @below {{kernel @sine: 'math.sin' has no code on a GPU}}
      %s = math.sin %v : f32
      // expected-error @below {{kernel @sine: 'arith.remf' has no code on a GPU}}
      %r = arith.remf %s, %v : f32
      llvm.store %r, %x {alignment = 4 : i64} : f32, !llvm.ptr
    } {mapping = [#gpu.thread<x>]}
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

// The same in f64: where else to run it is said.
func.func @wide(%x: !llvm.ptr, %scratch: !llvm.ptr)
    attributes {ckopt.gpu.grid = 1 : i64, ckopt.gpu.block = 32 : i64} {
  scf.forall (%b) in (1) {
    scf.forall (%t) in (32) {
      %v = llvm.load %x {alignment = 8 : i64} : !llvm.ptr -> f64
      // expected-error @below {{'math.exp' has no code on a GPU in f64; compute it in f32, or run this model on the CPU}}
      %s = math.exp %v : f64
      llvm.store %s, %x {alignment = 8 : i64} : f64, !llvm.ptr
    } {mapping = [#gpu.thread<x>]}
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

// As many threads as an operand says.
func.func @dynamic(%x: !llvm.ptr, %n: i64, %scratch: !llvm.ptr)
    attributes {ckopt.gpu.grid = 1 : i64, ckopt.gpu.block = 32 : i64} {
  %count = arith.index_cast %n : i64 to index
  scf.forall (%b) in (1) {
    // expected-error @below {{the number of threads must be one constant, counted from 0 by 1}}
    scf.forall (%t) in (%count) {
    } {mapping = [#gpu.thread<x>]}
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

// More threads than the block has, and more blocks than the grid.
func.func @many(%scratch: !llvm.ptr)
    attributes {ckopt.gpu.grid = 1 : i64, ckopt.gpu.block = 32 : i64} {
  // expected-error @below {{2 blocks, but 'ckopt.gpu.grid' is 1}}
  scf.forall (%b) in (2) {
    // expected-error @below {{64 threads, but 'ckopt.gpu.block' is 32}}
    scf.forall (%t) in (64) {
    } {mapping = [#gpu.thread<x>]}
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

// A forall over threads within one.
func.func @nested(%scratch: !llvm.ptr)
    attributes {ckopt.gpu.grid = 1 : i64, ckopt.gpu.block = 32 : i64} {
  scf.forall (%b) in (1) {
    scf.forall (%t) in (32) {
      // expected-error @below {{foralls over threads must not be nested}}
      scf.forall (%u) in (32) {
      } {mapping = [#gpu.thread<x>]}
    } {mapping = [#gpu.thread<x>]}
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

// A value that passes from one interval to the next.
func.func @passes(%scratch: !llvm.ptr)
    attributes {ckopt.gpu.grid = 1 : i64, ckopt.gpu.block = 32 : i64} {
  %init = arith.constant dense<0.0> : tensor<32xf32>
  scf.forall (%b) in (1) {
    // expected-error @below {{has no results: values pass from one interval to the next through shared, private or global memory}}
    %r = scf.forall (%t) in (32) shared_outs(%o = %init) -> tensor<32xf32> {
      scf.forall.in_parallel {
        tensor.parallel_insert_slice %init into %o[%t] [32] [1] : tensor<32xf32> into tensor<32xf32>
      }
    } {mapping = [#gpu.thread<x>]}
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

// Another thread's row of a private buffer; a shared buffer that leaves.
func.func @buffers(%scratch: !llvm.ptr,
                   %sh: memref<32xf32, #gpu.address_space<workgroup>>,
                   %own: memref<32x2xf32, #gpu.address_space<private>>)
    attributes {ckopt.gpu.grid = 1 : i64, ckopt.gpu.block = 32 : i64} {
  %c0 = arith.constant 0 : index
  scf.forall (%b) in (1) {
    scf.forall (%t) in (32) {
      // expected-error @below {{a private buffer's first index must be the thread's number}}
      %v = memref.load %own[%c0, %c0] : memref<32x2xf32, #gpu.address_space<private>>
      // expected-error @below {{buffers are only accessed by memref.load, memref.store, vector.load and vector.store}}
      %s = memref.cast %sh : memref<32xf32, #gpu.address_space<workgroup>> to memref<?xf32, #gpu.address_space<workgroup>>
    } {mapping = [#gpu.thread<x>]}
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

// Wrong attributes, sizes and parameters are told together.
// expected-error @below {{'ckopt.gpu.grid' must be an i64 from 1 to 2147483647}}
// expected-error @below {{'ckopt.gpu.block' must be an i64 from 1 to 1024}}
// expected-error @below {{launch parameters must be pointers, then i64 scalars, then the scratch pointer}}
// expected-error @below {{shared buffers take more than the 232448 bytes that a block may have}}
func.func @sizes(%s: i64, %x: !llvm.ptr, %f: f32,
                 %sh: memref<9223372036854775807xf32, #gpu.address_space<workgroup>>)
    attributes {ckopt.gpu.grid = 4294967296 : i64, ckopt.gpu.block = 2048 : i64} {
  scf.forall (%b) in (1) {
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

// No blocks at all, and work beside them.
func.func @work(%x: !llvm.ptr)
    attributes {ckopt.gpu.grid = 1 : i64, ckopt.gpu.block = 32 : i64} {
  %c = arith.constant 1.0 : f32
  // expected-error @below {{beside one forall over blocks (mapping #gpu.block<x>), a launch has only operations without effects}}
  llvm.store %c, %x {alignment = 4 : i64} : f32, !llvm.ptr
  return
}

// -----

// A loop of uniform code whose barriers are not known to be met by all threads,
// nor what lies between them.
func.func @condition(%x: !llvm.ptr, %scratch: !llvm.ptr)
    attributes {ckopt.gpu.grid = 1 : i64, ckopt.gpu.block = 32 : i64} {
  %true = arith.constant true
  scf.forall (%b) in (1) {
    // expected-error @below {{'scf.while' must not be in a block; scf.for, scf.if and scf.index_switch may}}
    scf.while : () -> () {
      scf.condition(%true)
    } do {
      scf.forall (%t) in (32) {
      } {mapping = [#gpu.thread<x>]}
      scf.yield
    }
  } {mapping = [#gpu.block<x>]}
  return
}
