// Copies of trained weights in 16 bits are arguments that the weight's update writes, and that all functions
// read; @refresh makes them again. What no update changes, and what is read in f32, has none.
// RUN: ckopt-opt %s --fuse --mixed-precision='type=bf16 target=cuda keep-copies' | FileCheck %s
// RUN: ckopt-opt %s --fuse --mixed-precision='type=bf16 target=cuda' | FileCheck %s --check-prefix=CASTS --implicit-check-not=copy --implicit-check-not=refresh

// CASTS: ckopt.kernel_call @k_cast

// CHECK-LABEL: func.func @step(
// CHECK-SAME: %[[W:arg[0-9]+]]: tensor<32x48xf32> {ckopt.name = "w"
// CHECK-SAME: %[[C:arg[0-9]+]]: tensor<32x48xbf16> {ckopt.name = "w/copy", ckopt.role = "copy"}
// CHECK-SAME: {ckopt.name = "w/copy", ckopt.updates = 3 : i64}
// CHECK: ckopt.kernel_call @k_library_{{[0-9]+}}_bf16{{.*}}(%{{.*}}, %[[C]])
// CHECK: ckopt.kernel_call @k_cast{{.*}}(%arg2) : (tensor<48x8xf32>)
// CHECK-NOT: k_cast{{.*}}(%[[W]])
// CHECK: ckopt.kernel_call @[[UPDATE:k_elementwise_[0-9]+_copy]](%[[W]], %{{.*}}, %[[C]]) {reuse = array<i64: {{.*}}2, 1>, updates = array<i64: 0, 0, 2, 1>}
// CHECK: func.func @refresh(%arg0: tensor<32x48xf32> {ckopt.name = "w", ckopt.role = "parameter"}, %arg1: tensor<32x48xbf16> {ckopt.name = "w/copy", ckopt.role = "copy"}) -> (tensor<32x48xbf16> {ckopt.name = "w/copy", ckopt.updates = 1 : i64})
// CHECK: ckopt.kernel_call @k_refresh(%arg0, %arg1) {reuse = array<i64: 1, 0>, updates = array<i64: 1, 0>}
// CHECK-LABEL: func.func @eval(
// CHECK-SAME: %[[E:arg[0-9]+]]: tensor<32x48xbf16> {ckopt.name = "w/copy", ckopt.role = "copy"}
// CHECK: ckopt.kernel_call @k_library_{{[0-9]+}}_bf16{{.*}}(%{{.*}}, %[[E]])
// CHECK: func.func private @[[UPDATE]](
// CHECK: %[[NEW:.*]] = ckopt.assign %arg0
// CHECK: %[[ROUNDED:.*]] = ckopt.cast %[[NEW]] : (tensor<32x48xf32>) -> tensor<32x48xbf16>
// CHECK: %[[COPY:.*]] = ckopt.assign %arg2, %[[ROUNDED]]
// CHECK: return %[[NEW]], %[[COPY]]
func.func @step(%x: tensor<8x32xf32> {ckopt.name = "x", ckopt.role = "input"}, %w: tensor<32x48xf32> {ckopt.name = "w", ckopt.role = "parameter"},
    %f: tensor<48x8xf32> {ckopt.name = "f", ckopt.role = "parameter"})
    -> (tensor<8x8xf32>, tensor<32x48xf32> {ckopt.name = "w", ckopt.updates = 1 : i64}) {
  %h = ckopt.matmul %x, %w : (tensor<8x32xf32>, tensor<32x48xf32>) -> tensor<8x48xf32>
  %r = ckopt.tanh %h : (tensor<8x48xf32>) -> tensor<8x48xf32>
  %y = ckopt.matmul %r, %f : (tensor<8x48xf32>, tensor<48x8xf32>) -> tensor<8x8xf32>
  %dw = ckopt.matmul %x, %r {transpose_lhs} : (tensor<8x32xf32>, tensor<8x48xf32>) -> tensor<32x48xf32>
  %n = ckopt.sub %w, %dw : (tensor<32x48xf32>, tensor<32x48xf32>) -> tensor<32x48xf32>
  %a = ckopt.assign %w, %n : (tensor<32x48xf32>, tensor<32x48xf32>) -> tensor<32x48xf32>
  return %y, %a : tensor<8x8xf32>, tensor<32x48xf32>
}

func.func @eval(%x: tensor<8x32xf32> {ckopt.name = "x", ckopt.role = "input"}, %w: tensor<32x48xf32> {ckopt.name = "w", ckopt.role = "parameter"}) -> tensor<8x48xf32> {
  %h = ckopt.matmul %x, %w : (tensor<8x32xf32>, tensor<32x48xf32>) -> tensor<8x48xf32>
  return %h : tensor<8x48xf32>
}
