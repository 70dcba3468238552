//===- Prices.cpp - plans from the prices of bytes ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objective: the cheapest plan of an order within the budget, near the proven
// bound. Method: the gap relaxation (Bounds.cpp) has a price for a byte at each
// step; at its best prices the relaxation keeps a value between two uses
// exactly where that is worth what making it again costs. Here those decisions
// are taken one by one while the order runs, where it is known which inputs are
// there, so that the cost of a replay is seen whole and shared replays are paid
// once. The prices are then raised where the load passes the budget and lowered
// where it does not (Lagrangian relaxation with primal feedback); each round's
// decisions are also run with eviction, which makes them fit. Gives up: where
// the relaxation has no price (nothing need be dropped), where a round costs
// four times the graph, and after a fixed number of rounds. Complexity: linear
// in steps a round.
//
//===----------------------------------------------------------------------===//
#include "Construct/Construct.h"
#include "Construct/Executor.h"
#include "ckopt/Planner/Bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace ckopt::planner;

namespace {

/// Where prices start, as multiples of the relaxation's: it does not see what
/// replays need while they run, so budgets that are tight need higher ones.
constexpr double scales[] = {1.0, 1.5, 2.5, 5.0};
/// A step of the prices: by how far a load is off, within bounds; downwards
/// with half the rate, since what no longer fits costs more than what is left
/// unused. Steps become smaller, so that prices come to rest.
constexpr double mostUnder = -0.5, mostOver = 1.0, fallRate = 0.5;
constexpr double firstRate = 0.6, rateDecay = 0.1;
/// Loads so many times the budget say nothing about what eviction finds.
constexpr int64_t farOver = 3;
/// Filling (ReplayFill.cpp) gains up to about this much on the best plan.
constexpr double worthFilling = 1.02;

class PriceSearch {
public:
  PriceSearch(StrategyContext &context, const std::vector<NodeId> &order)
      : context(context), problem(context.problem), order(order) {}
  void run(int rounds);

private:
  void setSums(ExecutorOptions &options, double scale) const;
  void adjust(const ExecutorReport &seen, double rate);
  bool tryPrices(ExecutorOptions &options, double scale, ExecutorReport &seen);

  StrategyContext &context;
  const Problem &problem;
  const std::vector<NodeId> &order;
  std::vector<double> price;
  std::vector<double> byNode; ///< the relaxation's prices
  double limit = 0;           ///< cost of the best plan found here
};

void PriceSearch::setSums(ExecutorOptions &options, double scale) const {
  options.priceSums.assign(problem.numNodes + 1, 0);
  for (int32_t p = 0; p < problem.numNodes; ++p)
    options.priceSums[p + 1] = options.priceSums[p] + scale * price[p];
}

void PriceSearch::adjust(const ExecutorReport &seen, double rate) {
  double mean = 0;
  for (double p : price)
    mean += p;
  mean /= double(price.size());
  for (int32_t p = 0; p < problem.numNodes; ++p) {
    double over = (double(seen.load[p]) - double(context.budget)) /
                  double(context.budget);
    over = std::clamp(over, mostUnder, mostOver);
    if (over > 0)
      price[p] += rate * over * (mean + price[p]);
    else
      price[p] *= 1 + rate * fallRate * over;
  }
}

/// Runs once with prices alone, to learn the load that they lead to, and once
/// with eviction as well.
bool PriceSearch::tryPrices(ExecutorOptions &options, double scale,
                            ExecutorReport &seen) {
  setSums(options, scale);
  options.costLimit = mostReplays * problem.baseCost;
  options.budget = noBudget;
  auto steps = execute(problem, order, options, &seen);
  if (!steps)
    return false;
  options.replayUses = seen.replayUses;
  int64_t highest = *std::max_element(seen.load.begin(), seen.load.end());
  if (reportFilled(context, std::move(*steps), byNode) ||
      highest > context.budget * farOver)
    return true;
  options.budget = context.budget;
  options.costLimit = limit;
  if (auto fitted = execute(problem, order, options)) {
    double cost = 0;
    for (NodeId n : *fitted)
      cost += problem.cost[n];
    if (reportFilled(context, std::move(*fitted), byNode))
      limit = std::min(limit, cost * worthFilling);
  }
  return true;
}

void PriceSearch::run(int rounds) {
  limit = mostReplays * problem.baseCost;
  orderBound(problem.graph, order, context.budget, &price);
  price.resize(problem.numNodes);
  double sum = 0;
  for (double p : price)
    sum += p;
  if (!(sum > 0))
    return;
  std::vector<double> start = price;
  byNode.resize(problem.numNodes);
  for (int32_t p = 0; p < problem.numNodes; ++p)
    byNode[order[p]] = price[p];
  for (double scale : scales) {
    price = start;
    ExecutorOptions options;
    options.deadline = &context.deadline;
    ExecutorReport seen;
    for (int round = 0; round < rounds; ++round) {
      if (context.deadline.passed() || !tryPrices(options, scale, seen))
        break;
      adjust(seen, firstRate / (1 + rateDecay * round));
    }
  }
}

} // namespace

void ckopt::planner::runPrices(StrategyContext &context) {
  if (context.problem.numNodes == 0)
    return;
  size_t orders = std::min<size_t>(
      context.orders.size(), context.problem.numNodes > largeGraph ? 1 : 3);
  // Prices settle in about two dozen rounds; most of the gain is in the first.
  int rounds = isQuick(context.effort)                 ? 4
               : context.problem.numNodes > hugeGraph  ? 6
               : context.problem.numNodes > largeGraph ? 10
                                                       : 24;
  for (size_t k = 0; k < orders; ++k)
    PriceSearch(context, context.orders[k]).run(rounds);
}
