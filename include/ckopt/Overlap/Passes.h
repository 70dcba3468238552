//===- Passes.h - passes of Overlap -----------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_OVERLAP_PASSES_H
#define CKOPT_OVERLAP_PASSES_H

#include "ckopt/Analysis/CostOptions.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace ckopt {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "ckopt/Overlap/Passes.h.inc"

/// Creates the pass with costs that were read already.
std::unique_ptr<mlir::Pass> createOverlapPass(const CostOptions &costs);

/// Lets `remat` weigh the collectives of steps by what kernels hide of them.
void registerRankClock(mlir::DialectRegistry &registry);

} // namespace ckopt

#endif // CKOPT_OVERLAP_PASSES_H
