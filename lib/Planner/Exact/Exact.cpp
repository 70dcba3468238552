//===- Exact.cpp - the strategy of proof ----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objective: the cheapest plan within the budget, in any order, with proof.
// Method: the exact state search (ExactSearch.cpp) within limits that suit the
// graph's size. Gives up: at once beyond 60 nodes, else where the states or the
// work run out; what it proved until then is stated as a bound. Complexity:
// exponential, within these limits.
//
//===----------------------------------------------------------------------===//
#include "Exact/ExactSearch.h"

#include <limits>

using namespace ckopt::planner;

/// Beyond so many nodes states rarely come to an end.
static constexpr int32_t largest = 60;
/// Up to so many they always do, so there is no limit on work.
static constexpr int32_t endsAlways = 12;
/// States that are held (about 200 bytes each), and work: about a second.
static constexpr size_t smallStates = 4000000, states = 400000;
static constexpr double units = 2e7;

void ckopt::planner::runExact(StrategyContext &context) {
  const Problem &problem = context.problem;
  if (problem.numNodes > largest)
    return;
  bool small = problem.numNodes <= endsAlways;
  Deadline part = context.deadline.part(
      small ? 0 : int64_t(units * std::min(1.0, context.effort)));
  ExactResult result = exactSearch(problem, context.budget, context.fixedOrder,
                                   part, small ? smallStates : states);
  context.deadline.spend(part.spent());
  if (result.kind == ExactResult::Infeasible) {
    context.prove(std::numeric_limits<double>::infinity(), context.fixedOrder);
    return;
  }
  if (result.kind == ExactResult::Optimal)
    context.report(result.steps);
  context.prove(result.cost, context.fixedOrder);
}
