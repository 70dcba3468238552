//===- MemoryTimeline.h - live bytes by step and kind -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_ANALYSIS_MEMORYTIMELINE_H
#define CKOPT_ANALYSIS_MEMORYTIMELINE_H

#include "ckopt/Analysis/CostModel.h"
#include "ckopt/Support/Timeline.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ckopt {

/// Returns the live bytes of a function in its present order, by kind: one
/// entry for each kernel call. Works before and after `remat` and
/// `plan-memory`; after it, `plannedPeak` is the arena's size. `budget` 0:
/// none.
TimelinePanel buildTimeline(mlir::func::FuncOp function, llvm::StringRef title,
                            int64_t budget, CostModel &costs);

/// Bytes that are live over a part of a step.
struct LiveBytes {
  mlir::Operation *maker; ///< the call that makes or needs them; null: argument
  int64_t first, last;    ///< kernel calls of the step
  MemoryKind kind;
  int64_t bytes;
};

/// Returns the values that are live when the function's memory is fullest.
std::vector<LiveBytes> getLiveAtPeak(mlir::func::FuncOp function);

} // namespace ckopt

#endif // CKOPT_ANALYSIS_MEMORYTIMELINE_H
