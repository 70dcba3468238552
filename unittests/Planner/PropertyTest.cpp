//===- PropertyTest.cpp - what holds for every plan -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Baselines/Baselines.h"
#include "TestGraphs.h"
#include "ckopt/Planner/Bounds.h"
#include "ckopt/Planner/GraphJson.h"
#include "ckopt/Planner/Simulator.h"
#include "ckopt/Planner/Verifier.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>

using namespace ckopt::planner;
using namespace ckopt::planner::test;

namespace {

Options optionsFor(int64_t budget, bool pack = true) {
  Options options;
  options.budget = budget;
  options.pack = pack;
  options.effort = 0.01;
  return options;
}

int64_t programPeak(const Graph &graph) {
  std::vector<NodeId> order(graph.nodes.size());
  std::iota(order.begin(), order.end(), 0);
  return simulate(graph, order).peak;
}

/// Every strategy's plan on graphs with everything that the format has is
/// verified, within the budget, and not better than the bounds.
TEST(Planner, EveryStrategyGivesValidPlans) {
  int plans = 0;
  for (uint64_t seed = 0; seed < 9; seed += runsLongTests() ? 1 : 2) {
    Graph graph = randomGraph(seed, 10 + int(seed) * 4, seed % 3 == 0);
    ASSERT_EQ(validate(graph), "");
    int64_t full = programPeak(graph), bound = memoryBound(graph);
    EXPECT_LE(bound, BudgetPlanner(graph).solve(optionsFor(0)).plan.arena);
    for (const std::string &strategy : strategyNames(&baselines()))
      for (double ratio : {0.95, 0.75})
        for (bool pack : {false, true}) {
          Options options = optionsFor(int64_t(double(full) * ratio), pack);
          options.strategy = strategy;
          options.more = &baselines();
          options.workLimit = runsLongTests() ? 0 : 200000; // 0.01 s
          options.fixedOrder = seed % 4 < 2;
          Result result = BudgetPlanner(graph).solve(options);
          ASSERT_NE(result.status(), Status::Error)
              << result.message << " seed " << seed << " " << strategy;
          if (!result.hasPlan()) {
            EXPECT_TRUE(result.plan.steps.empty());
            EXPECT_FALSE(result.message.empty());
            if (strategy == "auto")
              EXPECT_GT(result.plan.minimumBudget, options.budget);
            EXPECT_LE(result.plan.provenMinimum, result.plan.minimumBudget);
            continue;
          }
          ++plans;
          const Plan &plan = result.plan;
          EXPECT_EQ(verify(graph, plan, options.budget), "")
              << "seed " << seed << " " << strategy;
          EXPECT_LE(plan.lowerBound, plan.cost * (1 + 1e-9));
          EXPECT_EQ(plan.offsets.empty(), !pack || plan.steps.empty());
          EXPECT_FALSE(result.aliveAtPeak.empty());
          if (options.fixedOrder) {
            std::vector<char> seen(graph.nodes.size(), 0);
            NodeId next = 0;
            for (NodeId n : plan.steps)
              if (!seen[n]++)
                EXPECT_EQ(n, next++);
            EXPECT_LE(plan.orderLowerBound, plan.cost * (1 + 1e-9));
          }
        }
  }
  EXPECT_GT(plans, 40);
}

TEST(Planner, SameQuestionSameAnswer) {
  for (uint64_t seed = 0; seed < (runsLongTests() ? 6 : 2); ++seed) {
    Graph graph = randomGraph(seed + 100, 60);
    Options options = optionsFor(int64_t(double(programPeak(graph)) * 0.85));
    Result first = BudgetPlanner(graph).solve(options),
           second = BudgetPlanner(graph).solve(options);
    EXPECT_EQ(first.plan.steps, second.plan.steps);
    EXPECT_EQ(first.plan.offsets, second.plan.offsets);
    EXPECT_EQ(first.message, second.message);
  }
}

TEST(Planner, MoreBytesNeverCostMore) {
  Graph graph = chain(40);
  BudgetPlanner planner(graph);
  double last = 0;
  for (int64_t budget : {700, 900, 1200, 1600, 2400, 3600, 5000}) {
    Result result = planner.solve(optionsFor(budget));
    ASSERT_TRUE(result.hasPlan()) << result.message;
    if (last > 0)
      EXPECT_LE(result.plan.cost, last) << "budget " << budget;
    last = result.plan.cost;
  }
  EXPECT_EQ(last, baseCost(graph));
}

TEST(Planner, UnconstrainedRecomputesNothing) {
  Graph graph = chain(20);
  Result result = BudgetPlanner(graph).solve(optionsFor(0));
  EXPECT_EQ(result.status(), Status::Optimal);
  EXPECT_EQ(result.plan.steps.size(), graph.nodes.size());
  Result same = BudgetPlanner(graph).solve(optionsFor(result.plan.arena));
  EXPECT_EQ(same.plan.steps, result.plan.steps);
}

/// A chain of equal layers needs about the square root of its length with
/// one extra forward pass (Chen et al., 2016), and less with more passes.
TEST(Planner, ChainsShrinkToTheirRoot) {
  Graph graph = chain(100);
  Options options = optionsFor(0);
  options.effort = 0.2;
  Result least = BudgetPlanner(graph).minimize(options);
  ASSERT_TRUE(least.hasPlan());
  EXPECT_LE(least.plan.minimumBudget, 100 * 20);
  EXPECT_EQ(least.plan.minimumBudget, least.plan.arena);
  options.budget = 100 * 25;
  Result root = BudgetPlanner(graph).solve(options);
  ASSERT_TRUE(root.hasPlan()) << root.message;
  EXPECT_LE(root.plan.cost, baseCost(graph) * 1.34);
}

TEST(Planner, SaysWhatIsTheSmallest) {
  Graph graph = chain(10);
  Result result = BudgetPlanner(graph).solve(optionsFor(150));
  EXPECT_EQ(result.status(), Status::Infeasible);
  EXPECT_GT(result.plan.provenMinimum, 150);
  EXPECT_GE(result.plan.minimumBudget, result.plan.provenMinimum);
  EXPECT_NE(result.message.find(std::to_string(result.plan.minimumBudget)),
            std::string::npos);
  EXPECT_FALSE(result.aliveAtPeak.empty());
  Result at = BudgetPlanner(graph).solve(optionsFor(result.plan.minimumBudget));
  EXPECT_TRUE(at.hasPlan()) << at.message;
}

/// solve() succeeds from minimize()'s result on, and where it fails below it
/// its errors name that result, each time asked afresh.
TEST(Planner, TheMinimumIsWherePlansBegin) {
  int tight = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    bool aligned = seed % 3 == 0, pack = seed % 4 != 3;
    int nodes = runsLongTests() ? 16 + int(seed) * 4 : 10 + int(seed) * 2;
    Graph graph = randomGraph(seed + 300, nodes, aligned);
    Options options = optionsFor(0, pack);
    options.fixedOrder = seed % 5 == 4;
    options.arenaHoldsAll = seed % 2 == 0;
    Result least = BudgetPlanner(graph).minimize(options);
    ASSERT_TRUE(least.hasPlan()) << "seed " << seed << ": " << least.message;
    int64_t minimum = least.plan.minimumBudget;
    EXPECT_GE(minimum, least.plan.provenMinimum);
    tight += minimum > least.plan.provenMinimum;
    options.budget = minimum;
    Result at = BudgetPlanner(graph).solve(options);
    ASSERT_TRUE(at.hasPlan()) << "seed " << seed << ": " << at.message;
    EXPECT_LE(at.plan.arena, minimum) << "seed " << seed;
    for (int64_t more : {graph.alignment, minimum / 50, minimum / 5}) {
      options.budget = minimum + more;
      EXPECT_TRUE(BudgetPlanner(graph).solve(options).hasPlan())
          << "seed " << seed << ", " << more << " more";
    }
    for (int64_t less : {int64_t(1), graph.alignment, minimum / 50}) {
      options.budget = minimum - less;
      Result below = BudgetPlanner(graph).solve(options);
      // A search for that very budget may find a plan that bisection missed.
      if (below.hasPlan())
        EXPECT_EQ(verify(graph, below.plan, options.budget), "");
      else
        EXPECT_LE(below.plan.minimumBudget, minimum)
            << "seed " << seed << ", " << less << " less";
    }
  }
  EXPECT_GT(tight, 2); // Elsewhere the proven bound says no at once.
}

