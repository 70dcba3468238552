//===- Passes.cpp - passes of the memory plan -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/MemoryPlan/Passes.h"
#include "ckopt/Analysis/PlanningProblem.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/MemoryPlan/MemoryPlan.h"

using namespace mlir;
using namespace ckopt;

namespace ckopt {
#define GEN_PASS_DEF_PLANMEMORYPASS
#define GEN_PASS_DEF_VERIFYARENAPASS
#include "ckopt/MemoryPlan/Passes.h.inc"
} // namespace ckopt

namespace {

struct PlanMemoryPass : ckopt::impl::PlanMemoryPassBase<PlanMemoryPass> {
  using PlanMemoryPassBase::PlanMemoryPassBase;

  void runOnOperation() override {
    SmallVector<func::FuncOp> wanted;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (isStepFunction(function) &&
          (functions.empty() ||
           llvm::is_contained(functions, function.getSymName().str())))
        wanted.push_back(function);
    if (failed(planMemory(wanted, lateUpdates)))
      signalPassFailure();
  }
};

struct VerifyArenaPass : ckopt::impl::VerifyArenaPassBase<VerifyArenaPass> {
  using VerifyArenaPassBase::VerifyArenaPassBase;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(attrs::kArenaBytes) &&
          failed(verifyArena(function)))
        return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
