//===- LocalSearch.cpp - simulated annealing on the sequence --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objective: the cheapest plan within the budget, or the smallest where none is
// known; order and recomputation are searched together. Method: simulated
// annealing on the sequence of steps as in FastSA (Imanishi et al., NeurIPS
// 2023): put a run in, take one out, move one; with moves that take whole
// replays, with exchanges, and with a penalty for bytes over the budget instead
// of a product of peak and cost. Several chains run side by side: hot ones from
// an order without recomputation, which find the basin, and a cool one from the
// best plan known; then cooler ones polish the best. Guarantee: reports valid
// sequences only. The number of moves depends on the graph's size and the
// effort alone, each chain has its own random numbers and its own share of the
// work, and results are taken in the chains' order: the outcome is the same on
// one thread or several. Gives up: after that number of moves, or at a plan
// without recomputation. Complexity: O(log n) for each operand of a move.
//
//===----------------------------------------------------------------------===//
#include "Improve/Improve.h"
#include "Improve/LocalSearchAnnealer.h"
#include "ckopt/Base/Thread.h"

#include <algorithm>

using namespace ckopt::planner;

namespace {

/// One chain of annealing to run.
struct Chain {
  const std::vector<NodeId> *start;
  int64_t moves;
  Cooling cooling; ///< in mean costs of a node
};

struct Outcome {
  std::vector<NodeId> steps;
  double cost = 0;
  int64_t peak = 0;
  bool cut = false; ///< the time limit was reached
};

/// How much to search.
struct Amount {
  double moves = 0;     ///< of a chain that starts from a good plan
  int64_t hotMoves = 0; ///< of a chain that starts from an order
  int hotChains = 0;
};

class LocalSearch {
public:
  explicit LocalSearch(StrategyContext &context)
      : context(context), problem(context.problem),
        tuning(context.tuning.local), tables(problem),
        goal{context.budget, context.fixedOrder, false,
             tuning.penalty * std::max(problem.baseCost, 1e-300) /
                 std::max<double>(1, double(context.budget))},
        mean(std::max(problem.baseCost, 1e-300) / problem.numNodes) {}
  void run();

private:
  Amount amount(double perMove) const;
  /// Runs chains side by side, reports and keeps their outcomes. Where there is
  /// a clock, takes that share of the time left at most.
  void runStage(const std::vector<Chain> &chains, double timeShare);
  bool better(const Outcome &a, const Outcome &b) const {
    bool fitsA = a.peak <= goal.budget, fitsB = b.peak <= goal.budget;
    if (fitsA != fitsB)
      return fitsA;
    return fitsA && a.cost != b.cost ? a.cost < b.cost : a.peak < b.peak;
  }
  /// Returns whether no improvement is possible.
  bool finished() const {
    return best.peak <= goal.budget && best.cost <= problem.baseCost;
  }