/// One planner that was asked other things first keeps to it too.
TEST(Planner, TheMinimumStandsAfterOtherQuestions) {
  Graph graph = randomGraph(77, 60);
  BudgetPlanner planner(graph);
  int64_t full = programPeak(graph);
  planner.solve(optionsFor(full * 9 / 10));
  Result failed = planner.solve(optionsFor(full / 8));
  ASSERT_FALSE(failed.hasPlan());
  Result least = planner.minimize(optionsFor(0));
  EXPECT_LE(failed.plan.minimumBudget, least.plan.minimumBudget);
  EXPECT_TRUE(planner.solve(optionsFor(least.plan.minimumBudget)).hasPlan());
  // A search for that very budget may find a smaller one, but must not
  // contradict.
  Result below = planner.solve(optionsFor(least.plan.minimumBudget - 1));
  EXPECT_LE(below.plan.minimumBudget, least.plan.minimumBudget);
}

/// A limit that strikes gives the best so far, and is admitted.
TEST(Planner, SaysThatTheTimeLimitStruck) {
  Graph graph = chain(600);
  Options options;
  options.pack = true;
  options.timeLimitSeconds = 0.5;
  Result result = BudgetPlanner(graph).minimize(options);
  ASSERT_TRUE(result.hasPlan()) << result.message;
  EXPECT_TRUE(result.cut);
  EXPECT_NE(result.message.find("the time limit of 0.5 s"), std::string::npos)
      << result.message;
  EXPECT_LE(result.plan.arena, programPeak(graph));
  options.timeLimitSeconds = 0;
  options.workLimit = 10000000; // As much work, however busy the machine is.
  result = BudgetPlanner(graph).minimize(options);
  EXPECT_TRUE(result.cut);
  EXPECT_LT(result.plan.arena, programPeak(graph));
  EXPECT_FALSE(BudgetPlanner(chain(10)).solve(optionsFor(600)).cut);
}

