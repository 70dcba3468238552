//===- CompileSizes.h - steps at several sizes of a dimension ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_COMPILER_COMPILESIZES_H
#define CKOPT_LIB_COMPILER_COMPILESIZES_H

#include "ckopt/Compiler/CompileOptions.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ckopt {

/// On the ops of functions before planning: their number, which copies keep.
inline constexpr llvm::StringLiteral kOriginAttr = "ckopt.origin";
/// The functions that are planned.
inline constexpr const char *kPlannedFunctions[] = {"step", "eval",
                                                    "accumulate"};

/// Returns the name of the dimension in messages.
std::string shownName(const SizeRange &range);
llvm::SmallVector<mlir::Operation *> opsOf(mlir::func::FuncOp function);

/// Refuses a range whose steps differ in more than sizes: at `op` (null: at no
/// node in particular) `what` is so at one size, and not at another.
llvm::Error refuseSizes(const SizeRange &range, int64_t size, int64_t other,
                        mlir::Operation *op, const llvm::Twine &what);

} // namespace ckopt

#endif // CKOPT_LIB_COMPILER_COMPILESIZES_H
