// An optional function takes what the others leave: where no plan of it fits, it is erased with a
// remark, under bytes and under the least bytes of the others.
// RUN: ckopt-opt %s --remat='budget=6000 optional=eval' --verify-diagnostics | FileCheck %s
// RUN: ckopt-opt %s --remat='budget=min optional=eval' 2>&1 | FileCheck %s
// RUN: ckopt-opt %s --remat='optional=eval' | FileCheck %s --check-prefix=ROOM
// RUN: not ckopt-opt %s --remat='budget=6000' 2>&1 | FileCheck %s --check-prefix=NEEDED
// CHECK:     func.func @step
// CHECK-NOT: func.func @eval
// ROOM:      func.func @step
// ROOM:      func.func @eval
// NEEDED:    error: no plan of @eval fits the budget of 5.86 KiB

func.func @step(%x: tensor<256xf32>) -> tensor<256xf32> {
  %0 = math.exp %x : tensor<256xf32>
  %1 = math.tanh %0 : tensor<256xf32>
  return %1 : tensor<256xf32>
}

// expected-remark @+1 {{@eval is left out: no plan of @eval fits the budget of 5.86 KiB}}
func.func @eval(%x: tensor<256xf32>) -> (tensor<256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>) {
  %0 = math.exp %x : tensor<256xf32>
  %1 = math.tanh %x : tensor<256xf32>
  %2 = math.sin %x : tensor<256xf32>
  %3 = math.cos %x : tensor<256xf32>
  %4 = math.sqrt %x : tensor<256xf32>
  %5 = math.absf %x : tensor<256xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>
}
