//===- GapMilp.cpp - which gaps of an order to drop, exactly --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: the least extra cost of a plan whose first runs follow a given
// order. Method: a mixed integer program over retention gaps (GapModel.h).
// If a solution leaves no possible position for a run, rows for one more
// position are added (logic-based Benders). Guarantee: every plan of the order
// satisfies all rows, so the optimum is a bound for all of them. Gives up: with
// its share of the limits, and then states the bound that the solver has.
//
//===----------------------------------------------------------------------===//
#include "ExactOrder/GapMilp.h"
#include "ExactOrder/GapModel.h"

#include <algorithm>
#include <cmath>

using namespace ckopt::planner;

/// Returns the least difference between costs of solutions; 0 if unknown.
static double stepOfCosts(const Milp &milp) {
  for (double cost : milp.cost)
    if (cost != std::floor(cost) || cost > 1e9)
      return 0;
  return 1;
}

/// If all costs are whole numbers, so are their sums.
static double roundBound(const Problem &problem, double bound) {
  for (double cost : problem.cost)
    if (cost != std::floor(cost) || cost > 1e9)
      return bound;
  double slack = 1e-6 + bound * 1e-9;
  return std::max(bound, std::ceil(bound - slack));
}

GapDecision ckopt::planner::decideGaps(const GapProblem &gaps, int64_t budget,
                                       const GapMilpOptions &options,
                                       Deadline &deadline) {
  GapModel model(gaps, budget);
  GapDecision decision;
  MilpOptions milpOptions;
  milpOptions.treeNodes = options.treeNodes;
  milpOptions.cutoff = options.known;
  // Rough answers show which rows to add; when none are missing, exact answers
  // are worth their time.
  milpOptions.gap = options.roughGap;
  for (int round = 0; round < options.rounds && !deadline.passed(); ++round) {
    model.build();
    milpOptions.step = stepOfCosts(model.program());
    MilpResult found = solveMilp(model.program(), milpOptions, deadline);
    decision.bound =
        std::max(decision.bound, roundBound(gaps.problem, found.bound));
    decision.kind = found.kind;
    if (found.x.empty()) {
      if (milpOptions.gap == 0 || found.kind != MilpResult::CutOff)
        break;
      milpOptions.gap = 0;
      continue;
    }
    decision.value = found.value;
    decision.dropped = model.dropped(found.x);
    if (options.proposed)
      milpOptions.cutoff =
          std::min(milpOptions.cutoff, options.proposed(decision));
    if (decision.bound >= milpOptions.cutoff * (1 - 1e-9))
      break;
    if (!model.refine(found.x)) {
      if (milpOptions.gap == 0 && !model.deepen())
        break;
      milpOptions.gap = 0;
    }
  }
  return decision;
}
