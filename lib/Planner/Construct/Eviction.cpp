//===- Eviction.cpp - plans by eviction -----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objective: the cheapest plan within the budget, fast; finds one more often
// than the other constructions. Method: runs the executor (offline DTR, see
// Executor.cpp) over the best orders with a few settings of its score: cost,
// bytes and distance weighed differently suit different graphs, and a target
// somewhat below the budget sometimes gives a cheaper plan than the budget
// itself, since what is evicted early is evicted once. Gives up: a run that
// costs more than the best one (or four times the graph); all after a fixed
// number of runs. Complexity: a run is near-linear in its steps.
//
//===----------------------------------------------------------------------===//
#include "Construct/Construct.h"
#include "Construct/Executor.h"

#include <algorithm>

using namespace ckopt::planner;

/// Targets, as parts of the budget.
static constexpr double slacks[] = {1.0, 0.97, 0.9};

void ckopt::planner::runEviction(StrategyContext &context) {
  // Powers of cost, bytes and distance in the score of DTR, best first: the
  // published one, then those that were best on some graph.
  struct Setting {
    double cost, bytes, distance;
  };
  static const Setting settings[] = {{1, 1, 1}, {1, 1, 0.5},   {0.5, 1, 1},
                                     {1, 1, 0}, {0.5, 1, 0.5}, {1, 0.5, 1},
                                     {0, 1, 1}, {0, 0, 1}};
  const Problem &problem = context.problem;
  bool quick = isQuick(context.effort), large = problem.numNodes > largeGraph,
       huge = problem.numNodes > hugeGraph;
  size_t orders =
      std::min<size_t>(context.orders.size(), large || quick ? 2 : 4);
  size_t used = huge ? 2 : quick ? 3 : large ? 4 : std::size(settings);
  double limit = mostReplays * problem.baseCost;
  std::vector<double> price = pricesByNode(context);
  for (size_t k = 0; k < orders; ++k)
    for (size_t s = 0; s < used; ++s)
      for (double slack : slacks) {
        if (context.deadline.passed() ||
            (huge && limit < mostReplays * problem.baseCost))
          return;
        ExecutorOptions options;
        options.deadline = &context.deadline;
        options.budget = int64_t(double(context.budget) * slack);
        options.costLimit = limit;
        options.costPower = settings[s].cost;
        options.bytesPower = settings[s].bytes;
        options.distancePower = settings[s].distance;
        auto steps = execute(problem, context.orders[k], options);
        if (!steps)
          break; // a smaller target is even harder
        double cost = 0;
        for (NodeId n : *steps)
          cost += problem.cost[n];
        if (reportFilled(context, std::move(*steps), price))
          limit = std::min(limit, cost);
      }
}
