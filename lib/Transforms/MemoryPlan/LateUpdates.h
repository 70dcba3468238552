//===- LateUpdates.h - updates that wait for others -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRANSFORMS_MEMORYPLAN_LATEUPDATES_H
#define CKOPT_LIB_TRANSFORMS_MEMORYPLAN_LATEUPDATES_H

#include "ckopt/Analysis/FlatParts.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"

namespace ckopt {

/// Returns the calls of a function in an order in which small updates come as
/// late, and as many of them together, as `bytes` for results and workspaces
/// allow, by the sum of what is alive. Whether they can be packed is not known.
/// Deterministic; linear in calls and operands.
llvm::SmallVector<mlir::Operation *>
postponeUpdates(llvm::ArrayRef<mlir::Operation *> calls, int64_t bytes);

} // namespace ckopt

#endif // CKOPT_LIB_TRANSFORMS_MEMORYPLAN_LATEUPDATES_H