TEST(Planner, RefusesBadQuestions) {
  Graph graph = chain(3);
  Options options = optionsFor(100);
  options.strategy = "magic";
  EXPECT_EQ(BudgetPlanner(graph).solve(options).status(), Status::Error);
  EXPECT_NE(BudgetPlanner(graph).solve(options).message.find(
                "unknown strategy 'magic'"),
            std::string::npos);
  EXPECT_EQ(BudgetPlanner(graph).solve(optionsFor(-5)).status(), Status::Error);
  graph.nodes[0].inputs = {99};
  EXPECT_EQ(BudgetPlanner(graph).solve(optionsFor(0)).status(), Status::Error);
  EXPECT_EQ(BudgetPlanner(Graph()).solve(optionsFor(0)).status(),
            Status::Optimal);
}

/// Updates free gradients early, but never before the last reader.
TEST(Planner, UpdatesRunAsSoonAsTheyMay) {
  Graph graph;
  ValueId x = addValue(graph, 10, ValueKind::Input);
  std::vector<ValueId> params, grads;
  for (int i = 0; i < 8; ++i)
    params.push_back(addValue(graph, 100, ValueKind::Persistent));
  ValueId last = x;
  for (int i = 0; i < 8; ++i) {
    ValueId v = addValue(graph, 10);
    addNode(graph, 1, {last, params[i]}, {v});
    last = v;
  }
  for (int i = 7; i >= 0; --i) {
    grads.push_back(addValue(graph, 100));
    addNode(graph, 1, {last}, {grads.back()});
  }
  for (int i = 7; i >= 0; --i) {
    NodeId n = addNode(graph, 1, {grads[7 - i]}, {});
    graph.nodes[n].mutates = {params[i]};
    graph.nodes[n].recompute = false;
  }
  Result result = BudgetPlanner(graph).solve(optionsFor(0));
  ASSERT_TRUE(result.hasPlan());
  EXPECT_LE(result.plan.peak, 800 + 10 + 100 + 20);
  EXPECT_GE(programPeak(graph), 1600);
}

TEST(Planner, PublishedGraphs) {
  CKOPT_SKIP_UNLESS_LONG();
  std::filesystem::path folder =
      std::filesystem::path(CKOPT_SHARED_DIR) / "planbench" / "graphs";
  if (!std::filesystem::exists(folder))
    GTEST_SKIP() << "no " << folder << ": the published graphs are not here";
  struct Case {
    const char *name;
    double ratio, overhead; ///< of the program order's peak; at most, percent
  };
  for (Case c :
       {Case{"ResNet50_train", 0.7, 0.664}, Case{"ResNet50_train", 0.5, 1.664},
        Case{"VGG16_train", 0.9, 1.968}, Case{"dtr_resnet_32_56", 0.5, 10.5}}) {
    std::ifstream file(folder / (std::string(c.name) + ".json"));
    std::stringstream text;
    text << file.rdbuf();
    std::string error;
    std::optional<Graph> graph = parseGraph(text.str(), error);
    ASSERT_TRUE(graph) << c.name << ": " << error;
    Options options;
    options.budget = int64_t(double(programPeak(*graph)) * c.ratio);
    Result result = BudgetPlanner(*graph).solve(options);
    ASSERT_TRUE(result.hasPlan()) << c.name << ": " << result.message;
    EXPECT_LE(100 * (result.plan.cost / baseCost(*graph) - 1),
              c.overhead + 0.001)
        << c.name << " at " << c.ratio;
  }
}

} // namespace
