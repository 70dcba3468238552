// Ops that may have side effects keep their order and run once, whatever dialect they are of; the
// pure ops between them are still planned.
// RUN: ckopt-opt %s --remat="budget=min allow-uncounted" --allow-unregistered-dialect --split-input-file | FileCheck %s

func.func private @log(tensor<1024xf32>)

// Calls of functions and unregistered ops, in order, once; the pure op is made again.
// CHECK-LABEL: func.func @calls
// CHECK-COUNT-1: call @log
// CHECK: "other.rng"
// CHECK: call @log
// CHECK: "other.send"
// CHECK-NOT: call @log
// CHECK-NOT: other.
// CHECK: return
func.func @calls(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = math.exp %x : tensor<1024xf32>
  func.call @log(%0) : (tensor<1024xf32>) -> ()
  %1 = "other.rng"(%0) : (tensor<1024xf32>) -> tensor<1024xf32>
  %2 = math.exp %1 : tensor<1024xf32>
  func.call @log(%2) : (tensor<1024xf32>) -> ()
  %3 = arith.mulf %2, %1 : tensor<1024xf32>
  "other.send"(%3) : (tensor<1024xf32>) -> ()
  %4 = arith.mulf %3, %0 : tensor<1024xf32>
  return %4 : tensor<1024xf32>
}

// -----

// A check stays before what it guards; reads of memory stay between its writes.
// CHECK-LABEL: func.func @memory
// CHECK: cf.assert
// CHECK: memref.load
// CHECK: memref.store
// CHECK: memref.load
// CHECK: arith.divsi
// CHECK-NOT: memref
// CHECK: return
func.func @memory(%x: tensor<64xi32>, %m: memref<4xi32>, %ok: i1) -> tensor<64xi32> {
  %c0 = arith.constant 0 : index
  cf.assert %ok, "not ok"
  %a = memref.load %m[%c0] : memref<4xi32>
  memref.store %a, %m[%c0] : memref<4xi32>
  %b = memref.load %m[%c0] : memref<4xi32>
  %s = tensor.splat %b : tensor<64xi32>
  %d = arith.divsi %x, %s : tensor<64xi32>
  %e = arith.muli %d, %x : tensor<64xi32>
  return %e : tensor<64xi32>
}
