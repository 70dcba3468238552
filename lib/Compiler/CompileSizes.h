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

/// Compares the wiring of two functions, whose tensors may have other sizes.
llvm::Error compareWiring(const SizeRange &range, int64_t size, int64_t first,
                          mlir::func::FuncOp largest, mlir::func::FuncOp other);

/// Constants of one size have to be the first part of those of a larger one,
/// whose place they share, and the same where their shape is.
llvm::Error comparePrefix(const SizeRange &range, int64_t size,
                          const HostTensor &own, const HostTensor &largest,
                          mlir::func::FuncOp function, llvm::StringRef name);

} // namespace ckopt

#endif // CKOPT_LIB_COMPILER_COMPILESIZES_H
