//===- Windows.cpp - polishes the best plan by trades ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: constructions find the basin of a good plan and leave it untidy
// (replays earlier than needed, dropped twice where once would do), and hot
// annealing leaves the basin before it tidies up. Method: iterated local search
// (Lourenco, Martin, Stuetzle 2003). Annealing at a few percent of a node's
// mean cost, with bytes over the budget priced softly, so that one value can
// take another's place by way of a short excess. Then trades, each a compound
// move that annealing does not find, in batches from one sequence; each is
// annealed as above and the best goes on.
// Guarantee: valid sequences only, never a worse answer. The trades of a batch
// draw numbers and work of their own and are compared in order: the outcome is
// the same on any number of threads. A trade costs O(values) for each place
// over the budget, and the annealing after it a number of moves in proportion
// to the nodes.
//
//===----------------------------------------------------------------------===//
#include "Construct/Construct.h"
#include "Improve/Improve.h"
#include "Improve/WindowsTrade.h"

#include <algorithm>
#include <thread>

using namespace ckopt::planner;

namespace {

constexpr int batchSize = 8;

class Polisher {
public:
  explicit Polisher(StrategyContext &context)
      : context(context), problem(context.problem), tables(problem),
        mean(std::max(problem.baseCost, 1e-300) / problem.numNodes),
        goal{context.budget, context.fixedOrder, false,
             0.1 * std::max(problem.baseCost, 1e-300) /
                 std::max<double>(1, double(context.budget))},
        prices(pricesByNode(context)) {}
  void run(const Candidate &start);

private:
  struct Outcome {
    std::vector<NodeId> steps;
    double cost = 0;
    bool fits = false;
  };
  /// One thread's part: a sequence to start from, traded if `trade`.
  Outcome attempt(const Outcome &from, bool trade, int64_t moves, uint64_t salt,
                  Deadline &deadline) const;
  bool trade(Trader &trader, const Outcome &from, Random &random) const;
  /// Runs a batch from one sequence; its best that fits, and is not the start
  /// itself, is returned.
  Outcome runBatch(const Outcome &from, bool trade, int64_t moves);

  StrategyContext &context;
  const Problem &problem;
  AnnealingTables tables;
  double mean;
  AnnealingGoal goal;
  std::vector<double> prices;
  Outcome best;
  uint64_t salt = 0;
};

/// Keeps one or two values that are made again, or lets go of one or two that
/// stay, and meets the budget anew.
bool Polisher::trade(Trader &trader, const Outcome &from,
                     Random &random) const {
  trader.assign(from.steps);
  bool any = false;
  int count = 1 + (random.below(3) == 0);
  if (random.below(5) < 2) {
    for (int i = 0; i < 200 && count > 0; ++i)
      if (trader.drop(random.below(problem.numValues))) {
        --count;
        any = true;
      }
  } else {
    std::vector<int32_t> seen(problem.numNodes, 0);
    std::vector<std::pair<NodeId, int32_t>> again;
    for (NodeId n : from.steps)
      if (seen[n]++ > 0)
        again.push_back({n, seen[n] - 1});
    for (; count > 0 && !again.empty(); --count) {
      auto [node, run] = again[random.below(int32_t(again.size()))];
      any |= trader.keep(node, run);
    }
  }
  return any && trader.repair(2, best.cost + 4 * mean, random);
}

Polisher::Outcome Polisher::attempt(const Outcome &from, bool trades,
                                    int64_t moves, uint64_t salt,
                                    Deadline &deadline) const {
  std::vector<NodeId> start = from.steps;
  uint64_t seed = context.seed * 1000003 + salt;
  if (trades) {
    Random random(seed);
    Trader trader(problem, context.budget, context.fixedOrder);
    bool traded = trade(trader, from, random);
    deadline.spend(trader.takeWork());
    if (!traded)
      return {};
    start =
        fillReplays(problem, trader.steps(), context.budget, prices, deadline);
  }
  Annealer annealer(problem, tables, goal, start, seed);
  // Some cooler, some hotter.
  double hot = mean * (salt % 2 ? 0.06 : 0.03);
  annealer.run(moves, hot, mean * 0.002, deadline);
  return {annealer.best(), annealer.bestCost(),
          annealer.bestPeak() <= context.budget};
}

Polisher::Outcome Polisher::runBatch(const Outcome &from, bool trades,
                                     int64_t moves) {
  std::vector<Outcome> outcomes(batchSize);
  std::vector<Deadline> parts(
      batchSize,
      context.deadline.part(context.deadline.unitsLeft() /
                            (context.deadline.hasWorkLimit() ? batchSize : 1)));
  int threads = std::clamp(context.threads, 1, batchSize);
  auto work = [&](int first) {
    for (int i = first; i < batchSize; i += threads)
      outcomes[i] = attempt(from, trades, moves, salt + i, parts[i]);
  };
  std::vector<std::thread> workers;
  for (int t = 1; t < threads; ++t)
    workers.emplace_back(work, t);
  work(0);
  for (std::thread &worker : workers)
    worker.join();
  salt += batchSize;
  Outcome result;
  for (int i = 0; i < batchSize; ++i) {
    context.deadline.spend(parts[i].spent());
    if (outcomes[i].fits && outcomes[i].steps != from.steps &&
        (!result.fits || outcomes[i].cost < result.cost))
      result = std::move(outcomes[i]);
  }
  return result;
}

void Polisher::run(const Candidate &start) {
  best = {start.steps, start.cost, true};
  // About three seconds on one core at an effort of one.
  int64_t size = problem.numNodes;
  int64_t moves = std::clamp<int64_t>(170 * size, 2000, 300000);
  // Small graphs are asked about by the thousand, and soon have nothing to
  // gain.
  int64_t total = std::min<int64_t>(9000000, 75 * size * size);
  int64_t batches =
      int64_t(context.effort *
              double(std::clamp<int64_t>(total / moves / batchSize, 2, 24)));
  Outcome current = best;
  int stale = 0;
  for (int64_t b = 0; b <= batches && !context.deadline.passed(); ++b) {
    Outcome next = runBatch(current, b > 0, b > 0 ? moves : 4 * moves);
    if (next.fits && next.cost < best.cost * (1 - 1e-12)) {
      context.report(next.steps);
      best = next;
      stale = 0;
    } else {
      ++stale;
    }
    // Goes on from the neighbour, for a while even if it costs more.
    if (next.fits && stale % 5 != 0)
      current = std::move(next);
    else
      current = best;
    if (best.cost <= problem.baseCost)
      return;
  }
}

} // namespace

void ckopt::planner::runWindows(StrategyContext &context) {
  const Candidate *start = nullptr;
  for (const Candidate &candidate : context.known)
    if (candidate.peak <= context.budget &&
        (!start || candidate.cost < start->cost))
      start = &candidate;
  if (!start || context.effort < 0.05 || context.problem.numNodes < 20 ||
      context.problem.numNodes > mostWindowsNodes ||
      start->cost <= context.problem.baseCost)
    return;
  // Reporting may move what is known.
  Candidate copy = *start;
  Polisher(context).run(copy);
}
