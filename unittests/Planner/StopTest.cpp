//===- StopTest.cpp - when a search ends, and what more bytes give --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Without limits a search ends where the rest cannot pay, by counts of work
// alone, and what is known for fewer bytes is never lost for more.
//
//===----------------------------------------------------------------------===//
#include "GraphFamilies.h"
#include "Model/Tuning.h"
#include "ckopt/Planner/Bounds.h"
#include "ckopt/Planner/Simulator.h"
#include "ckopt/Planner/Verifier.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace ckopt::planner;
using namespace ckopt::planner::test;

namespace {

int64_t programPeak(const Graph &graph) {
  std::vector<NodeId> order(graph.nodes.size());
  std::iota(order.begin(), order.end(), 0);
  return simulate(graph, order, /*aligned=*/true).peak;
}

Options asUsual(const Graph &graph, double ratio) {
  Options options;
  options.budget = int64_t(ratio * double(programPeak(graph)));
  options.threads = 1;
  return options;
}

/// Two seconds are 40 million units; what is near its bound takes far less.
TEST(Stop, DefaultEffortEndsByItself) {
  for (int nodes : {60, 400}) {
    Graph graph = trainingGraph(5, nodes);
    Result result = BudgetPlanner(graph).solve(asUsual(graph, 0.8));
    ASSERT_TRUE(result.hasPlan()) << result.message;
    EXPECT_LE(result.work, 40000000) << nodes << " nodes";
  }
  Graph graph = chain(150);
  Result result = BudgetPlanner(graph).solve(asUsual(graph, 0.9));
  ASSERT_TRUE(result.hasPlan()) << result.message;
  EXPECT_LE(result.plan.cost, 1.01 * result.plan.orderLowerBound);
  EXPECT_LE(result.work, 20000000);
}

/// A plan that is proven to be within the part that pays is not improved, and
/// more effort asks for a smaller part.
TEST(Stop, NothingIsImprovedThatCannotPay) {
  Tuning content;
  content.worthGap = 0.5;
  for (uint64_t seed : {1, 2}) {
    Graph graph = trainingGraph(seed, 80);
    Options options = asUsual(graph, 0.75);
    Result soon = BudgetPlanner(graph, &content).solve(options),
           usual = BudgetPlanner(graph).solve(options);
    ASSERT_TRUE(soon.hasPlan() && usual.hasPlan()) << usual.message;
    EXPECT_LT(soon.work, 5000000);
    EXPECT_LE(soon.plan.cost, 1.5 * soon.plan.lowerBound);
    EXPECT_LE(usual.plan.cost, soon.plan.cost);
    options.effort = 8;
    EXPECT_LE(BudgetPlanner(graph, &content).solve(options).plan.cost,
              1.0626 * soon.plan.lowerBound);
  }
}

/// More effort finds plans that are no worse, but for what does not pay.
TEST(Stop, MoreEffortGivesNoWorsePlans) {
  for (uint64_t seed = 0; seed < (runsLongTests() ? 6 : 2); ++seed) {
    Graph graph = seed % 2 ? layeredGraph(seed, 50) : trainingGraph(seed, 70);
    double before = std::numeric_limits<double>::infinity();
    for (double effort : {0.1, 1.0, 8.0}) {
      Options options = asUsual(graph, 0.75);
      options.effort = effort;
      Result result = BudgetPlanner(graph).solve(options);
      if (!result.hasPlan())
        break;
      EXPECT_LE(result.plan.cost, before * (1 + defaultTuning.worthGap))
          << "seed " << seed << ", effort " << effort;
      before = std::min(before, result.plan.cost);
    }
  }
}

/// A limit that no user chose never ends the search of a small graph, however
/// slow the machine; in graphs that count as large it does.
TEST(Stop, NoClockEndsSmallGraphs) {
  Graph graph = layeredGraph(3, 110);
  Options options = asUsual(graph, 0.8);
  Result free = BudgetPlanner(graph).solve(options);
  Tuning tuning;
  tuning.netSeconds = options.timeLimitSeconds = 0.04;
  Result netted = BudgetPlanner(graph, &tuning).solve(options);
  EXPECT_FALSE(netted.cut);
  EXPECT_EQ(netted.plan.steps, free.plan.steps);
  EXPECT_EQ(netted.work, free.work);
  tuning.clockedNodes = 50;
  options.timeLimitSeconds = tuning.netSeconds = 0.04;
  EXPECT_TRUE(BudgetPlanner(graph, &tuning).solve(options).cut);
  tuning.clockedNodes = defaultTuning.clockedNodes;
  options.searchToLimit = true; // the user chose it
  EXPECT_TRUE(BudgetPlanner(graph, &tuning).solve(options).cut);
}

/// More bytes never cost more: within a planner whatever is asked first, and in
/// other processes where the plan for fewer bytes is kept as a hint.
TEST(Stop, MoreBytesNeverCostMore) {
  for (uint64_t seed = 0; seed < (runsLongTests() ? 12 : 4); ++seed) {
    Graph graph = seed % 2 ? layeredGraph(seed, 50) : trainingGraph(seed, 60);
    BudgetPlanner one(graph);
    Plan kept;
    double together = std::numeric_limits<double>::infinity(), apart = together;
    for (double ratio : {0.7, 0.74, 0.8, 0.86, 0.95}) {
      Options options = asUsual(graph, ratio);
      options.effort = 0.05;
      options.seed = uint64_t(100 * ratio); // as if each found what it may
      options.pack = seed % 3 == 0;
      Result result = one.solve(options);
      if (result.hasPlan())
        EXPECT_LE(result.plan.cost, together) << "seed " << seed;
      if (result.hasPlan())
        together = result.plan.cost;
      options.hint = kept.steps.empty() ? nullptr : &kept;
      result = BudgetPlanner(graph).solve(options);
      if (!result.hasPlan())
        continue;
      EXPECT_LE(result.plan.cost, apart) << "seed " << seed;
      EXPECT_EQ(verify(graph, result.plan, options.budget), "");
      apart = result.plan.cost;
      kept = result.plan;
    }
    EXPECT_FALSE(std::isinf(together));
  }
}

} // namespace