  StrategyContext &context;
  const Problem &problem;
  const LocalTuning &tuning;
  AnnealingTables tables;
  AnnealingGoal goal;
  double mean;
  Outcome best;
  uint64_t salt = 0;
  bool cut = false; ///< the time limit ended a stage
};

void LocalSearch::runStage(const std::vector<Chain> &chains, double timeShare) {
  size_t threads =
      std::min<size_t>(std::max(context.threads, 1), chains.size());
  std::vector<Outcome> outcomes(chains.size());
  int64_t units = context.deadline.unitsLeft() / int64_t(chains.size());
  double turns = double((chains.size() + threads - 1) / threads);
  std::vector<Deadline> parts, rests;
  for (size_t i = 0; i < chains.size(); ++i) {
    double turn = double(i / threads + 1) / turns;
    parts.push_back(
        context.deadline.part(units, timeShare * tuning.hotTime * turn));
    rests.push_back(context.deadline.part(units, timeShare * turn));
  }
  auto runChain = [&](size_t i) {
    const Chain &chain = chains[i];
    Annealer annealer(problem, tables, goal, *chain.start,
                      context.seed * 7919 + salt + i);
    double cold = mean * chain.cooling.cold;
    if (!annealer.run(chain.moves, mean * chain.cooling.hot, cold, parts[i]) &&
        !parts[i].workPassed()) {
      // The time limit was reached while the chain was hot: the rest of the
      // time cools it down.
      outcomes[i].cut = true;
      annealer.run(chain.moves / tuning.coolingDivisor + 1,
                   mean * std::min(chain.cooling.hot, tuning.coolingHeat), cold,
                   rests[i]);
    }
    outcomes[i].steps = annealer.best();
    outcomes[i].cost = annealer.bestCost();
    outcomes[i].peak = annealer.bestPeak();
  };
  // Chains are assigned to threads in turn, so that threads do about the same
  // work.
  auto runShare = [&](size_t first) {
    for (size_t i = first; i < chains.size(); i += threads)
      runChain(i);
  };
  std::vector<ckopt::Thread> workers(threads);
  std::vector<size_t> own{0}; // and those of threads that cannot be had
  for (size_t t = 1; t < threads; ++t)
    if (workers[t].start([&, t] { runShare(t); }) != 0)
      own.push_back(t);
  for (size_t share : own)
    runShare(share);
  for (ckopt::Thread &worker : workers)
    worker.join();
  salt += chains.size();
  for (size_t i = 0; i < chains.size(); ++i) {
    context.deadline.spend(parts[i].spent() + rests[i].spent());
    context.report(outcomes[i].steps);
    cut |= outcomes[i].cut;
    if (best.steps.empty() || better(outcomes[i], best))
      best = std::move(outcomes[i]);
  }
}

/// Hot chains need thousands of moves a node before they are better than the
/// constructions, and the more the longer they are; graphs of a few hundred
/// nodes have several basins, and short chains to find them all.
Amount LocalSearch::amount(double perMove) const {
  double size = problem.numNodes;
  Amount much;
  much.moves = std::min(tuning.mostMoves,
                        tuning.leastMoves + tuning.movesEachNode * size);
  double hot = std::min({tuning.hotMovesEachNode * size, tuning.mostHotMoves,
                         tuning.mostHotWork / size});
  if (hot >= tuning.leastHotMovesEachNode * size) // an even number
    much.hotChains =
        int(std::clamp(tuning.hotChains / size, tuning.leastHotChains,
                       tuning.mostHotChains)) &
        ~1;
  double units =
      perMove * (much.moves * tuning.otherStages + hot * much.hotChains);
  double factor = context.effort;
  if (context.deadline.hasWorkLimit())
    factor = std::min(factor, double(context.deadline.unitsLeft()) / units);
  much.moves *= factor;
  much.hotMoves = std::max<int64_t>(1, int64_t(hot * factor));
  if (double(much.hotMoves) < tuning.leastHot * size)
    much.hotChains = 0;
  return much;
}

void LocalSearch::run() {
  // Start from the cheapest within the budget, else from the one nearest to it.
  for (const Candidate &candidate : context.known) {
    Outcome known{candidate.steps, candidate.cost, candidate.peak, false};
    if (best.steps.empty() || better(known, best))
      best = std::move(known);
  }
  if (best.steps.empty() || finished())
    return;
  const std::vector<NodeId> known = best.steps;
  const std::vector<NodeId> &order =
      context.orders.empty() ? known : context.orders.front();
  Amount much = amount(tuning.usualUnits);
  auto part = [&](double share) {
    return std::max<int64_t>(1, int64_t(much.moves * share));
  };
  bool hot = much.hotChains > 0;
  // A quick look, for whoever has little time; it shows what a move takes.
  int64_t before = context.deadline.spent(),
          looked = 2 * part(tuning.quickShare);
  runStage({{&known, part(tuning.quickShare), tuning.fromPlan},
            {hot ? &order : &known, part(tuning.quickShare),
             hot ? tuning.fromOrder : tuning.polish}},
           tuning.quickTime);
  much = amount(tuning.hotterUnits * double(context.deadline.spent() - before) /
                double(looked));
  hot = much.hotChains > 0;
  const std::vector<NodeId> quick = best.steps;
  std::vector<Chain> chains;
  for (int i = 0; i < much.hotChains; ++i)
    chains.push_back(
        {&order, much.hotMoves, i % 3 == 2 ? tuning.hotter : tuning.hot});
  if (hot && !finished())
    runStage(chains, tuning.hotTimeShare);
  // If the time limit decides, use all of the time.
  for (int round = 0; (cut || round < (hot ? 2 : 1)) && !finished(); ++round) {
    if (context.deadline.passed())
      return;
    const std::vector<NodeId> start = best.steps;
    if (round == 0)
      runStage({{&quick, part(1), tuning.fromPlan},
                {&start, part(hot ? tuning.secondShare : 1),
                 hot ? tuning.fromBest : tuning.polish}},
               hot ? tuning.secondTime : 1);
    else
      runStage({{&start, part(tuning.lastShare), tuning.again},
                {&start, part(tuning.lastShare),
                 hot ? tuning.againHot : tuning.againMild}},
               1);
  }
}

} // namespace

void ckopt::planner::runLocalSearch(StrategyContext &context) {
  if (context.effort > 0 && context.problem.numNodes > 0)
    LocalSearch(context).run();
}
