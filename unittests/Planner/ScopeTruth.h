//===- ScopeTruth.h - whether files of plans tell the truth -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads what a ckopt-plan/1 text states, and compares it with an exhaustive
// search over the plans that the text says it speaks of.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_PLANNER_SCOPETRUTH_H
#define CKOPT_UNITTESTS_PLANNER_SCOPETRUTH_H

#include "PlanReference.h"
#include "ckopt/Planner/GraphJson.h"
#include "ckopt/Planner/PlanCheck.h"
#include "ckopt/Planner/Simulator.h"

#include <gtest/gtest.h>

namespace ckopt::planner::test {

class ScopeTruth {
public:
  /// At most 16 values and 16 nodes. Statements under a policy are compared
  /// with the plans of `obeying`, which applyPolicy() made.
  explicit ScopeTruth(const Graph &graph, const Graph *obeying = nullptr)
      : graph(graph), obeying(obeying ? *obeying : graph) {}

  /// Least cost within the budget of plans in the scope; negative: none fits.
  double leastCost(Scope scope, int64_t budget) const {
    Graph asked = scope.has(Restriction::Policy) ? obeying : graph;
    if (scope.has(Restriction::OrderOnly))
      for (Node &node : asked.nodes)
        node.recompute = false;
    return PlanReference(asked, scope.has(Restriction::FixedOrder))
        .leastCost(budget);
  }

  /// Expects every statement of a plan's text to hold, `asked` to be the plans
  /// that it says it speaks of, and `--check` to accept it.
  void expectTrue(const std::string &text, Scope asked) const {
    SCOPED_TRACE(text);
    std::string error;
    auto file = parsePlan(text, graph, error);
    ASSERT_TRUE(file) << error;
    const Plan &plan = file->plan;
    ASSERT_EQ(plan.scope.names(), asked.names());
    if (plan.provenMinimum > 1)
      ASSERT_LT(leastCost(plan.scope, plan.provenMinimum - 1), 0);
    if (plan.status == Status::Infeasible)
      ASSERT_LT(leastCost(plan.scope, file->budget), 0);
    if (isPlan(plan.status) && file->budget > 0) {
      double free = leastCost(plan.scope.ofCost(), file->budget);
      ASSERT_GE(free, 0);
      ASSERT_LE(plan.lowerBound, free * (1 + 1e-9));
      if (plan.status == Status::Optimal)
        ASSERT_LE(plan.cost, free * (1 + 1e-9));
    }
    CheckedClaims claims = checkPlanFile(graph, *file, file->budget);
    ASSERT_EQ(claims.wrong, "");
  }

private:
  Graph graph, obeying;
};

} // namespace ckopt::planner::test

#endif // CKOPT_UNITTESTS_PLANNER_SCOPETRUTH_H
