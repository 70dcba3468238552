//===- LocalSearchTest.cpp - annealing on sequences -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Improve/Improve.h"
#include "Improve/LocalSearchAnnealer.h"
#include "Model/Order.h"
#include "TestGraphs.h"
#include "ckopt/Planner/Verifier.h"

#include <gtest/gtest.h>

using namespace ckopt::planner;
using namespace ckopt::planner::test;

namespace {

/// A random graph in layers, one value a node, as the published ones are.
Graph layered(uint64_t seed, int nodes, int width) {
  std::mt19937_64 rng(seed);
  Graph graph;
  for (int i = 0; i < nodes; ++i) {
    std::vector<ValueId> inputs;
    for (int k = 0; k < 4 && i > 0; ++k) {
      int back = 1 + int(rng() % (rng() % 4 ? width : nodes));
      ValueId v = std::max(0, i - back);
      if (std::find(inputs.begin(), inputs.end(), v) == inputs.end())
        inputs.push_back(v);
    }
    ValueId out = addValue(graph, 10 * (1 + int64_t(rng() % 300)));
    addNode(graph, double(1 + rng() % 1000), inputs, {out});
  }
  return graph;
}

/// The cost and load that a chain reports for its best sequence are the
/// simulator's.
TEST(Annealer, KeepsCountOfItsBest) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    Graph graph =
        seed % 2 ? layered(seed, 60, 8) : randomGraph(seed, 40, seed % 3 == 0);
    Problem problem(graph);
    AnnealingTables tables(problem);
    std::vector<NodeId> start = programOrder(problem);
    int64_t peak = simulate(problem, start, true).peak;
    AnnealingGoal goal{peak * 7 / 10, seed % 3 == 2, false,
                       4 * problem.baseCost / double(peak)};
    Annealer annealer(problem, tables, goal, start, seed);
    Deadline deadline(0);
    annealer.run(30000, problem.baseCost / problem.numNodes, 0.01, deadline);
    Simulation simulation = simulate(problem, annealer.best(), true);
    EXPECT_NEAR(annealer.bestCost(), simulation.cost, 1e-6);
    EXPECT_EQ(annealer.bestPeak(), simulation.peak);
    Plan plan;
    plan.steps = annealer.best();
    plan.cost = simulation.cost;
    plan.peak = simulate(graph, plan.steps).peak;
    EXPECT_EQ(verify(graph, plan, 0), "") << "seed " << seed;
    EXPECT_GT(deadline.spent(), 30000);
    if (!goal.fixedOrder)
      continue;
    std::vector<char> seen(problem.numNodes, 0);
    NodeId next = 0;
    for (NodeId n : plan.steps)
      if (!seen[n]++)
        EXPECT_EQ(n, next++) << "first runs left the program order";
  }
}

struct Found {
  std::vector<std::vector<NodeId>> reports;
  double cost = -1;
  int64_t spent = 0;
};

Found search(const Problem &problem, int64_t budget, int threads, uint64_t seed,
             double effort, int64_t workLimit = 0) {
  Found found;
  std::vector<std::vector<NodeId>> orders = candidateOrders(problem);
  std::vector<Candidate> known;
  for (const std::vector<NodeId> &order : orders) {
    Simulation simulation = simulate(problem, order, true);
    known.push_back({order, simulation.cost, simulation.peak, "none"});
  }
  Deadline deadline(0, workLimit);
  StrategyContext context{
      problem,
      orders,
      budget,
      false,
      seed,
      effort,
      deadline,
      known,
      [&](std::vector<NodeId> steps) {
        Simulation simulation = simulate(problem, steps, true);
        bool fits = simulation.peak <= budget;
        if (fits && (found.cost < 0 || simulation.cost < found.cost))
          found.cost = simulation.cost;
        found.reports.push_back(std::move(steps));
        return fits;
      },
      [](double, bool) {},
      threads};
  runLocalSearch(context);
  found.spent = deadline.spent();
  return found;
}

/// The same reports in the same order on one thread and two, with a limit of
/// work and without.
TEST(LocalSearch, DoesNotDependOnThreads) {
  Graph graph = layered(4, 80, 10);
  Problem problem(graph);
  int64_t peak = simulate(problem, programOrder(problem), true).peak;
  for (int64_t limit : {0, 300000}) {
    Found one = search(problem, peak * 6 / 10, 1, 3, 0.03, limit);
    Found two = search(problem, peak * 6 / 10, 2, 3, 0.03, limit);
    EXPECT_FALSE(one.reports.empty());
    EXPECT_EQ(one.reports, two.reports);
    EXPECT_EQ(one.spent, two.spent);
    if (limit)
      EXPECT_LT(one.spent, 3 * limit);
  }
}

/// A chain whose activations do not fit: the search finds the recomputation
/// that exact reasoning gives (keep every other activation of equal ones).
TEST(LocalSearch, RecomputesAChain) {
  Graph graph = chain(6);
  Problem problem(graph);
  int64_t peak = simulate(problem, programOrder(problem), true).peak;
  Found found = search(problem, peak - 100, 1, 1, 0.1);
  EXPECT_EQ(found.cost, problem.baseCost + 1);
}

/// Different seeds try different moves, but end with similar results.
TEST(LocalSearch, SeedsAgreeOnIrregularGraphs) {
  Graph graph = layered(9, 100, 8);
  Problem problem(graph);
  int64_t peak = simulate(problem, programOrder(problem), true).peak;
  Found a = search(problem, peak * 7 / 10, 1, 1, 0.3);
  Found b = search(problem, peak * 7 / 10, 1, 2, 0.3);
  ASSERT_GT(a.cost, 0);
  ASSERT_GT(b.cost, 0);
  EXPECT_NEAR(a.cost / problem.baseCost, b.cost / problem.baseCost, 0.03);
}

} // namespace
