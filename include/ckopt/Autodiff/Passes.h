//===- Passes.h - reverse-mode differentiation and optimizers ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_AUTODIFF_PASSES_H
#define CKOPT_AUTODIFF_PASSES_H

#include "ckopt/Autodiff/Autodiff.h"
#include "ckopt/Support/Real.h"
#include "mlir/Pass/Pass.h"

namespace ckopt {

#define GEN_PASS_DECL
#include "ckopt/Autodiff/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "ckopt/Autodiff/Passes.h.inc"

/// The passes of these options.
std::unique_ptr<mlir::Pass>
createAttachLossPass(const autodiff::LossOptions &options,
                     llvm::StringRef function = "forward");
std::unique_ptr<mlir::Pass>
createOptimizerPass(const autodiff::OptimizerOptions &options);

} // namespace ckopt

#endif // CKOPT_AUTODIFF_PASSES_H
