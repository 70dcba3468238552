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

/// Settings of the executor, which decides what to evict.
struct ExecutorOptions {
  /// Counts the work, and ends the run when it has passed. May be null.
  Deadline *deadline = nullptr;
  /// Bytes; the executor evicts while the load would exceed them.
  int64_t budget = 0;
  /// Give up once the steps cost more than this (0: no limit).
  double costLimit = 0;
  /// Score of a candidate: cost^costPower / (bytes^bytesPower *
  /// distance^distancePower); the smallest is evicted first.
  double costPower = 1, bytesPower = 1, distancePower = 1;
  /// Sums of the prices of a byte over the positions before each position of
  /// the order. A storage is evicted if keeping it to its next use costs more
  /// than making it again. Empty: no prices.
  std::vector<double> priceSums;
  /// By storage: positions at which replays read it in an earlier run, in
  /// addition to the order's own uses. Empty: none.
  std::vector<std::vector<int32_t>> replayUses;
  /// Checkpoints in levels, by storage: a storage whose next use lies after
  /// `turn` stays from position `keepFrom` on, and is evicted after each use
  /// before. Storages that the order no longer needs also stay up to position
  /// `anchor`, since replays start from them (-1: they do not). Empty: no such
  /// plan.
  std::vector<int32_t> keepFrom, anchor;
  int32_t turn = 0;
  /// A storage that its order needs again within this many positions always
  /// stays.
  int32_t near = 1;
};

/// Observations of a run, for the next one.
struct ExecutorReport {
  /// By position of the order: the largest load since the position before.
  std::vector<int64_t> load;
  /// Has the form of ExecutorOptions::replayUses.
  std::vector<std::vector<int32_t>> replayUses;
};

/// Returns steps that run `order` and recompute evicted values; nothing if an
/// evicted value cannot be made again. The load may still exceed the budget
/// (simulate() tells).
std::optional<std::vector<NodeId>> execute(const Problem &problem,
                                           const std::vector<NodeId> &order,
                                           const ExecutorOptions &options,
                                           ExecutorReport *report = nullptr);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_CONSTRUCT_EXECUTOR_H
