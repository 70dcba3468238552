//===- OrderSearch.cpp - orders of least peak -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: run each node once, in the order that needs the fewest bytes;
// NP-hard (register sufficiency). Method: list schedules for a start; the
// search for the least load (Exact/ExactSearch.h) on the graph whose nodes all
// run once, which often proves the optimum of graphs of up to 384 nodes;
// otherwise simulated annealing on the order, in several chains of their own.
// Guarantee: valid orders, never worse than the list schedules; `optimal` is a
// proof. Gives up: at the bound, or after its moves. Complexity: O(n log n) for
// each of a number of moves that grows with n up to a limit, so that large
// graphs take near-linear time.
//
//===----------------------------------------------------------------------===//
#include "Exact/ExactSearch.h"
#include "Improve/Improve.h"
#include "Improve/LocalSearchAnnealer.h"
#include "Model/Order.h"
#include "ckopt/Base/Thread.h"

#include <algorithm>

using namespace ckopt::planner;

namespace {

class OrderSearch {
public:
  OrderSearch(const Problem &problem, Deadline &deadline, uint64_t seed,
              double effort, int threads, const OrderTuning &tuning)
      : problem(problem), deadline(deadline), seed(seed), effort(effort),
        threads(threads), tuning(tuning) {}
  OrderResult run();

private:
  bool take(std::vector<NodeId> order);
  bool searchAll();
  void anneal();

  const Problem &problem;
  Deadline &deadline;
  uint64_t seed;
  double effort;
  int threads;
  const OrderTuning &tuning;
  OrderResult best;
};

bool OrderSearch::take(std::vector<NodeId> order) {
  int64_t peak = simulate(problem, order, true).peak;
  if (!best.order.empty() && peak >= best.peak)
    return false;
  best.order = std::move(order);
  best.peak = peak;
  return true;
}

/// Returns whether the least peak of all orders is known.
bool OrderSearch::searchAll() {
  if (problem.numNodes > tuning.mostNodesProved || problem.simplified)
    return false;
  Graph once = problem.graph;
  for (Node &node : once.nodes)
    node.recompute = false;
  Deadline part = deadline.part(int64_t(
      tuning.proofWork * std::min(1.0, effort) *
      std::min(1.0, tuning.provedNodes / std::max(1, problem.numNodes))));
  LeastLoad found = leastLoad(Problem(once), problem.persistentBytes,
                              best.order, part, tuning.proofStates);
  deadline.spend(part.spent());
  if (isValidOrder(problem, found.steps))
    take(std::move(found.steps));
  return found.proven && best.peak == found.bound;
}

void OrderSearch::anneal() {
  double size = problem.numNodes;
  int64_t moves = int64_t(
      effort * std::min(tuning.mostMoves,
                        tuning.leastMoves + tuning.movesEachNode * size));
  AnnealingTables tables(problem);
  AnnealingGoal goal{0, false, true, 1};
  constexpr int count = OrderTuning::chains;
  std::vector<Deadline> parts;
  for (int i = 0; i < count; ++i)
    parts.push_back(deadline.part(deadline.unitsLeft() / count));
  std::vector<NodeId> outcomes[count];
  auto run = [&](int i) {
    Annealer annealer(problem, tables, goal, best.order, seed * 4099 + i);
    double bytes = double(best.peak);
    annealer.run(moves, bytes * tuning.hot[i], bytes * tuning.cold, parts[i]);
    outcomes[i] = annealer.best();
  };
  int workers = std::clamp(threads, 1, count);
  std::vector<ckopt::Thread> pool(static_cast<size_t>(workers));
  auto runShare = [&](int first) {
    for (int i = first; i < count; i += workers)
      run(i);
  };
  std::vector<int> own{0}; // and those of threads that cannot be had
  for (int t = 1; t < workers; ++t)
    if (pool[size_t(t)].start([&, t] { runShare(t); }) != 0)
      own.push_back(t);
  for (int share : own)
    runShare(share);
  for (ckopt::Thread &worker : pool)
    worker.join();
  for (int i = 0; i < count; ++i) {
    deadline.spend(parts[i].spent());
    take(std::move(outcomes[i]));
  }
}

OrderResult OrderSearch::run() {
  for (std::vector<NodeId> &order : candidateOrders(problem))
    take(std::move(order));
  if (effort <= 0 || problem.numNodes < 2)
    return best;
  best.optimal = searchAll();
  if (best.optimal || deadline.passed())
    return best;
  anneal();
  return best;
}

} // namespace

OrderResult ckopt::planner::searchOrder(const Problem &problem,
                                        Deadline &deadline, uint64_t seed,
                                        double effort, int threads,
                                        const OrderTuning &tuning) {
  return OrderSearch(problem, deadline, seed, effort, threads, tuning).run();
}
