//===- FrontDoorTest.cpp - hints, curves, limits --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "GraphFamilies.h"
#include "Model/Tuning.h"
#include "TestGraphs.h"
#include "ckopt/Planner/Bounds.h"
#include "ckopt/Planner/Simulator.h"
#include "ckopt/Planner/Verifier.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace ckopt::planner;
using namespace ckopt::planner::test;

namespace {

Options quick(int64_t budget, double effort = 0.02) {
  Options options;
  options.budget = budget;
  options.effort = effort;
  return options;
}

int64_t programPeak(const Graph &graph) {
  std::vector<NodeId> order(graph.nodes.size());
  std::iota(order.begin(), order.end(), 0);
  return simulate(graph, order, true).peak;
}

/// If the time limit is shorter than the time for bounds on such a graph, they
/// are skipped, and the answer is still valid.
TEST(FrontDoor, AnswersInLittleTime) {
  Graph graph = chain(1500);
  for (bool pack : {false, true}) {
    Options options;
    options.pack = pack;
    options.timeLimitSeconds = 0.01;
    Result result = BudgetPlanner(graph).solve(options);
    ASSERT_TRUE(result.hasPlan()) << result.message;
    EXPECT_EQ(verify(graph, result.plan, 0), "");
    EXPECT_TRUE(result.plan.certificates.empty());
    options.budget = programPeak(graph) / 2;
    result = BudgetPlanner(graph).solve(options);
    ASSERT_NE(result.status(), Status::Error) << result.message;
    ASSERT_NE(result.status(), Status::Infeasible) << result.message;
    EXPECT_LE(result.plan.provenMinimum, options.budget);
    EXPECT_LE(result.plan.lowerBound, baseCost(graph));
    // However busy the machine is, there is a first plan.
    options.timeLimitSeconds = 1e-9;
    EXPECT_TRUE(BudgetPlanner(graph).solve(options).hasPlan());
    options.budget = 1; // Less than a node needs is seen without a search.
    result = BudgetPlanner(graph).solve(options);
    EXPECT_EQ(result.status(), Status::Infeasible);
  }
}

/// A test sets the numbers of the search: without a search for the least load
/// of small graphs, less is proven of the smallest budget.
TEST(FrontDoor, TestsSetTuning) {
  Tuning noProof;
  noProof.provenLoadNodes = 0;
  bool showed = false;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    Graph graph = randomGraph(seed, 14);
    Result usual = BudgetPlanner(graph).minimize(quick(0));
    Result less = BudgetPlanner(graph, &noProof).minimize(quick(0));
    EXPECT_LE(less.plan.provenMinimum, usual.plan.provenMinimum);
    showed |= less.plan.provenMinimum < usual.plan.provenMinimum;
  }
  EXPECT_TRUE(showed);
}

/// A curve begins with the plan that minimize() gives.
TEST(FrontDoor, CurvesBeginWithTheMinimum) {
  for (uint64_t seed : {3}) {
    Graph graph = layeredGraph(seed, 110);
    Options options = quick(0);
    Result least = BudgetPlanner(graph).minimize(options);
    ASSERT_TRUE(least.hasPlan()) << least.message;
    EXPECT_GT(least.plan.cost, baseCost(graph));
    std::vector<Result> curve = BudgetPlanner(graph).pareto(options, 2);
    ASSERT_FALSE(curve.empty());
    EXPECT_EQ(curve.front().budget, least.plan.minimumBudget);
    EXPECT_DOUBLE_EQ(curve.front().plan.cost, least.plan.cost);
  }
}

