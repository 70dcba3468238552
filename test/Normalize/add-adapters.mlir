// Products with a stored matrix get two small trained ones beside them, and what
// was trained is frozen. One matrix that is read twice has one adapter; output heads,
// constants and products of activations have none.
// RUN: ckopt-opt %s --add-adapters="rank=2 alpha=6" | FileCheck %s

// CHECK-LABEL: func.func @forward(
// CHECK-SAME:    %[[W:[^:]*]]: tensor<8x6xf32> {ckopt.name = "fc.weight", ckopt.role = "frozen"}
// CHECK-SAME:    %[[V:[^:]*]]: tensor<8x8xf16> {ckopt.name = "onnx::MatMul_7", ckopt.role = "frozen"}
// CHECK-SAME:    ckopt.name = "head.weight", ckopt.role = "frozen"
// CHECK-SAME:    %[[A:[^:]*]]: tensor<2x6xf32> {ckopt.fan_in = 36 : i64, ckopt.init = "kaiming", ckopt.name = "base_model.model.fc.lora_A.weight", ckopt.role = "parameter"}
// CHECK-SAME:    %[[B:[^:]*]]: tensor<8x2xf32> {ckopt.init = "zeros", ckopt.name = "base_model.model.fc.lora_B.weight", ckopt.role = "parameter"}
// CHECK-SAME:    ckopt.name = "base_model.model.net.fc.1.lora_A.weight"
// CHECK-SAME:    ckopt.name = "base_model.model.net.fc.1.lora_B.weight"
// CHECK-NOT:     lora
// CHECK:         %[[Y:.*]] = ckopt.matmul %{{.*}}, %[[W]] {transpose_rhs}
// CHECK:         %[[DOWN:.*]] = ckopt.matmul %{{.*}}, %[[A]] {transpose_rhs}
// CHECK:         %[[UP:.*]] = ckopt.matmul %[[DOWN]], %[[B]] {transpose_rhs}
// CHECK:         ckopt.constant dense<3.000000e+00>
// CHECK:         %[[SCALED:.*]] = ckopt.mul %[[UP]]
// CHECK:         %[[SUM:.*]] = ckopt.add %[[Y]], %[[SCALED]]
// CHECK:         ckopt.tanh %[[SUM]]
// Halves: the adapter is f32, and the sum is rounded once.
// CHECK:         ckopt.matmul %{{.*}} : (tensor<4x8xf16>, tensor<8x8xf16>)
// CHECK:         ckopt.cast %{{.*}} : (tensor<4x8xf16>) -> tensor<4x8xf32>
// CHECK:         ckopt.cast %{{.*}} : (tensor<4x8xf32>) -> tensor<4x8xf16>
// CHECK:         ckopt.matmul %{{.*}} : (tensor<4x8xf16>, tensor<8x8xf16>)

// With a dropout, which draws numbers of its own, DoRA's difference has it on both
// products; the norms are constants for gradients.
// RUN: ckopt-opt %s --add-adapters="rank=2 alpha=6 targets=fc dropout=0.5 dora" | FileCheck %s --check-prefix=DORA
// DORA:      ckopt.name = "base_model.model.fc.lora_magnitude_vector", ckopt.role = "parameter"
// DORA-SAME: %[[SEED:[^:]*]]: tensor<i64> {ckopt.name = "seed", ckopt.role = "seed"}
// DORA-NOT:  net.fc.1
// DORA:      %[[Y:.*]] = ckopt.matmul %{{.*}} {transpose_rhs} : (tensor<4x6xf32>, tensor<8x6xf32>)
// DORA:      %[[D:.*]] = ckopt.dropout %{{.*}}, %[[SEED]]
// DORA:      ckopt.pin %{{.*}} {ckopt.stop_gradient}
// DORA:      ckopt.matmul %[[D]], %{{.*}} {transpose_rhs} : (tensor<4x6xf32>, tensor<8x6xf32>)

// RUN: not ckopt-opt %s --add-adapters="rank=2 targets=q_proj" 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: --lora-targets=q_proj matches no product (a whole name has to match, or its end behind a dot); products: 'fc', 'net.fc.1', 'table'; output heads, which a name alone chooses: 'head'
func.func @forward(
    %x: tensor<4x6xf32> {ckopt.name = "x", ckopt.role = "input"},
    %w: tensor<8x6xf32> {ckopt.name = "fc.weight", ckopt.role = "parameter"},
    %v: tensor<8x8xf16> {ckopt.name = "onnx::MatMul_7", ckopt.role = "frozen"},
    %t: tensor<8x8xf32> {ckopt.name = "table", ckopt.role = "constant"},
    %h: tensor<3x8xf32> {ckopt.name = "head.weight", ckopt.role = "parameter"})
    -> (tensor<4x3xf32> {ckopt.name = "y"}) {
  %0 = ckopt.matmul %x, %w {transpose_rhs} : (tensor<4x6xf32>, tensor<8x6xf32>) -> tensor<4x8xf32>
  %1 = ckopt.tanh %0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = ckopt.cast %1 : (tensor<4x8xf32>) -> tensor<4x8xf16>
  %3 = ckopt.matmul %2, %v : (tensor<4x8xf16>, tensor<8x8xf16>) -> tensor<4x8xf16> loc("/net/fc/fc.1/MatMul")
  %4 = ckopt.matmul %3, %v : (tensor<4x8xf16>, tensor<8x8xf16>) -> tensor<4x8xf16> loc("/net/fc/fc.1/MatMul_1")
  %5 = ckopt.cast %4 : (tensor<4x8xf16>) -> tensor<4x8xf32>
  %6 = ckopt.matmul %5, %t : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %7 = ckopt.matmul %6, %6 {transpose_rhs} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x4xf32>
  %8 = ckopt.matmul %7, %6 : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %9 = ckopt.matmul %8, %h {transpose_rhs} : (tensor<4x8xf32>, tensor<3x8xf32>) -> tensor<4x3xf32>
  return %9 : tensor<4x3xf32>
}
