//===- Passes.h - passes of Remat ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_REMAT_PASSES_H
#define CKOPT_REMAT_PASSES_H

#include "ckopt/Remat/Remat.h"
#include "ckopt/Support/Real.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace ckopt {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "ckopt/Remat/Passes.h.inc"

/// The pass of these options, which reads and writes no files. `result`, if it
/// is given, gets the plans of all functions and must live as long as the pass
/// runs. Hooks and stored plans that came from no file are not in the pipeline
/// as it is printed.
std::unique_ptr<mlir::Pass> createRematPass(RematOptions options,
                                            RematResult *result = nullptr);

/// What the pass's textual options ask for; the files that they name are read.
/// Usage errors say what is wrong. Options that only the pass knows (which
/// functions, report, plan-out) are not in it.
llvm::Expected<RematOptions> parseRematOptions(const RematPassOptions &options);
/// The textual options that parse to these.
RematPassOptions printedOptions(const RematOptions &options);

} // namespace ckopt

#endif // CKOPT_REMAT_PASSES_H
