//===- StateSearch.h - the cheapest way through states ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The truth about small graphs that tests compare bounds and plans with: a
// search over states, where a state says which nodes ran and which copies are
// resident. It knows the whole model of ckopt-graph/1.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_PLANNER_STATESEARCH_H
#define CKOPT_UNITTESTS_PLANNER_STATESEARCH_H

#include "Model/Deadline.h"
#include "Model/Problem.h"

namespace ckopt::planner::test {

struct ExactResult {
  enum Kind : uint8_t {
    Optimal,    ///< `steps` are the best of all within the budget
    Infeasible, ///< no plan fits
    GaveUp,     ///< a limit was reached, or the graph is too large to encode
  };
  Kind kind = GaveUp;
  std::vector<NodeId> steps;
  double cost = 0;       ///< of the steps
  int64_t leastPeak = 0; ///< their load (aligned bytes)
};

/// Finds the cheapest plan whose load (aligned) is within `budget`, over all
/// orders, or over those whose first runs follow the program order.
/// `stateLimit` bounds the memory (about 200 bytes a state).
ExactResult exactSearch(const Problem &problem, int64_t budget, bool fixedOrder,
                        Deadline &deadline, size_t stateLimit = 4000000);

/// Finds the plan of the smallest load, at whatever cost. `low` is a proven
/// bound on it, `known` any valid steps.
ExactResult exactLeastPeak(const Problem &problem, bool fixedOrder, int64_t low,
                           const std::vector<NodeId> &known, Deadline &deadline,
                           size_t stateLimit = 4000000);

} // namespace ckopt::planner::test

#endif // CKOPT_UNITTESTS_PLANNER_STATESEARCH_H
