//===- WindowsTest.cpp - trades, and polishing by them --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Improve/Improve.h"
#include "Improve/WindowsTrade.h"
#include "Model/Order.h"
#include "TestGraphs.h"
#include "ckopt/Planner/Verifier.h"

#include <gtest/gtest.h>

using namespace ckopt::planner;
using namespace ckopt::planner::test;

namespace {

/// Runs the strategy from `start` and returns all that it reports, in order.
std::vector<std::vector<NodeId>>
polish(const Problem &problem, const std::vector<NodeId> &start, int64_t budget,
       int threads, bool fixedOrder = false, int64_t workLimit = 0) {
  Simulation simulation = simulate(problem, start, true);
  std::vector<Candidate> known{
      {start, simulation.cost, simulation.peak, "test"}};
  std::vector<std::vector<NodeId>> orders{programOrder(problem)}, reported;
  Deadline deadline(0, workLimit);
  StrategyContext context{problem,
                          orders,
                          budget,
                          fixedOrder,
                          1,
                          0.1,
                          deadline,
                          known,
                          [&](std::vector<NodeId> steps) {
                            reported.push_back(std::move(steps));
                            return true;
                          },
                          [](double, bool) {},
                          threads};
  runWindows(context);
  return reported;
}

/// A chain's steps that make every activation again just before its reader.
std::vector<NodeId> untidy(const Problem &problem, int length) {
  std::vector<NodeId> steps;
  for (NodeId n = 0; n <= length; ++n)
    steps.push_back(n);
  for (NodeId n = length + 1; n < problem.numNodes; ++n) {
    int needed = 2 * length - n; // Node i makes activation i + 1.
    for (NodeId m = 0; m <= needed && m < length; ++m)
      steps.push_back(m);
    steps.push_back(n);
  }
  return steps;
}

void expectValid(const Graph &graph, const std::vector<NodeId> &steps,
                 int64_t budget) {
  Plan plan;
  plan.steps = steps;
  Simulation simulation = simulate(graph, steps);
  plan.cost = simulation.cost;
  plan.peak = simulation.peak;
  EXPECT_EQ(verify(graph, plan, budget), "");
}

/// A trade leaves valid steps whose cost and load are what the simulator says,
/// within the budget if it says so.
TEST(Trader, LeavesValidSteps) {
  int repaired = 0, kept = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Graph graph = randomGraph(seed, 30, seed % 3 == 0);
    Problem problem(graph);
    std::vector<NodeId> start = programOrder(problem);
    int64_t peak = simulate(problem, start, true).peak;
    int64_t budget = peak * 85 / 100;
    Random random(seed);
    Trader trader(problem, budget, false);
    trader.assign(start);
    double limit = 10 * problem.baseCost;
    bool fits = trader.repair(2, limit, random);
    if (!fits)
      continue;
    ++repaired;
    auto check = [&](bool within) {
      std::vector<NodeId> steps = trader.steps();
      Simulation simulation = simulate(problem, steps, true);
      EXPECT_NEAR(trader.cost(), simulation.cost, 1e-6) << "seed " << seed;
      EXPECT_EQ(trader.peak(), simulation.peak) << "seed " << seed;
      expectValid(graph, steps, within ? budget : 0);
    };
    check(true);
    std::vector<NodeId> again;
    std::vector<char> seen(problem.numNodes, 0);
    for (NodeId n : trader.steps())
      if (seen[n]++)
        again.push_back(n);
    for (NodeId n : again)
      if (trader.keep(n, 1)) {
        ++kept;
        check(false);
        break;
      }
    EXPECT_GT(trader.takeWork(), 0);
  }
  EXPECT_GT(repaired, 20);
  EXPECT_GT(kept, 10);
}

