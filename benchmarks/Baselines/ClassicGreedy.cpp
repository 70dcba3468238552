//===- ClassicGreedy.cpp - greedy by bytes freed --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objective: a plan whose load is within the budget, in program order. Method:
// eviction as in XLA's HloRematerialization: walk the schedule with a memory
// tracker, and if the next step would exceed the limit, evict the value that
// frees the most bytes until its next use; the time to compute it again does
// not count (the score is limit / bytes freed). An evicted value is made again
// just before its next use, from resident values, or recursively. As in XLA,
// the limit is not guaranteed; unlike in XLA, the report says if it is not met.
// Gives up: where nothing that may be made again is left to evict. A run takes
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
