//===- ExactSearch.h - plans of small graphs, with proof --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The exact searches of this folder: planning as a search over states, where a
// state says which nodes ran and which copies are resident.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_EXACT_EXACTSEARCH_H
#define CKOPT_LIB_PLANNER_EXACT_EXACTSEARCH_H

#include "Model/Strategy.h"

namespace ckopt::planner {

struct ExactResult {
  enum Kind : uint8_t {
    Optimal,    ///< `steps` have the least cost of all plans within the budget
    Infeasible, ///< no plan fits
    GaveUp,     ///< a limit was reached, or the graph is too large to encode
  };
  Kind kind = GaveUp;
  std::vector<NodeId> steps;
  /// Optimal: the cost of the steps. GaveUp: a lower bound of the cost of plans
  /// within the budget.
  double cost = 0;
  /// For exactLeastPeak(): a proven lower bound of the load of all plans
  /// (aligned bytes); the load of `steps` if kind is Optimal.
  int64_t leastPeak = 0;

  bool proven() const { return kind != GaveUp; }
};

/// Strategy "exact". Objective: the cheapest plan in any order, and a proof.
/// Method: exactSearch() within limits that suit the graph's size. Gives up
/// above 60 nodes; at its limits it states the bound proven so far.
void runExact(StrategyContext &context);

/// Finds the cheapest plan whose load (aligned) is within `budget`, over all
/// orders, or over those whose first runs follow the program order. It is exact
/// for the whole model of ckopt-graph/1. `stateLimit` bounds the memory (about
/// 100 bytes a state).
ExactResult exactSearch(const Problem &problem, int64_t budget, bool fixedOrder,
                        Deadline &deadline, size_t stateLimit = 4000000);

/// Finds the plan of the smallest load, at whatever cost. `low` is a proven
/// bound on it, `known` any valid steps (they are returned if nothing is
/// smaller). If a limit is reached, kind is GaveUp, `steps` are the smallest
/// found and `leastPeak` is the best bound proven so far.
ExactResult exactLeastPeak(const Problem &problem, bool fixedOrder, int64_t low,
                           const std::vector<NodeId> &known, Deadline &deadline,
                           size_t stateLimit = 4000000);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_EXACT_EXACTSEARCH_H