/// Every result of a ladder is read by two nodes of the next rung: 2^22 paths
/// lead to the last one, and a trade that makes it again must not walk them
/// all.
TEST(Trader, EndsWherePathsAreMany) {
  Graph graph;
  ValueId x = addValue(graph, 100, ValueKind::Input), left = x, right = x;
  for (int rung = 0; rung < 22; ++rung) {
    ValueId l = addValue(graph, 100), r = addValue(graph, 100);
    addNode(graph, 1, {left, right}, {l});
    addNode(graph, 1, {left, right}, {r});
    left = l;
    right = r;
  }
  ValueId big = addValue(graph, 4000);
  addNode(graph, 1, {x}, {big});
  ValueId mid = addValue(graph, 10);
  addNode(graph, 1, {big}, {mid});
  addNode(graph, 1, {left, mid}, {addValue(graph, 10, ValueKind::Output)});
  Problem problem(graph);
  Trader trader(problem, 4050, false);
  trader.assign(programOrder(problem));
  Random random(1);
  trader.repair(1, 100 * problem.baseCost, random);
  EXPECT_LT(trader.takeWork(), 100000);
}

/// The first run of a node stays first where the order is fixed.
TEST(Trader, FixedOrderKeepsFirstRuns) {
  Graph graph = chain(4);
  Problem problem(graph);
  Trader trader(problem, 0, true);
  trader.assign(untidy(problem, 4));
  EXPECT_FALSE(trader.keep(0, 0));
  EXPECT_TRUE(trader.keep(0, 1));
  EXPECT_FALSE(trader.keep(0, 17));
}

/// Quadratic replay becomes what the budget asks for.
TEST(Windows, TidiesUpAPlan) {
  const int length = 12;
  Graph graph = chain(length);
  Problem problem(graph);
  std::vector<NodeId> start = untidy(problem, length);
  double before = simulate(problem, start, true).cost;
  int64_t budget = simulate(problem, programOrder(problem), true).peak * 6 / 10;
  ASSERT_LE(simulate(problem, start, true).peak, budget);
  auto reported = polish(problem, start, budget, 1);
  ASSERT_FALSE(reported.empty());
  double last = before;
  for (const std::vector<NodeId> &steps : reported) {
    Simulation simulation = simulate(problem, steps, true);
    EXPECT_LE(simulation.peak, budget);
    EXPECT_LT(simulation.cost, last);
    last = simulation.cost;
    expectValid(graph, steps, budget);
  }
  // Half of the activations are kept: a run more for each other one is enough.
  EXPECT_LE(last - problem.baseCost, length);
}

/// The outcome is the same on one thread or several, limited or not.
TEST(Windows, SameOnAnyNumberOfThreads) {
  Graph graph = chain(20);
  Problem problem(graph);
  std::vector<NodeId> start = untidy(problem, 20);
  int64_t budget = simulate(problem, programOrder(problem), true).peak / 2;
  for (int64_t limit : {int64_t(0), int64_t(300000)}) {
    auto one = polish(problem, start, budget, 1, false, limit);
    EXPECT_FALSE(one.empty());
    EXPECT_EQ(one, polish(problem, start, budget, 3, false, limit));
  }
}

/// First runs follow the program where that is asked for.
TEST(Windows, KeepsTheOrder) {
  Graph graph = chain(12);
  Problem problem(graph);
  int64_t budget = simulate(problem, programOrder(problem), true).peak / 2;
  auto reported = polish(problem, untidy(problem, 12), budget, 2, true);
  ASSERT_FALSE(reported.empty());
  for (const std::vector<NodeId> &steps : reported) {
    std::vector<char> seen(problem.numNodes, 0);
    NodeId next = 0;
    for (NodeId n : steps)
      if (!seen[n]++) {
        EXPECT_EQ(n, next++);
      }
  }
}

/// Nothing to start from, and nothing to gain.
TEST(Windows, LeavesTheRestAlone) {
  Graph graph = chain(5);
  Problem problem(graph);
  std::vector<NodeId> order = programOrder(problem);
  int64_t peak = simulate(problem, order, true).peak;
  EXPECT_TRUE(polish(problem, order, peak, 1).empty());
  EXPECT_TRUE(polish(problem, order, peak - 1, 1).empty());
}

} // namespace
