// Weights in bf16: one cast for all readers, gradients of f32, an update that rounds. Vectors and
// small weights stay f32.
// RUN: ckopt-opt %s --store-parameters | FileCheck %s
// RUN: ckopt-opt %s --store-parameters --autodiff="function=f" --optimizer="type=adamw" | FileCheck %s --check-prefix=STEP

// CHECK-LABEL: func.func @f(
// CHECK-SAME:    %[[X:.*]]: tensor<4x64xf32>
// CHECK-SAME:    %[[W:.*]]: tensor<64x64xbf16> {ckopt.name = "w", ckopt.role = "parameter"}
// CHECK-SAME:    tensor<64xf32> {ckopt.name = "b"
// CHECK-SAME:    tensor<64x8xf32> {ckopt.name = "s"
// CHECK-SAME:    tensor<64x64xf32> {ckopt.name = "z"
// CHECK:         %[[WIDE:.*]] = ckopt.cast %[[W]] : (tensor<64x64xbf16>) -> tensor<64x64xf32>
// CHECK-NOT:     ckopt.cast
// CHECK:         ckopt.matmul %[[X]], %[[WIDE]]
// CHECK:         ckopt.matmul {{.*}}, %[[WIDE]]

// STEP-LABEL: func.func @step(
// STEP-SAME:    tensor<64x64xf32> {ckopt.name = "w/m"
// STEP-SAME:    tensor<i64> {ckopt.name = "seed"
// STEP-NOT:     -> tensor<64x64xbf16>
// STEP:         ckopt.round_random {{.*}} -> tensor<64x64xbf16>
// STEP:         ckopt.assign {{.*}} : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
// STEP-COUNT-2: ckopt.assign {{.*}} : (tensor<64x64xf32>, tensor<64x64xf32>)
func.func @f(%x: tensor<4x64xf32> {ckopt.name = "x", ckopt.role = "input"},
    %w: tensor<64x64xf32> {ckopt.name = "w", ckopt.role = "parameter"},
    %b: tensor<64xf32> {ckopt.name = "b", ckopt.role = "parameter"},
    %s: tensor<64x8xf32> {ckopt.name = "s", ckopt.role = "parameter"},
    %z: tensor<64x64xf32> {ckopt.name = "z", ckopt.role = "frozen"})
    -> (tensor<f32> {ckopt.name = "loss"}) {
  %0 = ckopt.matmul %x, %w : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
  %1 = ckopt.add %0, %b : (tensor<4x64xf32>, tensor<64xf32>) -> tensor<4x64xf32>
  %2 = ckopt.matmul %1, %w : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
  %3 = ckopt.matmul %2, %z : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
  %4 = ckopt.matmul %3, %s : (tensor<4x64xf32>, tensor<64x8xf32>) -> tensor<4x8xf32>
  %5 = ckopt.reduce sum %4 {axes = array<i64: 0, 1>, keepdims = false} : (tensor<4x8xf32>) -> tensor<f32>
  return %5 : tensor<f32>
}
