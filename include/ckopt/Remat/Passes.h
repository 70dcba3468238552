//===- Passes.h - passes of Remat -------------------------------*- C++ -*-===//
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

/// Creates the pass with these options; it reads and writes no files. `result`,
/// if it is given, gets the plans of all functions and must live as long as the
/// pass runs. Of `which` the pass takes what says which functions to plan:
/// `functions`, `skipUnsupported`, `canonicalizeFirst`. A printed pipeline does
/// not contain hooks, nor stored plans that did not come from a file.
std::unique_ptr<mlir::Pass> createRematPass(RematOptions options,
                                            RematResult *result = nullptr,
                                            const RematPassOptions &which = {});

/// Parses the pass's textual options, and reads the files that they name;
/// `search` gets the options of the search. Usage errors name the mistake.
/// Options that only the pass knows (which functions, report, plan-out) are not
/// accepted.
llvm::Expected<RematOptions>
parseRematOptions(const RematPassOptions &options,
                  const planner::Options &search = {});
/// Returns the textual options that parse to these options, without `search`.
RematPassOptions printedOptions(const RematOptions &options);

} // namespace ckopt

#endif // CKOPT_REMAT_PASSES_H
