// An op with regions is one op: what its regions capture counts as read, and a clone's regions read
// the copies.
// RUN: ckopt-opt %s --remat=budget=min --split-input-file | FileCheck %s
// RUN: ckopt-opt %s --remat=budget=min --canonicalize --cse --split-input-file | FileCheck %s

// The loop is pure: it runs again as a whole, on a copy of what it captures.
// CHECK-LABEL: func.func @loop
// CHECK: scf.for
// CHECK: scf.for
// CHECK: } {ckopt.clone = {{[0-9]+}} : i64
// CHECK: return
func.func @loop(%x: tensor<1024xf32>, %n: index) -> tensor<1024xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %0 = math.exp %x : tensor<1024xf32>
  %1 = scf.for %i = %c0 to %c2 step %c1 iter_args(%a = %x) -> (tensor<1024xf32>) {
    %t = arith.mulf %a, %0 : tensor<1024xf32>
    scf.yield %t : tensor<1024xf32>
  }
  %2 = math.exp %1 {ckopt.cost = 1.0 : f64} : tensor<1024xf32>
  %3 = math.exp %2 : tensor<1024xf32>
  %4 = math.exp %3 : tensor<1024xf32>
  %5 = arith.mulf %4, %3 : tensor<1024xf32>
  %6 = arith.mulf %5, %2 : tensor<1024xf32>
  %7 = arith.mulf %6, %1 : tensor<1024xf32>
  %8 = arith.mulf %7, %0 : tensor<1024xf32>
  return %8 : tensor<1024xf32>
}

// -----

// A branch with a store in it is not: it runs once, and what it captures is made before it.
// CHECK-LABEL: func.func @branch
// CHECK: %[[E:.*]] = math.exp
// CHECK: scf.if
// CHECK: tensor.extract %[[E]]
// CHECK-NOT: scf.if
// CHECK: return
func.func @branch(%x: tensor<1024xf32>, %m: memref<f32>, %c: i1) -> tensor<1024xf32> {
  %c0 = arith.constant 0 : index
  %0 = math.exp %x : tensor<1024xf32>
  %1 = scf.if %c -> (tensor<1024xf32>) {
    %e = tensor.extract %0[%c0] : tensor<1024xf32>
    memref.store %e, %m[] : memref<f32>
    scf.yield %0 : tensor<1024xf32>
  } else {
    scf.yield %x : tensor<1024xf32>
  }
  %2 = math.exp %1 : tensor<1024xf32>
  %3 = arith.mulf %2, %1 : tensor<1024xf32>
  %4 = arith.mulf %3, %0 : tensor<1024xf32>
  return %4 : tensor<1024xf32>
}
