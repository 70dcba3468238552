//===- Passes.h - passes of Remat ----------------------*- C++ -*-===//
#ifndef CKOPT_REMAT_PASSES_H
#define CKOPT_REMAT_PASSES_H

#include "ckopt/Remat/Remat.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace ckopt {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "ckopt/Remat/Passes.h.inc"

/// The pass with what a client knows of its own ops and types.
std::unique_ptr<mlir::Pass> createRematPass(const RematPassOptions &options,
                                            PlanningHooks hooks);

/// What the pass's options ask for, for planRemat() and runRemat(); the
/// profile is read. The policy comes on top of the one given. Usage errors say
/// what is wrong. Options that only the pass knows (which functions, remarks,
/// report) are not in it.
llvm::Expected<RematOptions> parseRematOptions(const RematPassOptions &options,
                                               RematPolicy policy = {});
} // namespace ckopt

#endif // CKOPT_REMAT_PASSES_H
