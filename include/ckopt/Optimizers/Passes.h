//===- Passes.h - the pass optimizer ----------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_OPTIMIZERS_PASSES_H
#define CKOPT_OPTIMIZERS_PASSES_H

#include "ckopt/Optimizers/Optimizers.h"
#include "ckopt/Support/Real.h"
#include "mlir/Pass/Pass.h"

namespace ckopt {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "ckopt/Optimizers/Passes.h.inc"

/// The pass of these options.
std::unique_ptr<mlir::Pass>
createOptimizerPass(const OptimizerOptions &options);

} // namespace ckopt

#endif // CKOPT_OPTIMIZERS_PASSES_H
