// What the planner is given: storages, costs, workspaces, updates, blocks, order.
// REQUIRES: compiler
// RUN: ckopt-opt %s --print-planning-problem -o /dev/null 2>&1 | FileCheck %s

func.func private @f(%x: tensor<16xf32>) -> tensor<16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.exp %x : (tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
func.func private @u(%p: tensor<16xf32>, %g: tensor<16xf32>) -> tensor<16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.accumulate %p, %g : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// A view has its base's storage, and is no node; cost, workspace and the pair for reuse in
// place are those of the call. Arguments are there all the time.
// CHECK-LABEL: problem @storages: 1 nodes, 2 values, 64 bytes of arguments
// CHECK-NEXT: v0: persistent, 64 bytes
// CHECK-NEXT: v1: output, 64 bytes
// CHECK-NEXT: n0: ckopt.kernel_call, cost 3, reads v0, makes v1, v1 may take v0, workspace 100{{$}}
func.func @storages(%x: tensor<16xf32>) -> tensor<4x4xf32> {
  %0 = ckopt.kernel_call @f(%x) {cost = 3.0, workspace = 100 : i64, reuse = array<i64: 0, 0>} : (tensor<16xf32>) -> tensor<16xf32>
  %1 = ckopt.reshape %0 : (tensor<16xf32>) -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}

// An update overwrites its argument, makes no storage, and runs once, after the last reader
// of the old value.
// CHECK-LABEL: problem @updates: 2 nodes, 3 values
// CHECK: n0: ckopt.kernel_call, cost 1, reads v0, makes v2{{$}}
// CHECK-NEXT: n1: ckopt.kernel_call, cost 2, {{.*}}overwrites v0{{.*}}, runs once: a state that it updates
func.func @updates(%p: tensor<16xf32>, %g: tensor<16xf32>) -> (tensor<16xf32> {ckopt.updates = 0 : i64}, tensor<16xf32>) {
  %n = ckopt.kernel_call @u(%p, %g) {cost = 2.0, updates = array<i64: 0, 0>} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %r = ckopt.kernel_call @f(%p) {cost = 1.0} : (tensor<16xf32>) -> tensor<16xf32>
  return %n, %r : tensor<16xf32>, tensor<16xf32>
}

// A result that replaces an argument which its maker does not read (a sum set back to zero)
// is written to the argument's bytes, too.
// CHECK-LABEL: problem @reset: 2 nodes
// CHECK: n1: ckopt.kernel_call, cost 1, {{.*}}overwrites v0
func.func @reset(%p: tensor<16xf32>, %x: tensor<16xf32>) -> (tensor<16xf32> {ckopt.updates = 0 : i64}, tensor<16xf32>) {
  %n = ckopt.kernel_call @f(%x) {cost = 1.0} : (tensor<16xf32>) -> tensor<16xf32>
  %r = ckopt.kernel_call @f(%p) {cost = 1.0} : (tensor<16xf32>) -> tensor<16xf32>
  return %n, %r : tensor<16xf32>, tensor<16xf32>
}

// On other dialects: names say which repeated block an op is of, effects keep ops in order
// and run them once, and memory that is allocated is not counted.
// CHECK-LABEL: problem @foreign: 3 nodes
// CHECK: n0: math.exp, cost {{[0-9.e-]+}}, reads v0, makes v1, v1 may take v0, block "/layers.3"{{$}}
// CHECK-NEXT: n1: memref.alloc, {{.*}}, runs once: side effects
// CHECK-NEXT: n2: memref.store, {{.*}}, reads v2, after n1, runs once: side effects
// CHECK-NEXT: not counted: the bytes of what is allocated here
func.func @foreign(%x: tensor<16xf32>) -> tensor<16xf32> {
  %i = arith.constant 0 : index
  %c = arith.constant 1.0 : f32
  %0 = math.exp %x : tensor<16xf32> loc("/layers.3/Exp")
  %m = memref.alloc() : memref<16xf32>
  memref.store %c, %m[%i] : memref<16xf32>
  return %0 : tensor<16xf32>
}
