//===- WindowsExactTest.cpp - exact solutions of a few steps --------------===//
#include "../../lib/Planner/WindowsExact.h"
#include "../../lib/Planner/ExactSearch.h"
#include "../../lib/Planner/LocalSearchAnnealer.h"
#include "../../lib/Planner/Order.h"
#include "../../lib/Planner/WindowsTrade.h"
#include "TestGraphs.h"
#include "ckopt/Planner/Verifier.h"

#include <gtest/gtest.h>

using namespace ckopt::planner;
using namespace ckopt::planner::test;

namespace {

std::vector<NodeId> solve(const Problem &problem,
                          const std::vector<NodeId> &start, int64_t budget,
                          bool fixedOrder = false) {
  std::vector<Candidate> known;
  std::vector<std::vector<NodeId>> orders{programOrder(problem)};
  Deadline deadline(0);
  StrategyContext context{problem,
                          orders,
                          budget,
                          fixedOrder,
                          1,
                          1,
                          deadline,
                          known,
                          [](std::vector<NodeId>) { return true; },
                          [](double, bool) {}};
  return solveWindows(context, start, deadline);
}

std::string check(const Graph &graph, const std::vector<NodeId> &steps,
                  int64_t budget) {
  Plan plan;
  plan.steps = steps;
  Simulation simulation = simulate(graph, steps);
  plan.cost = simulation.cost;
  plan.peak = simulation.peak;
  return verify(graph, plan, budget);
}

/// One replay that costs more than another value's would: the window that
/// holds both finds the optimum of the whole problem.
TEST(WindowsExact, ReplacesADearReplay) {
  Graph graph;
  ValueId x = addValue(graph, 10, ValueKind::Input);
  ValueId dear = addValue(graph, 100), cheap = addValue(graph, 100);
  ValueId big = addValue(graph, 100), last = addValue(graph, 10);
  ValueId out = addValue(graph, 10, ValueKind::Output);
  addNode(graph, 50, {x}, {dear});
  addNode(graph, 2, {x}, {cheap});
  addNode(graph, 1, {dear, cheap}, {big});
  addNode(graph, 1, {big}, {last});
  addNode(graph, 1, {x, last, dear, cheap}, {out});
  Problem problem(graph);
  // `dear`, `cheap` and `big` are together where `big` is made; in the step
  // behind it there is room for two of the three.
  graph.nodes[3].workspace = 100;
  Problem tight(graph);
  int64_t budget = 10 + 300 + 10;
  std::vector<NodeId> start{0, 1, 2, 3, 0, 4}, best{0, 1, 2, 3, 1, 4};
  ASSERT_EQ(check(graph, start, budget), "");
  ASSERT_EQ(check(graph, best, budget), "");
  Deadline deadline(0);
  ExactResult optimum = exactSearch(tight, budget, false, deadline);
  ASSERT_EQ(optimum.kind, ExactResult::Optimal);
  for (bool fixedOrder : {false, true}) {
    std::vector<NodeId> steps = solve(tight, start, budget, fixedOrder);
    EXPECT_EQ(check(graph, steps, budget), "");
    EXPECT_EQ(simulate(tight, steps, true).cost, optimum.cost);
  }
}

/// A needless replay in the middle of a long plan goes, all else stays.
TEST(WindowsExact, ChangesNothingElse) {
  Graph graph = chain(40);
  Problem problem(graph);
  std::vector<NodeId> order = programOrder(problem), start = order;
  start.insert(start.begin() + 60, order[20]);
  int64_t budget = simulate(problem, order, true).peak;
  ASSERT_EQ(check(graph, start, budget), "");
  EXPECT_EQ(solve(problem, start, budget), order);
  EXPECT_EQ(solve(problem, order, budget), order);
}

/// Whatever graphs have, steps stay valid and within the budget and never cost
/// more; on graphs that fit into one window the result is often the optimum.
TEST(WindowsExact, KeepsPlansValid) {
  int started = 0, gained = 0, optimal = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    Graph graph = randomGraph(seed, 12, seed % 3 == 0);
    Problem problem(graph);
    std::vector<NodeId> order = programOrder(problem);
    int64_t budget = simulate(problem, order, true).peak * 85 / 100;
    Random random(seed);
    Trader trader(problem, budget, false);
    trader.assign(order);
    // Much noise: replays that are dearer than they need be.
    if (!trader.repair(50, 10 * problem.baseCost, random))
      continue;
    ++started;
    std::vector<NodeId> start = trader.steps();
    std::vector<NodeId> steps = solve(problem, start, budget);
    Simulation before = simulate(problem, start, true),
               after = simulate(problem, steps, true);
    Plan plan;
    plan.steps = steps;
    EXPECT_EQ(verifySteps(graph, plan), "") << "seed " << seed;
    EXPECT_LE(after.peak, budget) << "seed " << seed;
    EXPECT_LE(after.cost, before.cost) << "seed " << seed;
    gained += after.cost < before.cost;
    Deadline deadline(0, 20000000);
    ExactResult optimum = exactSearch(problem, budget, false, deadline);
    if (optimum.kind == ExactResult::Optimal) {
      EXPECT_GE(after.cost, optimum.cost - 1e-9) << "seed " << seed;
      optimal += after.cost <= optimum.cost + 1e-9;
    }
  }
  EXPECT_GT(started, 20);
  EXPECT_GT(gained, 5);
  EXPECT_GT(optimal, started / 2);
}

} // namespace
