//===- Arguments.h - where arguments lie in an arena ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_ANALYSIS_ARGUMENTS_H
#define CKOPT_ANALYSIS_ARGUMENTS_H

#include "ckopt/Analysis/PlanningHooks.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace ckopt {

/// Attribute of a function between `remat` and `plan-memory`: the bytes that
/// hold all results and workspaces. Offsets of kernel calls then count from the
/// first byte above the arguments.
inline constexpr llvm::StringLiteral kPackedBytes = "ckopt.packed_bytes";

/// The places of the arguments of several functions.
struct ArgumentRegion {
  /// Offset of each function's arguments, in bytes from the arena's start; -1
  /// for arguments that are no tensors.
  llvm::SmallVector<llvm::SmallVector<int64_t>> offsets;
  /// The first byte that other values may take, and the end of the last
  /// argument.
  int64_t bytes = 0, end = 0;
  /// Where what is fed to each step lies, and how many bytes behind that its
  /// second place is (kFedTwice); 0: it has none.
  int64_t fedBegin = 0, fedEnd = 0, fedShift = 0;
  /// The first byte behind all arguments, were there no second places.
  int64_t once = 0;
};

/// Places all arguments that have bytes. Arguments of one name are one tensor.
/// Fails with an error if such arguments differ in type.
mlir::FailureOr<ArgumentRegion>
placeArguments(llvm::ArrayRef<mlir::FunctionOpInterface> functions,
               const TypeSizes &sizes = {});

} // namespace ckopt

#endif // CKOPT_ANALYSIS_ARGUMENTS_H
