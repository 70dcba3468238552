//===- Passes.td - collectives beside kernels ---------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_OVERLAP_PASSES
#define CKOPT_OVERLAP_PASSES

include "mlir/Pass/PassBase.td"

def OverlapPass : Pass<"overlap", "mlir::ModuleOp"> {
  let summary = "Splits collectives into a start and a wait, between which kernels run";
  let description = [{
    Works on ordered steps (behind `remat`): calls of `all_reduce`, `reduce_scatter`, `all_gather`
    and `broadcast` become two, one of `collective_start` as early as the operands are there, one of
    `collective_wait` before the first reader of a result. A gather, whose results take bytes, starts
    no earlier than its messages need. The order among collectives stays, and that of other calls.
    Where bytes in flight do not fit into the budget, the start comes later and the wait earlier, or
    the collective stays as it is.

    Corrects the figures of `ckopt.plan`: seconds are those of kernels and of communication that
    none hides.
  }];
  let options = [
    Option<"budget", "budget", "int64_t", "-1",
           "Bytes of the arena; -1: those that `remat` noted; 0: no limit">,
    Option<"costModel", "cost-model", "std::string", "\"analytic\"",
           "As of `remat`">,
  ];
  let dependentDialects = ["::ckopt::CkoptDialect", "::mlir::func::FuncDialect"];
}

#endif // CKOPT_OVERLAP_PASSES
