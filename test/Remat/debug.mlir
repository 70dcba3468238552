// CKOPT_DEBUG names parts that say what they decide; others, and all without it, are silent.
// REQUIRES: compiler
// RUN: env CKOPT_DEBUG=all ckopt-opt %s --layout --fuse --remat=effort=0 --plan-memory -o /dev/null 2>&1 | FileCheck %s
// RUN: env CKOPT_DEBUG=planner,remat ckopt-opt %s --fuse --remat="budget=min effort=0" -o /dev/null 2>&1 | FileCheck %s --check-prefix=SOME
// RUN: ckopt-opt %s --fuse --remat=effort=0 --plan-memory -o /dev/null 2>&1 | count 0
// RUN: env CKOPT_DEBUG=remta,fuse ckopt-opt %s --fuse -o /dev/null 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// Counters are the same in every run.
// RUN: ckopt-opt %s --fuse --remat="budget=min effort=0" --plan-memory --ckopt-stats -o /dev/null 2> %t.1
// RUN: ckopt-opt %s --fuse --remat="budget=min effort=0" --plan-memory --ckopt-stats -o /dev/null 2> %t.2
// RUN: diff %t.1 %t.2
// RUN: FileCheck %s --check-prefix=COUNTS < %t.1

// CHECK: layout: @step: 3 of 3 classes of values become channels-last, argument x, argument w
// CHECK: fuse: @step calls @k_library_0, library: conv
// CHECK-NEXT: fuse: @step calls @k_elementwise_0, elementwise: tanh neg
// CHECK: planner: step: looks for a plan of 2 nodes; budget 0
// CHECK: planner: step: optimal
// CHECK: remat: @step: 2 ops; without recomputation an arena of {{[0-9]+}} bytes
// CHECK: remat: @step: optimal: arena {{[0-9]+}}, 0 ops again
// CHECK: memory-plan: @step: results and workspaces of 2 calls in {{[0-9]+}} bytes

// SOME-NOT: fuse:
// SOME: planner: step: looks for the smallest budget
// SOME: remat: @step:
// SOME-NOT: fuse:

// UNKNOWN: CKOPT_DEBUG: 'remta' is none of planner, remat, fuse, layout, memory-plan, all
// UNKNOWN-NEXT: fuse:

// COUNTS: {{^ *[1-9][0-9]*}}  planner: searches for a budget, or for the smallest
// COUNTS-NEXT: {{^ *[1-9][0-9]*}}  planner: sequences of steps that strategies found
// COUNTS: {{^ *[1-9][0-9]*}}  planner: plans verified
// COUNTS-NEXT: {{^ *1}}  remat: functions planned
// COUNTS-NEXT: {{^ *0}}  remat: ops computed again
// COUNTS-NEXT: {{^ *3}}  fuse: ops put into kernels
// COUNTS-NEXT: {{^ *2}}  fuse: kernel calls made of them
// COUNTS-NEXT: {{^ *0}}  layout: copies into another layout
// COUNTS-NEXT: {{^ *1}}  memory-plan: functions given offsets
func.func @step(%x: tensor<2x3x8x8xf32> {ckopt.name = "x", ckopt.role = "input"}, %w: tensor<4x3x3x3xf32> {ckopt.name = "w", ckopt.role = "parameter"})
    -> (tensor<2x4x6x6xf32> {ckopt.name = "y"}) {
  %y = ckopt.conv %x, %w {strides = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 1} : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32>
  %a = ckopt.tanh %y : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %b = ckopt.neg %a : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  return %b : tensor<2x4x6x6xf32>
}
