//===- MemoryPlan.h - places tensors in one arena ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// These functions place every tensor of a module's step functions in one arena,
// and check such a placement from the IR only.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_MEMORYPLAN_MEMORYPLAN_H
#define CKOPT_MEMORYPLAN_MEMORYPLAN_H

#include "ckopt/Analysis/Arguments.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace ckopt {

/// Places all functions in one arena and verifies the result. Offsets that
/// `remat` set are kept; other results are packed now. May move makers of new
/// states behind the last readers of the old ones. With `lateUpdates`, updates
/// wait for each other if that takes no more bytes.
mlir::LogicalResult planMemory(llvm::ArrayRef<mlir::func::FuncOp> functions,
                               bool lateUpdates = false);

/// Puts the kernel calls into the given order, and each view before its first
/// reader; removes views without readers.
void orderCalls(mlir::func::FuncOp function,
                llvm::ArrayRef<mlir::Operation *> order);

/// Checks the offsets of a function from its IR only; emits an error at the
/// first call that breaks a rule.
mlir::LogicalResult verifyArena(mlir::func::FuncOp function);

/// Returns the byte offset in the arena of a value of a placed function: an
/// argument, a kernel call's result or a view of one.
int64_t getArenaOffset(mlir::Value value);

} // namespace ckopt

#endif // CKOPT_MEMORYPLAN_MEMORYPLAN_H
