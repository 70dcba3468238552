// On functions of other dialects what runs behind the peak counts as backward pass; attributes and rules work there, too.
// RUN: ckopt-opt %s --remat --cse --canonicalize --cse | FileCheck %s
// RUN: ckopt-opt %s --remat="recompute=op:exp" | FileCheck %s --check-prefix=RULE
// RUN: ckopt-opt %s --remat="recompute=op:exp remarks functions=products" 2>&1 | FileCheck %s --check-prefix=REASON
// RUN: ckopt-opt %s --remat="budget=min save=op:exp functions=marked" | FileCheck %s --check-prefix=LEAST
// RUN: ckopt-opt %s --remat="policy=dots_saveable" | FileCheck %s --check-prefix=DOTS
// RUN: not ckopt-opt %s --remat="recompute=exp" 2>&1 | FileCheck %s --check-prefix=NAMES

// CHECK-LABEL: func.func @marked
// CHECK-SAME: recomputed = 1 : i64
// CHECK: math.exp %arg0 {{{.*}}ckopt.remat = "recompute"}
// CHECK: arith.mulf
// CHECK: %[[X:.*]] = ckopt.barrier %arg0 {clone = 1 : i64}
// CHECK: math.exp %[[X]] {ckopt.clone = 1 : i64, {{.*}}ckopt.remat = "recompute"}
func.func @marked(%x: tensor<256xf32>) -> tensor<256xf32> {
  %0 = math.exp %x {ckopt.remat = "recompute"} : tensor<256xf32>
  %1 = math.sin %0 : tensor<256xf32>
  %2 = math.cos %1 : tensor<256xf32>
  %3 = arith.mulf %2, %1 : tensor<256xf32>
  %4 = arith.mulf %3, %0 : tensor<256xf32>
  return %4 : tensor<256xf32>
}

// What fits in less without the rule is compared in the bytes of the rule's plan, too.
// LEAST-LABEL: func.func @marked
// LEAST-SAME: arena = 4096 : i64, {{.*}}auto_arena = 3072 : i64
// LEAST-SAME: auto_seconds_in_arena = [[SECONDS:[0-9.E-]+]] : f64
// LEAST-SAME: seconds = [[SECONDS]] : f64, status

// A remark names the rule that asked.
// REASON: remark: recomputed: math.exp{{.*}}: recompute 'op:exp' asks for it

// RULE-LABEL: func.func @products
// RULE-SAME: recomputed = 1 : i64

// The product stays, what is cheap is computed again.
// DOTS-LABEL: func.func @products
// DOTS-COUNT-1: linalg.matmul
// DOTS: math.exp {{.*}}ckopt.clone
// DOTS-NOT: linalg.matmul {{.*}}ckopt.clone
func.func @products(%x: tensor<16x16xf32>, %w: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  %0 = math.exp %x : tensor<16x16xf32>
  %1 = linalg.matmul ins(%0, %w : tensor<16x16xf32>, tensor<16x16xf32>) outs(%f : tensor<16x16xf32>) -> tensor<16x16xf32>
  %2 = math.sin %1 : tensor<16x16xf32>
  %3 = math.cos %2 : tensor<16x16xf32>
  %4 = arith.mulf %3, %2 : tensor<16x16xf32>
  %5 = arith.mulf %4, %1 : tensor<16x16xf32>
  %6 = arith.mulf %5, %0 : tensor<16x16xf32>
  return %6 : tensor<16x16xf32>
}

// Ops without source names can be named by kind alone.
// NAMES: remat: recompute 'exp' matches nothing; no op here has a name
