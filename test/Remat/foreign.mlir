// remat on functions of other dialects: arith, tensor, linalg, tosa, math.
// RUN: ckopt-opt %s --remat=budget=min --split-input-file | FileCheck %s
// RUN: ckopt-opt %s --remat=budget=min --cse --canonicalize --cse --split-input-file | FileCheck %s
// RUN: ckopt-opt %s --remat=budget=min --strip-barriers --split-input-file | FileCheck %s --check-prefix=STRIP

// STRIP-NOT: ckopt.barrier

// A clone reads an operand through a barrier, so that neither CSE nor a pattern that rebuilds
// the op (here a sum of constants) takes it for its original.
// CHECK-LABEL: func.func @arith
// CHECK: %[[O:.*]] = arith.addf %arg0
// CHECK: %[[B:.*]] = ckopt.barrier {{.*}}clone = [[N:[0-9]+]]
// CHECK: arith.addf %[[B]]{{.*}}ckopt.clone = [[N]]
func.func @arith(%x: tensor<1024xf32>, %y: tensor<1024xf32>) -> tensor<1024xf32> {
  %c = arith.constant dense<1.5> : tensor<1024xf32>
  %0 = arith.addf %x, %c : tensor<1024xf32>
  %1 = math.exp %0 : tensor<1024xf32>
  %2 = arith.mulf %1, %y : tensor<1024xf32>
  %3 = math.exp %2 : tensor<1024xf32>
  %4 = math.exp %3 : tensor<1024xf32>
  %5 = arith.mulf %4, %3 : tensor<1024xf32>
  %6 = arith.mulf %5, %2 : tensor<1024xf32>
  %7 = arith.mulf %6, %1 : tensor<1024xf32>
  %8 = arith.mulf %7, %0 : tensor<1024xf32>
  return %8 : tensor<1024xf32>
}

// -----

// A structured op is one node, with its region; the destination takes no part in the plan.
// CHECK-LABEL: func.func @linalg
// CHECK: linalg.generic
// CHECK: linalg.matmul
// CHECK: ckopt.barrier
// CHECK: ckopt.clone
func.func @linalg(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %e = tensor.empty() : tensor<64x64xf32>
  %z = arith.constant dense<0.0> : tensor<64x64xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.tanh %a : f32
    linalg.yield %t : f32
  } -> tensor<64x64xf32>
  %1 = linalg.matmul ins(%0, %w : tensor<64x64xf32>, tensor<64x64xf32>) outs(%z : tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = linalg.matmul ins(%1, %w : tensor<64x64xf32>, tensor<64x64xf32>) outs(%z : tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = linalg.matmul ins(%1, %2 : tensor<64x64xf32>, tensor<64x64xf32>) outs(%z : tensor<64x64xf32>) -> tensor<64x64xf32>
  %4 = linalg.matmul ins(%3, %0 : tensor<64x64xf32>, tensor<64x64xf32>) outs(%z : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %4 : tensor<64x64xf32>
}

// -----

// CHECK-LABEL: func.func @tosa
// CHECK: tosa.tanh
// CHECK: ckopt.barrier
// CHECK: tosa.tanh {{.*}}ckopt.clone
func.func @tosa(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = tosa.tanh %x : (tensor<1024xf32>) -> tensor<1024xf32>
  %1 = tosa.exp %0 : (tensor<1024xf32>) -> tensor<1024xf32>
  %2 = tosa.exp %1 : (tensor<1024xf32>) -> tensor<1024xf32>
  %3 = tosa.add %2, %1 : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
  %4 = tosa.add %3, %0 : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
  return %4 : tensor<1024xf32>
}

// -----

// Ops with side effects keep their order and run once.
// CHECK-LABEL: func.func @effects
// CHECK: memref.store %{{.*}}, %arg1[%[[C0:.*]]]
// CHECK: memref.load
// CHECK: memref.store
// CHECK-NOT: memref.store
// CHECK: return
func.func @effects(%x: tensor<16xf32>, %m: memref<4xf32>) -> tensor<16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = math.exp %x : tensor<16xf32>
  %b = math.exp %a : tensor<16xf32>
  %e = tensor.extract %b[%c0] : tensor<16xf32>
  memref.store %e, %m[%c0] : memref<4xf32>
  %l = memref.load %m[%c0] : memref<4xf32>
  memref.store %l, %m[%c1] : memref<4xf32>
  %d = arith.mulf %b, %a : tensor<16xf32>
  return %d : tensor<16xf32>
}
