//===- Passes.h - the pass attach-loss --------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LOSSES_PASSES_H
#define CKOPT_LOSSES_PASSES_H

#include "ckopt/Losses/Loss.h"
#include "ckopt/Support/Real.h"
#include "mlir/Pass/Pass.h"

namespace ckopt {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "ckopt/Losses/Passes.h.inc"

/// The pass of these options.
std::unique_ptr<mlir::Pass>
createAttachLossPass(const LossOptions &options,
                     llvm::StringRef function = "forward");

} // namespace ckopt

#endif // CKOPT_LOSSES_PASSES_H
