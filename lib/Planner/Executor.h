//===- Executor.h - runs an order, recomputing what is gone -----*- C++ -*-===//
#ifndef CKOPT_LIB_PLANNER_EXECUTOR_H
#define CKOPT_LIB_PLANNER_EXECUTOR_H

#include "Problem.h"

#include <optional>

namespace ckopt::planner {

/// How the executor chooses what to let go of.
struct ExecutorOptions {
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
  /// By value (storage): let go of it after each use that is further than
  /// `near` steps from the next one. Empty: none.
  std::vector<char> drop;
  int32_t near = 0;
  /// By value: keep it even when no step of the order needs it any more, since
  /// replays start from it. Empty: none.
  std::vector<char> hold;
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

#endif // CKOPT_LIB_PLANNER_EXECUTOR_H
