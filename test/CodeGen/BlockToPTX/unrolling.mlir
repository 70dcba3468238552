// Shows that long loops stay loops in PTX: a variance over 392 rows is one over
// tiles of 8, whose 16 bytes a row are all loaded before one is used.
// RUN: ckopt-opt %s --lower-kernels="target=cuda" --print-ptx="sm=80" -o /dev/null | FileCheck %s
// Shows which loops are bounded: one around others, and a long innermost one.
// RUN: ckopt-opt %S/Inputs/loops.mlir --pass-pipeline="builtin.module(gpu.module(bound-unrolling))" | FileCheck %s --check-prefix=BOUND

// CHECK-LABEL: .entry moments_s0(
// CHECK: $L__BB0
// CHECK-COUNT-8: ld.global.v4.b32
// CHECK-NOT: ld.global
// CHECK: @%p{{.*}} bra $L__BB0
// CHECK-LABEL: .entry moments_s1(
func.func private @moments(%x: tensor<64x128x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> (tensor<128xf32>, tensor<128xf32>) attributes {ckopt.kernel = "reduction"} {
  %mean, %variance = ckopt.moments %x {axes = array<i64: 0, 2, 3>} : (tensor<64x128x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> (tensor<128xf32>, tensor<128xf32>)
  return %mean, %variance : tensor<128xf32>, tensor<128xf32>
}

// BOUND-DAG: #[[NEVER:.*]] = #llvm.loop_unroll<disable = true>
// BOUND-DAG: #[[SOME:.*]] = #llvm.loop_unroll<count = 8 : i32>
// BOUND-DAG: #[[AROUND:.*]] = #llvm.loop_annotation<unroll = #[[NEVER]]>
// BOUND-DAG: #[[LONG:.*]] = #llvm.loop_annotation<unroll = #[[SOME]]>
// BOUND-LABEL: gpu.func @around
// BOUND: scf.for
// BOUND: scf.for
// BOUND-NOT: loop_annotation =
// BOUND: } {loop_annotation = #[[AROUND]]}
// BOUND-LABEL: gpu.func @long
// BOUND: } {loop_annotation = #[[LONG]]}
// BOUND-LABEL: gpu.func @short
// BOUND-NOT: loop_annotation =
