// Pipelines that MLIR prints hold all options, also those that were not given: they run again, pasted and
// from reproducers, for every pass of ckopt-opt (200 processes; unit.PhaseEquivalenceTest pastes those of the phases).
// REQUIRES: compiler
// RUN: %if long-tests %{ ckopt-opt %S/../Autodiff/mlp.mlir --attach-loss -o %t.loss.mlir %}
// RUN: %if long-tests %{ ckopt-opt %t.loss.mlir --autodiff -o %t.gradient.mlir %}
// RUN: %if long-tests %{ ckopt-opt %t.gradient.mlir --optimizer -o %t.step.mlir %}
// RUN: %if long-tests %{ ckopt-opt %t.step.mlir --layout --fuse --annotate-kernels --remat -o %t.planned.mlir %}
// RUN: %if long-tests %{ %python %S/Inputs/rerun_passes.py %t.out %S/../Autodiff/mlp.mlir %t.loss.mlir %t.gradient.mlir %t.step.mlir %t.planned.mlir %s > %t.txt || cat %t.txt %}
// RUN: %if long-tests %{ FileCheck %s --check-prefix=ALL --implicit-check-not="does not run" < %t.txt %}
// ALL-DAG: annotate-kernels runs again
// ALL-DAG: attach-loss runs again
// ALL-DAG: autodiff runs again
// ALL-DAG: block-to-gpu runs again
// ALL-DAG: decompose runs again
// ALL-DAG: fuse runs again
// ALL-DAG: layout runs again
// ALL-DAG: lower-kernels runs again
// ALL-DAG: make-eval runs again
// ALL-DAG: normalize runs again
// ALL-DAG: optimizer runs again
// ALL-DAG: plan-memory runs again
// ALL-DAG: remat runs again
// ALL-DAG: strip-barriers runs again
// ALL-DAG: test-reference runs again

// A budget that nothing fits: the reproducer of that failure fails in the same way.
// RUN: not ckopt-opt %s --remat=budget=1KiB --mlir-pass-pipeline-crash-reproducer=%t.crash.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=FIRST
// RUN: not ckopt-opt %t.crash.mlir --run-reproducer -o /dev/null 2>&1 | FileCheck %s
// FIRST: error: no plan of @main fits the budget of 1.00 KiB
// CHECK: error: no plan of @main fits the budget of 1.00 KiB
func.func @main(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = ckopt.exp %x : (tensor<1024xf32>) -> tensor<1024xf32>
  return %0 : tensor<1024xf32>
}
