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
#include "ckopt/Support/Debug.h"
#include "llvm/Support/Format.h"

#include <algorithm>
#include <cmath>

using namespace ckopt;
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
  double look = 0;      ///< moves of the quick look
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
  const Candidate *cheaperNearby() const;
  /// Runs chains side by side, reports and keeps their outcomes. Where there is
  /// a clock, takes that share of the time left at most.
  void runStage(const std::vector<Chain> &chains, double timeShare);
  bool better(const Outcome &a, const Outcome &b) const {
    bool fitsA = a.peak <= goal.budget, fitsB = b.peak <= goal.budget;
    if (fitsA != fitsB)
      return fitsA;
    return fitsA && a.cost != b.cost ? a.cost < b.cost : a.peak < b.peak;
  }
  /// Returns whether no improvement is possible, or none that pays.
  bool finished() const {
    return best.peak <= goal.budget &&
           best.cost <=
               std::max(problem.baseCost, context.bound) * (1 + context.worth);
  }
  /// Returns whether only another order can be cheaper by what pays.
  bool finishedInOrder() const {
    return context.worth > 0 && best.peak <= goal.budget &&
           std::abs(best.cost - context.orderBound) <=
               context.worth * best.cost;
  }
  /// Returns whether going on pays after a stage that began with `before`.
  bool pays(const Outcome &before) const {
    return context.worth > 0 && best.peak <= goal.budget &&
           (before.peak > goal.budget ||
            before.cost - best.cost >=
                tuning.gainShare *
                    (best.cost - std::max(problem.baseCost, context.bound)));
  }
  /// Returns whether all is tried, whatever it is likely to gain.
  bool thorough() const {
    return context.toLimit || context.effort >= tuning.fullEffort;
  }

  StrategyContext &context;
  const Problem &problem;
  const LocalTuning &tuning;
  AnnealingTables tables;
  AnnealingGoal goal;
  double mean;
  Outcome best;
  bool lastWon = false; ///< the last chain of a stage found its best plan
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
    debug::log(debug::Part::Planner, [&](llvm::raw_ostream &os) {
      os << "chain from heat " << llvm::format("%g", chains[i].cooling.hot)
         << ": " << chains[i].moves << " moves, "
         << parts[i].spent() + rests[i].spent() << " units, cost "
         << llvm::format("%g", outcomes[i].cost) << ", load "
         << outcomes[i].peak;
    });
    context.report(outcomes[i].steps);
    cut |= outcomes[i].cut;
    lastWon = better(outcomes[i], best) &&
              !(best.peak <= goal.budget &&
                outcomes[i].cost >= best.cost * context.tuning.betterCost);
    if (better(outcomes[i], best))
      best = std::move(outcomes[i]);
  }
}

/// Hot chains need thousands of moves a node before they are better than the
/// constructions, and the more the longer they are; graphs of a few hundred
/// nodes have several basins, and short chains to find them all. Less effort
/// takes fewer chains rather than shorter ones.
Amount LocalSearch::amount(double perMove) const {
  double size = problem.numNodes;
  double moves = std::min(tuning.mostMoves,
                          tuning.leastMoves + tuning.movesEachNode * size);
  double hot = std::min({tuning.hotMovesEachNode * size, tuning.mostHotMoves,
                         tuning.mostHotWork / size});
  double chains = 0;
  if (hot >= tuning.leastHotMovesEachNode * size) // an even number
    chains = int(std::clamp(tuning.hotChains / size, tuning.leastHotChains,
                            tuning.mostHotChains)) &
             ~1;
  double look = moves, effort = context.effort;
  if (context.toLimit) {
    look *= effort;
    moves *= effort;
    hot *= effort;
  } else {
    double full = effort / tuning.fullEffort,
           usual = std::max(std::min(1.0, effort), full);
    look *= usual;
    moves *= tuning.lastEffort * effort;
    chains = std::min(chains, std::max(1.0, std::round(chains * full)));
    hot = std::min(hot * usual,
                   tuning.hotWork * effort / (perMove * std::max(1.0, chains)));
  }
  if (context.deadline.hasWorkLimit()) {
    double units = perMove * (moves * tuning.otherStages + hot * chains);
    double share = std::min(1.0, double(context.deadline.unitsLeft()) / units);
    look *= share;
    moves *= share;
    hot *= share;
  }
  Amount much{look, moves, 0, 0};
  much.hotMoves = std::max<int64_t>(1, int64_t(hot));
  much.hotChains =
      double(much.hotMoves) < tuning.leastHot * size ? 0 : int(chains);
  return much;
}

/// Returns the cheapest plan that is a little too large and cheaper than the
/// best: most of it fits, too. Null if there is none.
const Candidate *LocalSearch::cheaperNearby() const {
  const Candidate *result = nullptr;
  for (const Candidate &candidate : context.known)
    if (!context.toLimit && best.peak <= goal.budget &&
        candidate.peak > goal.budget &&
        double(candidate.peak) <= tuning.nearBudget * double(goal.budget) &&
        candidate.cost < (result ? result->cost : best.cost))
      result = &candidate;
  return result;
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
  // A quick look, for whoever has little time; it shows what a move takes, and
  // whether chains from an order find what those from a plan do not.
  int64_t before = context.deadline.spent(),
          moves = std::max<int64_t>(1, int64_t(much.look * tuning.quickShare));
  std::vector<Chain> looks{{&known, moves, tuning.fromPlan}};
  if (const Candidate *near = cheaperNearby())
    looks.push_back({&near->steps, moves, tuning.fromPlan});
  looks.push_back(
      {hot ? &order : &known, moves, hot ? tuning.fromOrder : tuning.polish});
  runStage(looks, tuning.quickTime);
  much = amount(tuning.hotterUnits * double(context.deadline.spent() - before) /
                double(int64_t(looks.size()) * moves));
  bool cheap = problem.numNodes <= tuning.hotAnywayNodes && !finished();
  hot = much.hotChains > 0 && (thorough() || (hot && (lastWon || cheap)));
  if (!hot && finishedInOrder())
    return; // The chain that looked for another order found none.
  const std::vector<NodeId> quick = best.steps;
  std::vector<Chain> chains;
  for (int i = 0; hot && i < much.hotChains; ++i)
    chains.push_back(
        {&order, much.hotMoves, i % 3 == 2 ? tuning.hotter : tuning.hot});
  if (hot && !finished())
    runStage(chains, tuning.hotTimeShare);
  int rounds = hot && thorough() ? 2 : 1;
  // If the time limit decides, use all of the time.
  for (int round = 0; (cut || round < rounds) && !finished(); ++round) {
    if (context.deadline.passed())
      return;
    const Outcome start = best;
    if (round == 0)
      runStage({{&quick, part(1), tuning.fromPlan},
                {&start.steps, part(hot ? tuning.secondShare : 1),
                 hot ? tuning.fromBest : tuning.polish}},
               hot ? tuning.secondTime : 1);
    else
      runStage({{&start.steps, part(tuning.lastShare), tuning.again},
                {&start.steps, part(tuning.lastShare),
                 hot ? tuning.againHot : tuning.againMild}},
               1);
    if (round + 1 == rounds && rounds <= tuning.mostRepeats && pays(start))
      ++rounds;
  }
}

} // namespace

void ckopt::planner::runLocalSearch(StrategyContext &context) {
  if (context.effort > 0 && context.problem.numNodes > 0)
    LocalSearch(context).run();
}
