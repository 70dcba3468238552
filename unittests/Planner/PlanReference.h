//===- PlanReference.h - exhaustive search over small graphs ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A reference for planner tests: the least cost within a budget by the
// definition of ckopt-graph/1, and so which budgets are feasible at all. Shares
// nothing with lib/Planner but the graph.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_PLANNER_PLANREFERENCE_H
#define CKOPT_UNITTESTS_PLANNER_PLANREFERENCE_H

#include "ckopt/Planner/Graph.h"

#include <vector>

namespace ckopt::planner::test {

class PlanReference {
public:
  /// At most 16 values and 16 nodes; `programOrder`: first runs follow it.
  PlanReference(const Graph &graph, bool programOrder)
      : graph(graph), programOrder(programOrder) {}

  /// Least cost within the budget; negative: infeasible. The load counts sizes
  /// rounded up to the alignment.
  double leastCost(int64_t budget) const;

private:
  Graph graph;
  bool programOrder;
};

} // namespace ckopt::planner::test

#endif // CKOPT_UNITTESTS_PLANNER_PLANREFERENCE_H
