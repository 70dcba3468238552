//===- OrderSearch.cpp - orders of least peak -----------------------------===//
//
// Problem: run each node once, in the order that needs the fewest bytes;
// NP-hard (register sufficiency). Method: list schedules for a start;
// best-first search over all sets of nodes that may have run, which proves the
// optimum of small graphs; otherwise simulated annealing on the order, in
// several chains of their own, and then exact search in windows around the
// peak. Guarantee: valid orders, never worse than the list schedules; `optimal`
// is a proof. Complexity: O(n log n) for each of a number of moves that grows
// with n up to a limit, so that large graphs take near-linear time.
//
//===----------------------------------------------------------------------===//
#include "OrderSearch.h"
#include "LocalSearchAnnealer.h"
#include "Order.h"

#include <algorithm>
#include <thread>

using namespace ckopt::planner;

namespace {

class OrderSearch {
public:
  OrderSearch(const Problem &problem, Deadline &deadline, uint64_t seed,
              double effort, int threads)
      : problem(problem), deadline(deadline), seed(seed), effort(effort),
        threads(threads) {}
  OrderResult run();

private:
  bool take(std::vector<NodeId> order);
  bool searchAll();
  void anneal();
  bool improveWindows(int32_t length);

  const Problem &problem;
  Deadline &deadline;
  uint64_t seed;
  double effort;
  int threads;
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

/// True if the least peak of all orders is known.
bool OrderSearch::searchAll() {
  OrderState state(problem);
  std::vector<NodeId> all = programOrder(problem);
  bool proved;
  int64_t states = int64_t(effort * 400000) / std::max(1, problem.numNodes);
  std::vector<NodeId> order =
      searchWindow(problem, state, all, states, best.peak, deadline, proved);
  if (!order.empty())
    take(order);
  return proved;
}

void OrderSearch::anneal() {
  double size = problem.numNodes;
  int64_t moves = int64_t(effort * std::min(1.0e6, 100000 + 700 * size));
  AnnealingTables tables(problem);
  AnnealingGoal goal{0, false, true, 1};
  const double hots[] = {0.003, 0.001, 0.01, 0.003};
  constexpr int count = 4;
  std::vector<Deadline> parts;
  for (int i = 0; i < count; ++i)
    parts.push_back(deadline.part(deadline.unitsLeft() / count));
  std::vector<NodeId> outcomes[count];
  auto run = [&](int i) {
    Annealer annealer(problem, tables, goal, best.order, seed * 4099 + i);
    double bytes = double(best.peak);
    annealer.run(moves, bytes * hots[i], bytes * 1e-5, parts[i]);
    outcomes[i] = annealer.best();
  };
  int workers = std::clamp(threads, 1, count);
  std::vector<std::thread> pool;
  auto runShare = [&](int first) {
    for (int i = first; i < count; i += workers)
      run(i);
  };
  for (int t = 1; t < workers; ++t)
    pool.emplace_back(runShare, t);
  runShare(0);
  for (std::thread &worker : pool)
    worker.join();
  for (int i = 0; i < count; ++i) {
    deadline.spend(parts[i].spent());
    take(std::move(outcomes[i]));
  }
}

/// Orders the nodes around the peak anew; true if the peak fell.
bool OrderSearch::improveWindows(int32_t length) {
  int32_t peakAt = simulate(problem, best.order, true).peakStep;
  deadline.spend(problem.numNodes);
  for (int32_t lead : {length / 2, length * 3 / 4, length / 4}) {
    int32_t first = std::max(0, peakAt - lead);
    int32_t last = std::min(problem.numNodes, first + length);
    if (peakAt >= last || deadline.passed())
      continue;
    OrderState state(problem);
    for (int32_t i = 0; i < first; ++i)
      state.run(best.order[i]);
    std::vector<NodeId> window(best.order.begin() + first,
                               best.order.begin() + last);
    bool proved;
    std::vector<NodeId> better =
        searchWindow(problem, state, window, int64_t(effort * 2000), best.peak,
                     deadline, proved);
    if (better.empty())
      continue;
    std::vector<NodeId> order = best.order;
    std::copy(better.begin(), better.end(), order.begin() + first);
    if (take(std::move(order)))
      return true;
  }
  return false;
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
  for (int32_t length : {16, 32, 64})
    for (int i = 0; i < 32 && improveWindows(length); ++i)
      continue;
  return best;
}

} // namespace

OrderResult ckopt::planner::searchOrder(const Problem &problem,
                                        Deadline &deadline, uint64_t seed,
                                        double effort, int threads) {
  return OrderSearch(problem, deadline, seed, effort, threads).run();
}
