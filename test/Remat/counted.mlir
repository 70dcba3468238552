// What bodies and callees need counts while their op runs.
// RUN: ckopt-opt %s --remat --split-input-file | FileCheck %s
// RUN: ckopt-opt %s --remat=budget=min --split-input-file | FileCheck %s --check-prefix=LEAST
// RUN: ckopt-opt %s --remat="report=-" --split-input-file -o /dev/null | FileCheck %s --check-prefix=REPORT

// The body holds 64 MiB; the loop carries 4 KiB, which the argument and the result show. When it
// runs, what it carries is a part of the 64 MiB of the iteration before.
// CHECK-LABEL: func.func @loop
// CHECK-SAME: full_arena = 134{{[0-9]+}} : i64
// CHECK-SAME: load = 67{{[0-9]+}} : i64
// REPORT: "name": "loop"
// REPORT: "not_counted": []
func.func @loop(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%o = %x) -> tensor<1024xf32> {
    %e = tensor.empty() : tensor<16384x1024xf32>
    %b = linalg.broadcast ins(%o : tensor<1024xf32>) outs(%e : tensor<16384x1024xf32>) dimensions = [0]
    %q = math.exp %b : tensor<16384x1024xf32>
    %s = tensor.extract_slice %q[%i, 0] [1, 1024] [1, 1] : tensor<16384x1024xf32> to tensor<1024xf32>
    scf.yield %s : tensor<1024xf32>
  }
  return %r : tensor<1024xf32>
}

// -----

// What a body writes into the value that it carries needs no bytes of its own: 4 KiB of argument,
// 4 KiB of result.
// CHECK-LABEL: func.func @carried
// CHECK-SAME: full_arena = 8192 : i64
func.func @carried(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%o = %x) -> tensor<1024xf32> {
    %q = math.exp %o : tensor<1024xf32>
    scf.yield %q : tensor<1024xf32>
  }
  return %r : tensor<1024xf32>
}

// -----

// Of two branches the larger counts: 16 KiB beside what it yields. Argument and result take 4 KiB each.
// CHECK-LABEL: func.func @branches
// CHECK-SAME: full_arena = 24576 : i64
func.func @branches(%x: tensor<1024xf32>, %c: i1) -> tensor<1024xf32> {
  %r = scf.if %c -> tensor<1024xf32> {
    %a = math.exp %x : tensor<1024xf32>
    %b = math.sin %a : tensor<1024xf32>
    %d = tensor.concat dim(0) %a, %b : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<2048xf32>
    %e = tensor.extract_slice %d[512] [1024] [1] : tensor<2048xf32> to tensor<1024xf32>
    %y = arith.addf %e, %x : tensor<1024xf32>
    scf.yield %y : tensor<1024xf32>
  } else {
    %y = math.exp %x : tensor<1024xf32>
    scf.yield %y : tensor<1024xf32>
  }
  return %r : tensor<1024xf32>
}

// -----

// Tiles of dynamic shape count by their upper bounds: at most 100 elements a tile.
// CHECK-LABEL: func.func @tiles
// CHECK-SAME: full_arena = 16960 : i64
func.func @tiles(%x: tensor<2050xf32>) -> tensor<2050xf32> {
  %c0 = arith.constant 0 : index
  %c100 = arith.constant 100 : index
  %n = arith.constant 2050 : index
  %e = tensor.empty() : tensor<2050xf32>
  %r = scf.for %i = %c0 to %n step %c100 iter_args(%o = %e) -> tensor<2050xf32> {
    %s = affine.min affine_map<(d0) -> (100, 2050 - d0)>(%i)
    %t = tensor.extract_slice %x[%i] [%s] [1] : tensor<2050xf32> to tensor<?xf32>
    %q = math.exp %t : tensor<?xf32>
    %w = tensor.insert_slice %q into %o[%i] [%s] [1] : tensor<?xf32> into tensor<2050xf32>
    scf.yield %w : tensor<2050xf32>
  }
  return %r : tensor<2050xf32>
}

// -----

// Calls three levels deep: what the innermost needs, 40,000 bytes, counts in all.
// CHECK-LABEL: func.func @top
// CHECK-SAME: full_arena = 48{{[0-9][0-9][0-9]}} : i64
// CHECK-LABEL: func.func private @middle
// CHECK-LABEL: func.func private @bottom
// With less, the callees are made small first.
// LEAST-LABEL: func.func @top
// LEAST-SAME: arena = 48
func.func @top(%x: tensor<1000xf32>) -> tensor<1000xf32> {
  %0 = call @middle(%x) : (tensor<1000xf32>) -> tensor<1000xf32>
  return %0 : tensor<1000xf32>
}
func.func private @middle(%x: tensor<1000xf32>) -> tensor<1000xf32> {
  %0 = call @bottom(%x) : (tensor<1000xf32>) -> tensor<1000xf32>
  return %0 : tensor<1000xf32>
}
func.func private @bottom(%x: tensor<1000xf32>) -> tensor<1000xf32> {
  %e = tensor.empty() : tensor<10x1000xf32>
  %b = linalg.broadcast ins(%x : tensor<1000xf32>) outs(%e : tensor<10x1000xf32>) dimensions = [0]
  %s = tensor.extract_slice %b[3, 0] [1, 1000] [1, 1] : tensor<10x1000xf32> to tensor<1000xf32>
  %q = math.exp %s : tensor<1000xf32>
  return %q : tensor<1000xf32>
}

// -----

// Who knows what an op or a callee needs says so.
// CHECK-LABEL: func.func @stated
// CHECK-SAME: full_arena = 1032192 : i64
func.func @stated(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = call @library(%x) : (tensor<1024xf32>) -> tensor<1024xf32>
  %1 = math.exp %0 {ckopt.workspace = 1024000 : i64} : tensor<1024xf32>
  return %1 : tensor<1024xf32>
}
func.func private @library(tensor<1024xf32>) -> tensor<1024xf32> attributes {ckopt.workspace = 100 : i64}
