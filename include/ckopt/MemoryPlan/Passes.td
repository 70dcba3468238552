//===- Passes.td - one planned arena ------------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_MEMORYPLAN_PASSES
#define CKOPT_MEMORYPLAN_PASSES

include "mlir/Pass/PassBase.td"

def PlanMemoryPass : Pass<"plan-memory", "mlir::ModuleOp"> {
  let summary = "Gives every tensor of the steps a place in one arena";
  let description = [{
    Arguments lie at the arena's start, at the same offsets in all functions (by
    `ckopt.name`): what is kept between steps, then data. Above them each
    function packs its results and workspaces. Results with `ckopt.updates` lie
    in their argument's bytes. Sets `ckopt.offset` on arguments, `offsets` and
    `workspace_offset` on kernel calls, `ckopt.arena_bytes` on functions.

    Always verifies its own result by an independent check of the IR.
  }];
  let options = [
    ListOption<"functions", "functions", "std::string",
               "Names of the functions to place (default: all but kernels)">,
    Option<"lateUpdates", "late-updates", "bool", "false",
           "Let updates wait for each other where that takes no more bytes (for join-updates)">,
  ];
  let dependentDialects = ["::ckopt::CkoptDialect", "::mlir::func::FuncDialect"];
}

def VerifyArenaPass : Pass<"verify-arena", "mlir::ModuleOp"> {
  let summary = "Checks the offsets that plan-memory set";
  let description = [{
    Recomputes lifetimes from the IR alone and fails where two tensors alive at
    once overlap (but for in-place results that the kernel allows), a tensor is
    not aligned or lies outside of the arena, or a new state does not lie in its
    argument's bytes.
  }];
}

def JoinUpdatesPass : Pass<"join-updates", "mlir::ModuleOp"> {
  let summary = "Makes one call of updates of several parameters, for targets whose launches cost much";
  let description = [{
    Runs after `plan-memory`. Updates of the same form (any shapes) wait for each
    other as long as no call touches their bytes, and become one kernel of kind
    `joined`. No tensor moves; the result is verified as by `verify-arena`.
  }];
  let options = [
    Option<"mostTensors", "most-tensors", "unsigned", "511",
           "Operands and results of a kernel at most">,
  ];
  let dependentDialects = ["::ckopt::CkoptDialect", "::mlir::func::FuncDialect"];
}

#endif // CKOPT_MEMORYPLAN_PASSES
