// Regions that attributes name keep only their inputs, an inner one inside of the recomputation of the outer one.
// REQUIRES: compiler
// RUN: ckopt-opt %s --remat=fixed-order | FileCheck %s
// RUN: ckopt-opt %s --remat="fixed-order save=a2" | FileCheck %s --check-prefix=SAVE

func.func private @f(%x: tensor<256xf32>) -> tensor<256xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.exp %x : (tensor<256xf32>) -> tensor<256xf32>
  return %0 : tensor<256xf32>
}
func.func private @h(%x: tensor<256xf32>) -> tensor<256xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.sqrt %x : (tensor<256xf32>) -> tensor<256xf32>
  return %0 : tensor<256xf32>
}
func.func private @g(%x: tensor<256xf32>, %y: tensor<256xf32>) -> tensor<256xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.mul %x, %y : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32>
  return %0 : tensor<256xf32>
}

// Computed again: a1 and b1 on the way to the inner region's input, then, inside of that, a2 and b2.
// CHECK-LABEL: func.func @step
// CHECK-SAME: auto_arena = {{[0-9]+}}{{.*}}recomputed = 4 : i64, regions = 2 : i64
// CHECK: ckopt.kernel_call @g
// CHECK: %[[A1:.*]] = ckopt.kernel_call @f(%arg0) {{{.*}}clone = 1 : i64
// CHECK: %[[B1:.*]] = ckopt.kernel_call @h(%[[A1]]) {{{.*}}clone = 2 : i64
// CHECK: %[[A2:.*]] = ckopt.kernel_call @f(%[[B1]]) {{{.*}}clone = 3 : i64
// CHECK: ckopt.kernel_call @h(%[[A2]]) {{{.*}}clone = 4 : i64

// A rule on a value beats the regions that hold it.
// SAVE-LABEL: func.func @step
// SAVE-SAME: recomputed = 3 : i64
func.func @step(%x: tensor<256xf32>) -> tensor<256xf32> {
  %a1 = ckopt.kernel_call @f(%x) {ckopt.checkpoint = "outer"} : (tensor<256xf32>) -> tensor<256xf32> loc("a1")
  %b1 = ckopt.kernel_call @h(%a1) {ckopt.checkpoint = "outer"} : (tensor<256xf32>) -> tensor<256xf32> loc("b1")
  %a2 = ckopt.kernel_call @f(%b1) {ckopt.checkpoint = "outer/inner"} : (tensor<256xf32>) -> tensor<256xf32> loc("a2")
  %b2 = ckopt.kernel_call @h(%a2) {ckopt.checkpoint = "outer/inner"} : (tensor<256xf32>) -> tensor<256xf32> loc("b2")
  %a3 = ckopt.kernel_call @f(%b2) {ckopt.checkpoint = "outer"} : (tensor<256xf32>) -> tensor<256xf32> loc("a3")
  %ga3 = ckopt.kernel_call @g(%a3, %b2) : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32> loc("loss")
  %gb2 = ckopt.kernel_call @g(%ga3, %b2) : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32> loc("grad/b2")
  %ga2 = ckopt.kernel_call @g(%gb2, %a2) : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32> loc("grad/a2")
  %gb1 = ckopt.kernel_call @g(%ga2, %b1) : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32> loc("grad/b1")
  %ga1 = ckopt.kernel_call @g(%gb1, %a1) : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32> loc("grad/a1")
  return %ga1 : tensor<256xf32>
}
