//===- BoundsResidency.h - least peak to have values resident ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_BOUNDS_BOUNDSRESIDENCY_H
#define CKOPT_LIB_PLANNER_BOUNDS_BOUNDSRESIDENCY_H

#include "Bounds/GapProblem.h"

#include <functional>

namespace ckopt::planner {

/// Proves how high the load must have risen, in any plan, by the time a set of
/// storages is resident.
class ResidencySearch {
public:
  explicit ResidencySearch(const Problem &problem);

  /// Returns the load while `node` runs and the storages of `kept` (ascending,
  /// not persistent) are resident and needed later, less the bytes that results
  /// could be written over.
  int64_t loadAt(NodeId node, const std::vector<ValueId> &kept) const;
  /// Returns a bound, not below `atLeast`, on the load at some time before all
  /// of `set` (ascending) is resident. The bound is exact, except for order
  /// constraints, unless the search ends after `units` of work. Adds its work
  /// to `work`. Stops once the bound reaches `enough`.
  int64_t leastPeak(const std::vector<ValueId> &set, int64_t atLeast,
                    int64_t enough, int64_t units, int64_t &work);
  /// Returns the storages that the node reads, without persistent ones;
  /// ascending.
  const std::vector<ValueId> &needs(NodeId node) const { return reads[node]; }
  /// Sets which nodes come before which in every order, and, by node, the
  /// storages that are resident while it first runs because they cannot be made
  /// again (ascending).
  void setOrder(std::function<bool(NodeId, NodeId)> isBefore,
                std::vector<std::vector<ValueId>> waitingAt) {
    before = std::move(isBefore);
    waiting = std::move(waitingAt);
  }
  /// Records a proven bound on the load by the time the node's results exist.
  void learn(NodeId node, int64_t bound);

private:
  struct State {
    int64_t key; ///< bound on the load of all plans through this state
    std::vector<ValueId> set;
  };
  bool expand(const State &state, int64_t &work,
              std::vector<State> &children) const;
  int64_t bytesOf(const std::vector<ValueId> &set) const;

  const Problem &problem;
  std::vector<std::vector<ValueId>> reads, makes;
  std::vector<std::vector<std::pair<ValueId, ValueId>>> pairs;
  std::function<bool(NodeId, NodeId)> before;
  std::vector<std::vector<ValueId>> waiting;
  std::vector<int64_t> single; ///< by storage: bound for it alone
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_BOUNDS_BOUNDSRESIDENCY_H
