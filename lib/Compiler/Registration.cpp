//===- Registration.cpp - all passes and dialects that the phases use -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Autodiff/Autodiff.h"
#include "ckopt/Autodiff/Passes.h"
#include "ckopt/CodeGen/Kernels.h"
#include "ckopt/CodeGen/Passes.h"
#include "ckopt/Compiler/Phases.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include "ckopt/Distribute/Passes.h"
#include "ckopt/Fuse/Passes.h"
#include "ckopt/Layout/Passes.h"
#include "ckopt/Losses/Passes.h"
#include "ckopt/MemoryPlan/Passes.h"
#include "ckopt/Normalize/Passes.h"
#include "ckopt/Optimizers/Passes.h"
#include "ckopt/Overlap/Passes.h"
#include "ckopt/Precision/Passes.h"
#include "ckopt/Reference/Folding.h"
#include "ckopt/Remat/Passes.h"
#include "ckopt/Target/Targets.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Transforms/Passes.h"

using namespace ckopt;

void ckopt::registerAllPasses() {
  mlir::registerTransformsPasses();
  registerAllTargets();
  registerNormalizePasses();
  registerAutodiffPasses();
  registerDistributePasses();
  registerLossesPasses();
  registerOptimizersPasses();
  registerLayoutPasses();
  registerFusePasses();
  registerKernelsPasses();
  registerPrecisionPasses();
  registerRematPasses();
  registerOverlapPasses();
  registerMemoryPlanPasses();
}

void ckopt::registerAllDialects(mlir::DialectRegistry &registry) {
  registry
      .insert<CkoptDialect, mlir::func::FuncDialect, mlir::LLVM::LLVMDialect>();
  registerReferenceFolding(registry);
  registerAutodiffRules(registry);
  registerKernelDialects(registry);
  registerRankClock(registry);
}
