// A kernel becomes one function a stage, of the kernel ABI: a full-vector loop,
// then the rest under a mask, with the same operations in both.
// RUN: ckopt-opt %s --lower-kernels --canonicalize --cse | FileCheck %s
// RUN: ckopt-opt %s --lower-kernels=to-llvm | FileCheck %s --check-prefix=LLVM

func.func private @k(%x: tensor<5x37xf32>, %s: tensor<f32>) -> tensor<5x37xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.mul %x, %s : (tensor<5x37xf32>, tensor<f32>) -> tensor<5x37xf32>
  %1 = ckopt.relu %0 : (tensor<5x37xf32>) -> tensor<5x37xf32>
  return %1 : tensor<5x37xf32>
}

// CHECK-LABEL: func.func @k.s0(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: !llvm.ptr)
// CHECK-SAME: prefer-vector-width
// The scalar operand is loaded before the loops.
// CHECK: %[[S:.*]] = llvm.load %{{.*}} : !llvm.ptr -> f32
// CHECK: scf.for
// CHECK: scf.for
// CHECK: llvm.load %{{.*}} -> vector<16xf32>
// CHECK: arith.mulf
// CHECK: arith.cmpf olt
// CHECK: arith.select
// CHECK: llvm.store %{{.*}} vector<16xf32>
// 185 = 11 * 16 + 9
// CHECK: llvm.intr.masked.load
// CHECK: arith.mulf
// CHECK: arith.cmpf olt
// CHECK: arith.select
// CHECK: llvm.intr.masked.store

// LLVM-NOT: ckopt.
// LLVM-LABEL: llvm.func @k.s0(%{{.*}}: !llvm.ptr
// LLVM-NOT: unrealized_conversion_cast
// LLVM: llvm.intr.masked.store
