//===- Lowering.h - plans beside what bufferization makes -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_REMAT_LOWERING_H
#define CKOPT_LIB_REMAT_LOWERING_H

#include "Planning.h"
#include "llvm/Support/Threading.h"

namespace ckopt {

/// Adds what the lowering of docs/remat-pass.md needs in a context.
void registerLowering(mlir::DialectRegistry &registry);

/// Returns the bytes of the buffers that the function, as it stands or changed
/// to a plan, has allocated at once when it is lowered as docs/remat-pass.md
/// says, without its arguments. Returns nothing if it cannot be lowered so, or
/// not be followed.
std::optional<int64_t> loweredBytes(mlir::FunctionOpInterface function,
                                    const RematPlan *plan,
                                    const RematOptions &options);

/// Returns whether a function has too many ops for that.
bool isLarge(mlir::FunctionOpInterface function);

/// Silences what this thread reports: it is about a trial, and the function may
/// well be lowered in another way.
class Silence {
public:
  explicit Silence(mlir::MLIRContext *context)
      : handler(context, [thread = llvm::get_threadid()](mlir::Diagnostic &) {
          return llvm::success(llvm::get_threadid() == thread);
        }) {}

private:
  mlir::ScopedDiagnosticHandler handler;
};

/// Changes a function, unless it then needs more: when it is lowered or, where
/// that is not known, by the rules of plans.
mlir::LogicalResult
changeUnlessWorse(mlir::FunctionOpInterface function,
                  const RematOptions &options,
                  llvm::function_ref<mlir::LogicalResult()> change);

/// Returns whether the function has ops of other dialects, which bufferization
/// and not plan-memory gives bytes.
bool mayLower(mlir::FunctionOpInterface function);

} // namespace ckopt

#endif // CKOPT_LIB_REMAT_LOWERING_H
