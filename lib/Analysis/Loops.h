//===- Loops.h - how often bodies run, and whether they end -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_ANALYSIS_LOOPS_H
#define CKOPT_LIB_ANALYSIS_LOOPS_H

#include "mlir/IR/Operation.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

#include <optional>

namespace ckopt {

/// Returns how often the body runs, if that is known at compile time.
std::optional<double> getTripCount(mlir::LoopLikeOpInterface loop);

/// Returns whether the op, or an op inside of it, runs a body an unknown number
/// of times and has no cost in `known`.
bool runsUnknownTimes(mlir::Operation *op,
                      llvm::function_ref<bool(mlir::Operation *)> known);

/// Returns whether the op, or an op inside of it, may run for ever: loops
/// without an induction variable, cycles of blocks, calls.
bool mayNotEnd(mlir::Operation *op);

} // namespace ckopt

#endif // CKOPT_LIB_ANALYSIS_LOOPS_H
