// What is not counted is said; beside a budget it is an error, unless that is allowed.
// RUN: ckopt-opt %s --remat --split-input-file --allow-unregistered-dialect --verify-diagnostics -o /dev/null
// RUN: not ckopt-opt %s --remat=budget=1MiB --split-input-file --allow-unregistered-dialect -o /dev/null 2>&1 | FileCheck %s --check-prefix=BUDGET
// RUN: ckopt-opt %s --remat="budget=1MiB allow-uncounted functions=blob,buffers,caller,again" --split-input-file --allow-unregistered-dialect -o %t.mlir 2>&1 | FileCheck %s --check-prefix=ALLOW
// RUN: FileCheck %s --check-prefix=PLAN < %t.mlir
// RUN: ckopt-opt %s --remat="budget=1MiB skip-unsupported functions=blob,buffers" --split-input-file --allow-unregistered-dialect 2>&1 | FileCheck %s --check-prefix=SKIP

// BUDGET: error: @blob cannot be held to a budget: its plan would not count the bytes of values of type '!other.tensor<4>'; say how much it is, or plan the rest with allow-uncounted
// BUDGET: error: @blob cannot be held to a budget: its plan would not count what the unregistered op 'other.tanh' needs
// ALLOW: remark: the plan of @blob does not count the bytes of values of type '!other.tensor<4>' (3 times in all)
// ALLOW: remark: @blob: 0 of 2 ops may be recomputed, because all run once: 2 with unknown effects (unregistered)
// PLAN-LABEL: func.func @blob
// PLAN-SAME: uncounted = 2 : i64
// SKIP: remark: @blob is left as it is: its plan would not count the bytes of values of type '!other.tensor<4>'
// expected-remark @+2 {{the plan of @blob does not count the bytes of values of type '!other.tensor<4>' (3 times in all)}}
// expected-remark @+1 {{@blob: 0 of 2 ops may be recomputed, because all run once: 2 with unknown effects (unregistered)}}
func.func @blob(%x: !other.tensor<4>) -> !other.tensor<4> {
  // expected-remark @+1 {{does not count what the unregistered op 'other.tanh' needs beside its operands and results (2 times in all)}}
  %0 = "other.tanh"(%x) : (!other.tensor<4>) -> !other.tensor<4>
  %1 = "other.tanh"(%0) : (!other.tensor<4>) -> !other.tensor<4>
  return %1 : !other.tensor<4>
}

// -----

// A function that is bufferized already: its arguments count, its allocations do not.
// BUDGET: error: @buffers cannot be held to a budget: its plan would not count the bytes of what is allocated here
// PLAN-LABEL: func.func @buffers
// PLAN-SAME: argument_bytes = 512 : i64
// expected-remark @+1 {{@buffers: 0 of 6 ops may be recomputed, because all run once: 6 with side effects}}
func.func @buffers(%x: memref<64xf32>, %y: memref<64xf32>) {
  // expected-remark @+1 {{the plan of @buffers does not count the bytes of what is allocated here (2 times in all)}}
  %a = memref.alloc() : memref<64xf32>
  linalg.exp ins(%x : memref<64xf32>) outs(%a : memref<64xf32>)
  %b = memref.alloc() : memref<64xf32>
  linalg.exp ins(%a : memref<64xf32>) outs(%b : memref<64xf32>)
  linalg.add ins(%a, %b : memref<64xf32>, memref<64xf32>) outs(%y : memref<64xf32>)
  memref.dealloc %a : memref<64xf32>
  return
}

// -----

// Inside of bodies and callees, too: an allocation, a shape without a bound.
// BUDGET: error: @inside cannot be held to a budget: its plan would not count the bytes of what is allocated here
// BUDGET: error: @inside cannot be held to a budget: its plan would not count the bytes of values of type 'tensor<?xf32>'
func.func @inside(%x: tensor<64xf32>, %n: index, %c: i1) -> tensor<64xf32> {
  %c0 = arith.constant 0 : index
  %r = scf.if %c -> tensor<64xf32> {
    // expected-remark @+1 {{the plan of @inside does not count the bytes of what is allocated here}}
    %m = memref.alloc() : memref<4xf32>
    %z = memref.load %m[%c0] : memref<4xf32>
    %e = tensor.empty(%n) : tensor<?xf32>
    // expected-remark @+1 {{the plan of @inside does not count the bytes of values of type 'tensor<?xf32>'}}
    %f = linalg.fill ins(%z : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
    %s = tensor.extract_slice %f[0] [64] [1] : tensor<?xf32> to tensor<64xf32>
    scf.yield %s : tensor<64xf32>
  } else {
    scf.yield %x : tensor<64xf32>
  }
  %0 = math.exp %r : tensor<64xf32>
  return %0 : tensor<64xf32>
}

// -----

// What is external is said; it is another's memory.
// BUDGET-NOT: @caller cannot
// ALLOW: remark: the plan of @caller does not count what @library needs, which is external
func.func private @library(tensor<64xf32>) -> tensor<64xf32>
func.func @caller(%x: tensor<64xf32>) -> tensor<64xf32> {
  // expected-remark @+1 {{the plan of @caller does not count what @library needs, which is external}}
  %0 = call @library(%x) : (tensor<64xf32>) -> tensor<64xf32>
  %1 = math.exp %0 : tensor<64xf32>
  return %1 : tensor<64xf32>
}

// -----

// Recursion has no known depth.
// BUDGET: error: @again cannot be held to a budget: its plan would not count what further calls of @again need, which calls itself (recursion)
// expected-remark @+1 {{@again: 0 of 1 ops may be recomputed, because all run once: 1 with unknown effects (a call)}}
func.func @again(%x: tensor<64xf32>) -> tensor<64xf32> {
  // expected-remark @+1 {{the plan of @again does not count what further calls of @again need, which calls itself (recursion)}}
  %0 = call @again(%x) : (tensor<64xf32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// -----

// Of iterations that run at the same time one counts.
func.func @parallel(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  // expected-remark @+1 {{does not count what iterations of 'scf.forall' need that run at the same time as another; it counts one}}
  %r = scf.forall (%i) in (64) shared_outs(%o = %x) -> (tensor<64x64xf32>) {
    %s = tensor.extract_slice %x[%i, 0] [1, 64] [1, 1] : tensor<64x64xf32> to tensor<64xf32>
    %t = math.exp %s : tensor<64xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %t into %o[%i, 0] [1, 64] [1, 1] : tensor<64xf32> into tensor<64x64xf32>
    }
  }
  return %r : tensor<64x64xf32>
}

// -----

// A workspace that is no number of bytes.
func.func @wrong(%x: tensor<64xf32>) -> tensor<64xf32> {
  // expected-error @+1 {{ckopt.workspace must be a number of bytes, not negative, up to 2^56}}
  %0 = math.exp %x {ckopt.workspace = -1 : i64} : tensor<64xf32>
  return %0 : tensor<64xf32>
}
