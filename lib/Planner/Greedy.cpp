//===- Greedy.cpp - plans by eviction -------------------------------------===//
//
// Runs the executor (offline DTR, see Executor.cpp) over the best orders with a
// few settings of its score: cost, bytes and distance weighed differently suit
// different graphs, and a target somewhat below the budget sometimes gives a
// cheaper plan than the budget itself, since what is evicted early is evicted
// once. A run takes time near-linear in the steps.
//
//===----------------------------------------------------------------------===//
#include "Executor.h"
#include "Strategy.h"

#include <algorithm>

using namespace ckopt::planner;

void ckopt::planner::runGreedy(StrategyContext &context) {
  struct Setting {
    double cost, bytes, distance;
  };
  static const Setting settings[] = {{1, 1, 1}, {1, 1, 0.5},   {0.5, 1, 1},
                                     {1, 1, 0}, {0.5, 1, 0.5}, {1, 0.5, 1},
                                     {0, 1, 1}, {0, 0, 1}};
  size_t orders = std::min<size_t>(context.orders.size(),
                                   context.problem.numNodes > 4000 ? 2 : 4);
  size_t used = context.problem.numNodes > 4000 ? 4 : std::size(settings);
  for (size_t k = 0; k < orders; ++k)
    for (size_t s = 0; s < used; ++s)
      for (double slack : {1.0, 0.97, 0.9}) {
        if (context.deadline.passed())
          return;
        ExecutorOptions options;
        options.budget = int64_t(double(context.budget) * slack);
        options.costPower = settings[s].cost;
        options.bytesPower = settings[s].bytes;
        options.distancePower = settings[s].distance;
        if (auto steps = execute(context.problem, context.orders[k], options))
          context.report(std::move(*steps));
      }
}
