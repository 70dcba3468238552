//===- FlatParts.h - kernels whose parts are elementwise loops --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An elementwise kernel is flat if point i of each result only depends on
// points i of operands, in memory order, and on tensors of one element. Then
// its shape does not matter, so that kernels of several shapes can be one
// launch (join-updates). Results that share no op with several elements are
// separate parts; parts may read the same operands.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_ANALYSIS_FLATPARTS_H
#define CKOPT_ANALYSIS_FLATPARTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>

namespace ckopt {

/// Results of a flat kernel that are computed together.
struct FlatPart {
  /// The ops that compute them, in order; ops on tensors of one element may
  /// belong to several parts.
  llvm::SmallVector<mlir::Operation *> ops;
  llvm::SmallVector<unsigned> arguments; ///< their operands, by first use
  llvm::SmallVector<unsigned> results;
  int64_t elements = 0;
  /// Text of the computation; equal for parts that differ only in shape.
  std::string form;
};

/// Returns the parts of a kernel in the order of their first results; none if
/// it is not flat. Linear in the body, except for ops that several parts share.
llvm::SmallVector<FlatPart> findFlatParts(mlir::func::FuncOp kernel);

/// The most operand bytes of an update that is delayed to be joined. A larger
/// update takes many times as long as a launch, and may find its gradient in a
/// cache if it is not delayed.
inline constexpr int64_t kMostUpdateBytes = int64_t(64) << 20;

/// Returns whether join-updates may join the kernel, which makes new values of
/// parameters, with others. The others are known only after planning.
bool isJoinable(mlir::func::FuncOp kernel);

/// Returns whether a tensor has one element, which all points read.
bool isOneElement(mlir::Type type);

} // namespace ckopt

#endif // CKOPT_ANALYSIS_FLATPARTS_H
