//===- ClassicGreedy.cpp - greedy by bytes freed --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// As XLA's HloRematerialization: walk the schedule with a memory tracker, and
// where the next step would pass the limit let go of what frees the most bytes
// until its next use; the time to compute it again is no part of the score
// (its cost is limit / bytes freed). What is let go of is made again just
// before its next use, from what is there, or recursively. The limit is not
// guaranteed, as there; unlike there, it is reported as not met. A run takes
// time near-linear in the steps.
//
//===----------------------------------------------------------------------===//
#include "Baselines/Classic.h"
#include "Construct/Executor.h"

#include <algorithm>

using namespace ckopt::planner;

void ckopt::planner::runByBytes(StrategyContext &context) {
  size_t orders = std::min<size_t>(context.orders.size(), 2);
  for (size_t k = 0; k < orders; ++k) {
    ExecutorOptions options;
    options.deadline = &context.deadline;
    options.budget = context.budget;
    options.costLimit = 20 * context.problem.baseCost;
    options.costPower = options.distancePower = 0;
    if (auto steps = execute(context.problem, context.orders[k], options))
      context.report(std::move(*steps));
  }
}
