// Shows narrow and wide element types, masks and integers: everything that has
// code gets it without helper functions, and f64 only where it was written.
// RUN: ckopt-opt %s --print-ptx=sm=80 -o /dev/null | FileCheck %s
// RUN: ckopt-opt %s --print-ptx=sm=90 -o /dev/null | FileCheck %s
// RUN: ckopt-opt %s --print-ptx=report -o /dev/null | FileCheck %s --check-prefix=REPORT
// RUN: ckopt-opt %s --print-ptx=assemble -o /dev/null | FileCheck %s --check-prefix=ASSEMBLED
// ASSEMBLED: {{NOT assembled|0 bytes spilled}}

// CHECK-LABEL: .visible .entry half(
// CHECK-DAG: cvt{{(.ftz)?}}.f32.f16
// CHECK-DAG: cvt.rn.f16{{(x2)?}}.f32
// CHECK-DAG: cvt.rn.bf16{{(x2)?}}.f32
// CHECK-NOT: f64
// REPORT: half(ppp): grid 1, block 32, shared 0, wide
func.func @half(%x: !llvm.ptr {llvm.align = 64 : i64}, %y: !llvm.ptr {llvm.align = 64 : i64}, %scratch: !llvm.ptr)
    attributes {ckopt.gpu.grid = 1 : i64, ckopt.gpu.block = 32 : i64} {
  scf.forall (%b) in (1) {
    scf.forall (%t) in (32) {
      %i = arith.index_cast %t : index to i64
      %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f16
      %h = llvm.load %p {alignment = 2 : i64} : !llvm.ptr -> f16
      %f = arith.extf %h : f16 to f32
      %s = math.sqrt %f : f32
      %d = arith.divf %f, %s : f32
      %m = arith.maximumf %d, %f : f32
      %g = arith.truncf %m : f32 to f16
      llvm.store %g, %p {alignment = 2 : i64} : f16, !llvm.ptr
      %q = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, bf16
      %k = llvm.load %q {alignment = 2 : i64} : !llvm.ptr -> bf16
      %e = arith.extf %k : bf16 to f32
      %r = math.roundeven %e : f32
      %c = math.floor %r : f32
      %a = math.absf %c : f32
      %z = arith.mulf %a, %e : f32
      %n = arith.truncf %z : f32 to bf16
      llvm.store %n, %q {alignment = 2 : i64} : bf16, !llvm.ptr
    } {mapping = [#gpu.thread<x>]}
  } {mapping = [#gpu.block<x>]}
  return
}

// CHECK-LABEL: .visible .entry double(
// CHECK: fma.rn.f64
// CHECK: div.rn.f64
// REPORT: double(pp): grid 1, block 32, shared 0, f64, wide
func.func @double(%x: !llvm.ptr {llvm.align = 64 : i64}, %scratch: !llvm.ptr)
    attributes {ckopt.gpu.grid = 1 : i64, ckopt.gpu.block = 32 : i64} {
  scf.forall (%b) in (1) {
    scf.forall (%t) in (32) {
      %i = arith.index_cast %t : index to i64
      %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
      %v = llvm.load %p {alignment = 8 : i64} : !llvm.ptr -> f64
      %f = math.fma %v, %v, %v : f64
      %d = arith.divf %f, %v : f64
      llvm.store %d, %p {alignment = 8 : i64} : f64, !llvm.ptr
    } {mapping = [#gpu.thread<x>]}
  } {mapping = [#gpu.block<x>]}
  return
}

// f64 that folds away is not counted.
// CHECK-LABEL: .visible .entry rate(
// CHECK-NOT: f64
// REPORT: rate(pp): grid 1, block 32, shared 0, wide
func.func @rate(%x: !llvm.ptr {llvm.align = 64 : i64}, %scratch: !llvm.ptr)
    attributes {ckopt.gpu.grid = 1 : i64, ckopt.gpu.block = 32 : i64} {
  scf.forall (%b) in (1) {
    %v = llvm.load %x {alignment = 4 : i64} : !llvm.ptr -> f32
    %w = arith.extf %v : f32 to f64
    %r = arith.truncf %w : f64 to f32
    %s = arith.addf %r, %r : f32
    llvm.store %s, %scratch {alignment = 4 : i64} : f32, !llvm.ptr
  } {mapping = [#gpu.block<x>]}
  return
}

// Lanes under a mask, gathered and scattered, and integers of all widths.
// CHECK-LABEL: .visible .entry masked(
// CHECK-NOT: call
// CHECK: ret;
func.func @masked(%x: !llvm.ptr {llvm.align = 64 : i64}, %n: i64, %scratch: !llvm.ptr)
    attributes {ckopt.gpu.grid = 1 : i64, ckopt.gpu.block = 32 : i64} {
  %lanes = arith.constant dense<[0, 1, 2, 3]> : vector<4xi64>
  %zero = arith.constant dense<0.0> : vector<4xf32>
  %c4 = arith.constant 4 : i64
  scf.forall (%b) in (1) {
    scf.forall (%t) in (32) {
      %i = arith.index_cast %t : index to i64
      %j = arith.muli %i, %c4 : i64
      %left = arith.subi %n, %j : i64
      %limit = vector.broadcast %left : i64 to vector<4xi64>
      %mask = arith.cmpi slt, %lanes, %limit : vector<4xi64>
      %p = llvm.getelementptr %x[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %v = llvm.intr.masked.load %p, %mask, %zero {alignment = 4 : i32} : (!llvm.ptr, vector<4xi1>, vector<4xf32>) -> vector<4xf32>
      %w = arith.addf %v, %v : vector<4xf32>
      llvm.intr.masked.store %w, %p, %mask {alignment = 4 : i32} : vector<4xf32>, vector<4xi1> into !llvm.ptr
      %ps = llvm.getelementptr %x[%lanes] : (!llvm.ptr, vector<4xi64>) -> vector<4x!llvm.ptr>, i32
      %all = arith.constant dense<0> : vector<4xi32>
      %g = llvm.intr.masked.gather %ps, %mask, %all {alignment = 4 : i32} : (vector<4x!llvm.ptr>, vector<4xi1>, vector<4xi32>) -> vector<4xi32>
      %lo, %hi = arith.mului_extended %g, %g : vector<4xi32>
      %z = math.ctlz %hi : vector<4xi32>
      %e = vector.extract %z[1] : i32 from vector<4xi32>
      %byte = arith.trunci %e : i32 to i8
      llvm.store %byte, %scratch {alignment = 1 : i64} : i8, !llvm.ptr
      llvm.intr.masked.scatter %lo, %ps, %mask {alignment = 4 : i32} : vector<4xi32>, vector<4xi1> into vector<4x!llvm.ptr>
    } {mapping = [#gpu.thread<x>]}
  } {mapping = [#gpu.block<x>]}
  return
}
