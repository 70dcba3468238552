//===- FlatParts.h - kernels whose parts are loops over memory --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An elementwise kernel is flat where point i of each result depends on points
// i of operands, in the order of memory, and on tensors of one element. Its
// shape then does not matter, so that kernels of several shapes can be one
// launch (join-updates). Results that need no common op with several elements
// are parts of their own; what they read they may share.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_ANALYSIS_FLATPARTS_H
#define CKOPT_ANALYSIS_FLATPARTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>

namespace ckopt {

/// Results of a flat kernel that are computed together.
struct FlatPart {
  /// Ops that they need, in order; those of tensors of one element may be part
  /// of several.
  llvm::SmallVector<mlir::Operation *> ops;
  llvm::SmallVector<unsigned> arguments; ///< that these read, by first use
  llvm::SmallVector<unsigned> results;
  int64_t elements = 0;
  /// Says what is computed; equal for parts that differ in shape alone.
  std::string form;
};

/// Returns the parts of a kernel in the order of their first results; none if
/// it is not flat. Linear in the body, but for ops that several parts need.
llvm::SmallVector<FlatPart> findFlatParts(mlir::func::FuncOp kernel);

/// The most bytes of the operands of an update that is worth moving: a larger
/// one takes many times as long as a launch, and may find its gradient in a
/// cache where it stands.
inline constexpr int64_t kMostUpdateBytes = int64_t(64) << 20;

/// Returns whether a kernel makes new values of parameters in a way that
/// join-updates may make one launch of, with others. Which others is known
/// behind the plan alone.
bool isJoinable(mlir::func::FuncOp kernel);

/// Returns whether a tensor has one element, which all points read.
bool isOneElement(mlir::Type type);

} // namespace ckopt

#endif // CKOPT_ANALYSIS_FLATPARTS_H