/// A little work gives a small budget at once, and more a smaller one.
TEST(FrontDoor, LittleWorkGivesASmallBudget) {
  Graph graph = chain(400);
  Options options;
  options.threads = 1;
  options.timeLimitSeconds = 0;
  options.searchToLimit = true;
  int64_t full = programPeak(graph);
  for (auto [work, least] :
       {std::pair<int64_t, int64_t>{200000, full / 2}, {2000000, full / 7}}) {
    options.workLimit = work;
    Result result = BudgetPlanner(graph).minimize(options),
           again = BudgetPlanner(graph).minimize(options);
    ASSERT_TRUE(result.hasPlan()) << result.message;
    EXPECT_EQ(result.plan.steps, again.plan.steps);
    EXPECT_LE(result.plan.minimumBudget, least);
  }
}

/// Along a curve budgets rise, cost and bounds never do, every point verifies,
/// and its ends are the smallest budget and no recomputation.
TEST(FrontDoor, CurvesAreMonotone) {
  for (uint64_t seed = 0; seed < (runsLongTests() ? 8 : 4); ++seed) {
    Graph graph = seed == 0 ? chain(60) : randomGraph(seed + 40, 30);
    Options options = quick(0);
    options.pack = seed % 2;
    std::vector<Result> curve = BudgetPlanner(graph).pareto(options, 9);
    ASSERT_GE(curve.size(), 1u);
    for (size_t i = 0; i < curve.size(); ++i) {
      ASSERT_TRUE(curve[i].hasPlan()) << curve[i].message;
      EXPECT_EQ(verify(graph, curve[i].plan, curve[i].budget), "");
      EXPECT_LE(curve[i].plan.lowerBound, curve[i].plan.cost);
      if (i == 0)
        continue;
      EXPECT_GT(curve[i].budget, curve[i - 1].budget);
      EXPECT_LE(curve[i].plan.cost, curve[i - 1].plan.cost);
      EXPECT_LE(curve[i].plan.orderLowerBound,
                curve[i - 1].plan.orderLowerBound);
    }
    EXPECT_EQ(curve.back().plan.cost, baseCost(graph));
    EXPECT_EQ(curve.front().budget, curve.front().plan.minimumBudget);
  }
}

/// With a known plan as a hint the answer is never worse, however little is
/// searched; a hint that is no plan for the graph is left aside.
TEST(FrontDoor, HintsAreNeverLost) {
  int useful = 0;
  for (uint64_t seed = 0; seed < (runsLongTests() ? 5 : 2); ++seed)
    for (bool pack : {false, true}) {
      Graph graph = randomGraph(seed + 500, 24);
      int64_t budget = programPeak(graph) * 17 / 20;
      Options options = quick(budget, 0.01);
      options.pack = pack;
      Result good = BudgetPlanner(graph).solve(options);
      if (!good.hasPlan())
        continue;
      options.strategy = "none"; // finds nothing by itself
      Result bare = BudgetPlanner(graph).solve(options);
      options.hint = &good.plan;
      Result hinted = BudgetPlanner(graph).solve(options);
      ASSERT_TRUE(hinted.hasPlan()) << hinted.message;
      EXPECT_LE(hinted.plan.cost, good.plan.cost);
      EXPECT_EQ(verify(graph, hinted.plan, budget), "");
      useful += !bare.hasPlan();
      Plan broken = good.plan;
      broken.steps.pop_back();
      options.hint = &broken;
      Result same = BudgetPlanner(graph).solve(options);
      EXPECT_EQ(same.hasPlan(), bare.hasPlan());
    }
  EXPECT_GT(useful, 0);
}

/// With orders only, nothing runs twice.
TEST(FrontDoor, OrderOnlyRecomputesNothing) {
  Graph graph = randomGraph(21, 60);
  Options options = quick(0);
  options.orderOnly = true;
  Result result = BudgetPlanner(graph).solve(options);
  ASSERT_TRUE(result.hasPlan()) << result.message;
  EXPECT_EQ(result.plan.steps.size(), graph.nodes.size());
  EXPECT_LE(simulate(graph, result.plan.steps, true).peak, programPeak(graph));
  options.budget = memoryBound(graph) - 1;
  EXPECT_EQ(BudgetPlanner(graph).solve(options).status(), Status::Infeasible);
}

} // namespace
