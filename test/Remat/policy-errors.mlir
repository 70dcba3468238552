// Rules that match nothing, disagree or are malformed are errors that name the rule and what comes near it.
// REQUIRES: compiler
// RUN: not ckopt-opt %s --remat="save=blok1" 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not ckopt-opt %s --remat="recompute=block" 2>&1 | FileCheck %s --check-prefix=PART
// RUN: not ckopt-opt %s --remat="save=op:conv" 2>&1 | FileCheck %s --check-prefix=KIND
// RUN: not ckopt-opt %s --remat="checkpoint=class:Layer" 2>&1 | FileCheck %s --check-prefix=CLASS
// RUN: not ckopt-opt %s --remat="policy=save_only_these_names=q" 2>&1 | FileCheck %s --check-prefix=ONLY
// RUN: not ckopt-opt %s --remat="save=block1 recompute='block.'" 2>&1 | FileCheck %s --check-prefix=DISAGREE
// RUN: not ckopt-opt %s --remat="save='blo(ck'" 2>&1 | FileCheck %s --check-prefix=REGEX
// RUN: not ckopt-opt %s --remat="save=op:" 2>&1 | FileCheck %s --check-prefix=NOREGEX
// RUN: not ckopt-opt %s --remat="checkpoint=op:exp" 2>&1 | FileCheck %s --check-prefix=MODULES
// RUN: not ckopt-opt %s --remat="policy=dots_savable" 2>&1 | FileCheck %s --check-prefix=MODE
// RUN: not ckopt-opt %s --remat="policy=sequential:1" 2>&1 | FileCheck %s --check-prefix=MODE
// RUN: not ckopt-opt %s --remat="policy=sequential:9" 2>&1 | FileCheck %s --check-prefix=SEGMENTS
// RUN: not ckopt-opt %s --remat="policy=per-block" 2>&1 | FileCheck %s --check-prefix=BLOCKS
// RUN: sed -e 's/wish =/ckopt.remat =/' %s > %t.mlir
// RUN: not ckopt-opt %t.mlir --remat 2>&1 | FileCheck %s --check-prefix=WISH
// RUN: sed -e 's/wish = "keep"/ckopt.checkpoint = 3/' %s > %t.region.mlir
// RUN: not ckopt-opt %t.region.mlir --remat 2>&1 | FileCheck %s --check-prefix=REGION

// NOTHING: error: remat: save 'blok1' matches nothing; near it: 'block1', 'block2' (the whole name has to match)
// PART: error: remat: recompute 'block' matches nothing; near it: 'block1', 'block2'
// KIND: error: remat: save 'op:conv' matches nothing; near it: 'ckopt.
// CLASS: error: remat: the checkpointed region 'class:Layer' matches nothing; nothing here has such a name
// ONLY: error: remat: policy save_only_these_names 'q' matches nothing
// DISAGREE: error: {{.*}}remat: save 'block1' and recompute 'block.' disagree about 'block1'; make one of them narrower
// REGEX: error: remat: save: 'blo(ck' is no regular expression: parentheses not balanced
// NOREGEX: error: remat: save: the rule 'op:' has no regular expression
// MODULES: error: remat: the checkpointed region 'op:exp' must name modules
// MODE: error: remat: '{{.*}}' is none of auto, per-block, sequential:K
// SEGMENTS: error: remat: 'sequential:9' needs as many ops; @step has 2 in its forward pass
// BLOCKS: error: remat: 'per-block' finds no repeated blocks in @step: {{.*}}name the checkpointed regions
// WISH: error: {{.*}}ckopt.remat is "keep"; it must be "save", "recompute" or "auto"
// WISH: error: {{.*}}ckopt.remat is 4 : i64; it must be
// REGION: error: {{.*}}ckopt.checkpoint is 3 : i64; it must name regions, outermost first: "outer/inner"

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
func.func @step(%x: tensor<256xf32>) -> tensor<256xf32> {
  %a = ckopt.kernel_call @f(%x) {wish = "keep"} : (tensor<256xf32>) -> tensor<256xf32> loc("block1")
  %b = ckopt.kernel_call @h(%a) {wish = 4} : (tensor<256xf32>) -> tensor<256xf32> loc("block2")
  %0 = ckopt.kernel_call @g(%b, %a) : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32> loc("grad/block2")
  %1 = ckopt.kernel_call @g(%0, %a) : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32> loc("grad/block1")
  return %1 : tensor<256xf32>
}
