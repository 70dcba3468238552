// Clones that differ in an attribute alone survive CSE, and the plan with them.
// RUN: ckopt-opt %s --remat="budget=min apart=attribute" --cse -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: ckopt-opt %s --remat=budget=min --cse | FileCheck %s --check-prefix=BARRIER
// Once they are stripped, CSE undoes the plan.
// RUN: ckopt-opt %t.mlir --strip-barriers --cse | FileCheck %s --check-prefix=STRIPPED

// CHECK-LABEL: func.func @f
// CHECK-NOT: barrier
// CHECK-COUNT-1: math.exp{{.*}}ckopt.clone
// BARRIER: ckopt.barrier
// BARRIER: math.exp{{.*}}ckopt.clone
// STRIPPED-COUNT-3: math.exp
// STRIPPED-NOT: math.exp
func.func @f(%x: tensor<1024xf32>, %y: tensor<1024xf32>) -> tensor<1024xf32> {
  %1 = math.exp %x : tensor<1024xf32>
  %2 = arith.mulf %1, %y : tensor<1024xf32>
  %3 = math.exp %2 : tensor<1024xf32>
  %4 = math.exp %3 : tensor<1024xf32>
  %5 = arith.mulf %4, %3 : tensor<1024xf32>
  %6 = arith.mulf %5, %2 : tensor<1024xf32>
  %7 = arith.mulf %6, %1 : tensor<1024xf32>
  return %7 : tensor<1024xf32>
}
