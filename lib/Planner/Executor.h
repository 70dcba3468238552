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
  /// Score of a candidate: cost^costPower / (bytes^bytesPower *
  /// distance^distancePower); the least goes first.
  double costPower = 1, bytesPower = 1, distancePower = 1;
  /// By value (storage): let go of it after each use that is further than
  /// `near` steps from the next one. Empty: none.
  std::vector<char> drop;
  int32_t near = 0;
  /// By value: keep it even when no step of the order needs it any more, since
  /// replays start from it. Empty: none.
  std::vector<char> hold;
};

/// Steps that run `order` and recompute what was let go of; nothing if a value
/// that was let go of cannot be made again. The load may still pass the budget
/// (simulate() says).
std::optional<std::vector<NodeId>> execute(const Problem &problem,
                                           const std::vector<NodeId> &order,
                                           const ExecutorOptions &options);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_EXECUTOR_H
