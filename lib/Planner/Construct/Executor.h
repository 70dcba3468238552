//===- Executor.h - runs an order, recomputing what is gone -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_CONSTRUCT_EXECUTOR_H
#define CKOPT_LIB_PLANNER_CONSTRUCT_EXECUTOR_H

#include "Model/Deadline.h"
#include "Model/Problem.h"

#include <optional>

namespace ckopt::planner {

/// How the executor chooses what to let go of.
struct ExecutorOptions {
  /// Counts the work, and ends the run where it has passed. May be null.
  Deadline *deadline = nullptr;
  /// Evict while the load would pass it (bytes).
  int64_t budget = 0;
  /// Give up once the steps cost more than this (0: no limit).
  double costLimit = 0;
  /// Score of a candidate: cost^costPower / (bytes^bytesPower *
  /// distance^distancePower); the least goes first.
  double costPower = 1, bytesPower = 1, distancePower = 1;
  /// Sums of the prices of a byte over the positions before each position of
  /// the order. A storage is let go of where keeping it to its next use costs
  /// more than making it again. Empty: no prices.
  std::vector<double> priceSums;
  /// By storage: positions at which replays read it in an earlier run, beside
  /// the order's own uses. Empty: none.
  std::vector<std::vector<int32_t>> replayUses;
  /// Checkpoints in levels: a storage whose next use lies behind `turn` stays
  /// from position `keepFrom` on, and is let go of after each use before; what
  /// no step of the order needs any more stays, likewise, up to position
  /// `anchor`, since replays start from it (-1: they do not). By storage.
  /// Empty: no such plan.
  std::vector<int32_t> keepFrom, anchor;
  int32_t turn = 0;
  /// What its order needs again within so many positions always stays.
  int32_t near = 1;
};

/// What a run observed, for the next one.
struct ExecutorReport {
  /// The load by position of the order, the largest since the position before.
  std::vector<int64_t> load;
  /// As ExecutorOptions::replayUses.
  std::vector<std::vector<int32_t>> replayUses;
};

/// Steps that run `order` and recompute what was let go of; nothing if a value
/// that was let go of cannot be made again. The load may still pass the budget
/// (simulate() says).
std::optional<std::vector<NodeId>> execute(const Problem &problem,
                                           const std::vector<NodeId> &order,
                                           const ExecutorOptions &options,
                                           ExecutorReport *report = nullptr);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_CONSTRUCT_EXECUTOR_H
