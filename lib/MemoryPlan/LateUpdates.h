//===- LateUpdates.h - updates that wait for others -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_MEMORYPLAN_LATEUPDATES_H
#define CKOPT_LIB_MEMORYPLAN_LATEUPDATES_H

#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"

namespace ckopt {

/// The most bytes of the operands of an update that is worth moving: a larger
/// one takes many times as long as a launch, and may find its gradient in a
/// cache where it stands.
inline constexpr int64_t kMostUpdateBytes = int64_t(64) << 20;

/// Returns the calls of a function in an order in which small updates come as
/// late, and as many of them together, as `bytes` for results and workspaces
/// allow, by the sum of what is alive. Whether they can be packed is not known.
/// Deterministic; linear in calls and operands.
llvm::SmallVector<mlir::Operation *>
postponeUpdates(llvm::ArrayRef<mlir::Operation *> calls, int64_t bytes);

} // namespace ckopt

#endif // CKOPT_LIB_MEMORYPLAN_LATEUPDATES_H
