//===- Exact.cpp - the strategy of proof ----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the exact state search (ExactSearch.cpp) within limits that suit the
// graph's size and states what it proved, which is a bound even where it gives
// up.
//
//===----------------------------------------------------------------------===//
#include "Exact/ExactSearch.h"

#include <limits>

using namespace ckopt::planner;

/// Beyond it states rarely come to an end.
static constexpr int32_t largest = 60;

void ckopt::planner::runExact(StrategyContext &context) {
  const Problem &problem = context.problem;
  if (problem.numNodes > largest)
    return;
  bool small = problem.numNodes <= 12;
  Deadline part = context.deadline.part(
      small ? 0 : int64_t(2e7 * std::min(1.0, context.effort)));
  ExactResult result = exactSearch(problem, context.budget, context.fixedOrder,
                                   part, small ? 4000000 : 400000);
  context.deadline.spend(part.spent());
  if (result.kind == ExactResult::Infeasible) {
    context.prove(std::numeric_limits<double>::infinity(), context.fixedOrder);
    return;
  }
  if (result.kind == ExactResult::Optimal)
    context.report(result.steps);
  context.prove(result.cost, context.fixedOrder);
}
