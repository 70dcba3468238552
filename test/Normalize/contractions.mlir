// RUN: ckopt-opt --decompose=widen-halves=true %s | FileCheck %s
// RUN: ckopt-opt --decompose %s | FileCheck %s --check-prefix=NARROW

// Products of f16 are made in f32 and rounded once, where the target asks for
// it; those of other types stay.

// CHECK-LABEL: @halves
// CHECK:         %[[A:.*]] = ckopt.cast %arg0 {{.*}} tensor<2x3xf32>
// CHECK:         %[[B:.*]] = ckopt.cast %arg1 {{.*}} tensor<3x4xf32>
// CHECK:         %[[C:.*]] = ckopt.matmul %[[A]], %[[B]] {{.*}} tensor<2x4xf32>
// CHECK:         %[[D:.*]] = ckopt.cast %[[C]] {{.*}} tensor<2x4xf16>
// CHECK:         return %[[D]]
// NARROW-LABEL: @halves
// NARROW-NOT:    ckopt.cast
func.func @halves(%a: tensor<2x3xf16>, %b: tensor<3x4xf16>) -> tensor<2x4xf16> {
  %c = ckopt.matmul %a, %b : (tensor<2x3xf16>, tensor<3x4xf16>) -> tensor<2x4xf16>
  return %c : tensor<2x4xf16>
}

// Three batch dimensions that broadcast in turns have no form in a library:
// the operands are expanded, and there is one.

// CHECK-LABEL: @turns
// CHECK:         ckopt.matmul {{.*}} tensor<30x6x8xf32>
// CHECK:         ckopt.reshape {{.*}} tensor<2x3x5x6x8xf32>
func.func @turns(%a: tensor<2x1x5x6x7xf32>, %b: tensor<1x3x1x7x8xf32>) -> tensor<2x3x5x6x8xf32> {
  %c = ckopt.matmul %a, %b : (tensor<2x1x5x6x7xf32>, tensor<1x3x1x7x8xf32>) -> tensor<2x3x5x6x8xf32>
  return %c : tensor<2x3x5x6x8xf32>
}

// Two runs of them have, however many dimensions they are made of.

// CHECK-LABEL: @runs
// CHECK-NEXT:    ckopt.matmul {{.*}} tensor<2x3x5x6x8xf32>
func.func @runs(%a: tensor<2x3x5x6x7xf32>, %b: tensor<5x7x8xf32>) -> tensor<2x3x5x6x8xf32> {
  %c = ckopt.matmul %a, %b : (tensor<2x3x5x6x7xf32>, tensor<5x7x8xf32>) -> tensor<2x3x5x6x8xf32>
  return %c : tensor<2x3x5x6x8xf32>
}
