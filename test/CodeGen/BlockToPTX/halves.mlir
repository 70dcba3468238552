// Shows that halves are compared as f32: LLVM would compare f16 and bf16
// themselves, which flushes small f16 and is no instruction of PTX for bf16.
// RUN: ckopt-opt %s --lower-kernels="target=cuda" --print-ptx=sm=80 -o /dev/null | FileCheck %s
// RUN: ckopt-opt %s --lower-kernels="target=cuda" --print-ptx=sm=90 -o /dev/null | FileCheck %s
// RUN: ckopt-opt %s --lower-kernels="target=cuda" --print-ptx="sm=90 assemble" -o /dev/null | FileCheck %s --check-prefix=ASSEMBLED
// ASSEMBLED: {{NOT assembled|0 bytes spilled}}

// CHECK-LABEL: .entry f16_s0(
// CHECK-NOT: {{(setp|max).*f16}}
// CHECK: {{(setp|max).*f32}}
func.func private @f16(%x: tensor<6x40xf16>, %y: tensor<6x40xf16>) -> tensor<6x40xf16> attributes {ckopt.kernel = "elementwise"} {
  %m = ckopt.maximum %x, %y : (tensor<6x40xf16>, tensor<6x40xf16>) -> tensor<6x40xf16>
  return %m : tensor<6x40xf16>
}
// CHECK-LABEL: .entry bf16_s0(
// CHECK-NOT: {{(setp|max).*bf16}}
// CHECK: {{(setp|max).*f32}}
func.func private @bf16(%x: tensor<6x40xbf16>, %y: tensor<6x40xbf16>) -> tensor<6x40xbf16> attributes {ckopt.kernel = "elementwise"} {
  %m = ckopt.maximum %x, %y : (tensor<6x40xbf16>, tensor<6x40xbf16>) -> tensor<6x40xbf16>
  return %m : tensor<6x40xbf16>
}
