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

/// How often the body runs, if that is known when compiling.
std::optional<double> getTripCount(mlir::LoopLikeOpInterface loop);

/// Whether the op, or one inside of it, runs a body an unknown number of times
/// and `known` has no price for it.
bool runsUnknownTimes(mlir::Operation *op,
                      llvm::function_ref<bool(mlir::Operation *)> known);

/// Whether the op, or one inside of it, may run for ever: loops without an
/// induction variable, circles of blocks, calls.
bool mayNotEnd(mlir::Operation *op);

} // namespace ckopt

#endif // CKOPT_LIB_ANALYSIS_LOOPS_H
