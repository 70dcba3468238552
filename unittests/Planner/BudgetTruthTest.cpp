//===- BudgetTruthTest.cpp - a budget is kept or proven impossible --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random pairs of graph and budget, from below every bound to above every need:
// the answer is a verified plan within the budget or a proof that there is
// none. For graphs of up to 12 nodes nothing else is allowed. For larger ones
// the share of open answers and the distance of the smallest budget found from
// the proven minimum are printed and kept from growing.
//
//===----------------------------------------------------------------------===//
#include "GraphFamilies.h"
#include "ckopt/Planner/Bounds.h"
#include "ckopt/Planner/Simulator.h"
#include "ckopt/Planner/Verifier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <numeric>

using namespace ckopt::planner;
using namespace ckopt::planner::test;

namespace {

int64_t programPeak(const Graph &graph) {
  std::vector<NodeId> order(graph.nodes.size());
  std::iota(order.begin(), order.end(), 0);
  return simulate(graph, order, true).peak;
}

enum class Answer { Plan, Impossible, Open };

/// Plans, and checks the result without trusting the planner.
Answer ask(const Graph &graph, int64_t budget, int64_t smallestKnown) {
  Options options;
  options.budget = budget;
  options.effort = 0.02;
  options.timeLimitSeconds = 0;
  Result result = BudgetPlanner(graph).solve(options);
  if (result.hasPlan()) {
    EXPECT_EQ(verify(graph, result.plan, budget), "");
    EXPECT_LE(result.plan.lowerBound, result.plan.cost * (1 + 1e-9));
    EXPECT_LE(result.plan.provenMinimum, budget);
    return Answer::Plan;
  }
  EXPECT_NE(result.status(), Status::Error) << result.message;
  if (result.status() != Status::Infeasible)
    return Answer::Open;
  EXPECT_GT(result.plan.provenMinimum, budget);
  EXPECT_LT(budget, smallestKnown) << "proven impossible, and yet known";
  return Answer::Impossible;
}

TEST(BudgetTruth, SmallGraphsAreNeverLeftOpen) {
  int counts[3] = {};
  for (uint64_t seed = 0; seed < 425; ++seed) {
    Graph graph = randomGraph(seed * 31 + 7, 3 + int(seed % 10), seed % 5 == 0);
    ASSERT_LE(graph.nodes.size(), 12u);
    int64_t full = programPeak(graph);
    int64_t smallest = full;
    for (int percent : {100, 85, 70, 55}) {
      int64_t budget = std::max<int64_t>(1, full * percent / 100);
      Answer answer = ask(graph, budget, smallest);
      EXPECT_NE(answer, Answer::Open)
          << "seed " << seed << " at " << percent << " %";
      ++counts[int(answer)];
      if (answer == Answer::Plan)
        smallest = budget;
    }
  }
  EXPECT_GT(counts[0], 500);
  EXPECT_GT(counts[1], 200);
}

/// Counts the results of the pairs of one kind of graphs.
struct Tally {
  int plans = 0, impossible = 0, open = 0;
  std::vector<double> ratios; ///< smallest found over proven minimum, by graph

  int pairs() const { return plans + impossible + open; }
  double median() {
    std::sort(ratios.begin(), ratios.end());
    return ratios[ratios.size() / 2];
  }
};

/// Draws budgets between the bound on memory and the need without
/// recomputation. Budgets that the smallest plan fits are feasible, budgets
/// that are proven too small are infeasible, and those between are open. The
/// planner is asked for feasible ones.
void drawPairs(const Graph &graph, uint64_t seed, int budgets, Tally &tally) {
  BudgetPlanner planner(graph);
  Options options;
  options.effort = 0.02;
  options.threads = 1;
  options.timeLimitSeconds = 0;
  Result least = planner.minimize(options);
  ASSERT_TRUE(least.hasPlan()) << least.message;
  int64_t found = least.plan.minimumBudget, proven = least.plan.provenMinimum;
  ASSERT_EQ(verify(graph, least.plan, found), "");
  ASSERT_LE(proven, found);
  tally.ratios.push_back(double(found) / double(proven));
  int64_t low = memoryBound(graph, 1000000);
  int64_t full = std::max(low, programPeak(graph));
  std::mt19937_64 rng(seed);
  for (int k = 0; k < budgets; ++k) {
    options.budget = low + int64_t(rng() % uint64_t(full - low + 1));
    bool between = options.budget >= proven && options.budget < found;
    if (k > 0) {
      ++(between                   ? tally.open
         : options.budget < proven ? tally.impossible
                                   : tally.plans);
      continue;
    }
    Result result = planner.solve(options);
    if (result.hasPlan()) {
      ASSERT_EQ(verify(graph, result.plan, options.budget), "");
      ASSERT_GE(options.budget, proven);
      ++tally.plans;
    } else if (result.status() == Status::Infeasible) {
      ASSERT_LT(options.budget, found) << result.message;
      ASSERT_GT(result.plan.provenMinimum, options.budget);
      ++tally.impossible;
    } else {
      ASSERT_EQ(result.status(), Status::Unknown) << result.message;
      ASSERT_TRUE(between) << result.message;
      ++tally.open;
    }
  }
}

Graph familyGraph(int family, uint64_t seed, int nodes) {
  switch (family) {
  case 0:
    return trainingGraph(seed, nodes, /*updates=*/false);
  case 1:
    return trainingGraph(seed, nodes, /*updates=*/true);
  case 2:
    return randomGraph(seed * 17 + 3, nodes, seed % 5 == 0);
  default:
    return layeredGraph(seed, nodes);
  }
}

// A search for the smallest budget that is cut short has looked for plans, not
// only for a proof that there are none.
TEST(BudgetTruth, ShortLimitsLeaveRoomForPlans) {
  double logs = 0;
  const uint64_t count = runsLongTests() ? 8 : 3;
  for (uint64_t seed = 0; seed < count; ++seed) {
    Graph graph = trainingGraph(seed + 70, 130);
    Options options;
    options.timeLimitSeconds = 0;
    options.workLimit = 6000000;
    Result result = BudgetPlanner(graph).minimize(options);
    ASSERT_TRUE(result.hasPlan()) << result.message;
    EXPECT_EQ(verify(graph, result.plan, result.plan.minimumBudget), "");
    logs += std::log(double(result.plan.minimumBudget) /
                     double(programPeak(graph)));
  }
  EXPECT_LT(std::exp(logs / double(count)), 0.8);
  std::cout << "smallest budget over the program order's need: "
            << std::exp(logs / double(count)) << "\n";
}

TEST(BudgetTruth, LargerGraphsAreSeldomLeftOpen) {
  const char *names[] = {"training", "training with updates",
                         "random, many nodes that run once", "layered"};
  Tally all;
  for (bool large : {false, true})
    for (int family = 0; family < 4; ++family) {
      Tally tally;
      // Irregular graphs of more nodes are printed, not drawn often; graphs of
      // more than 40 nodes are searched for long.
      int graphs = !large ? 10 : family < 2 ? 5 : 1;
      if (large && !runsLongTests())
        graphs = family < 2 ? 1 : 0; // of 41 nodes
      for (int k = 0; k < graphs; ++k) {
        int nodes =
            large ? 41 + (200 - 41) * k / 4 : 13 + (40 - 13) * k / (graphs - 1);
        Graph graph = familyGraph(family, uint64_t(k) + 1, nodes);
        ASSERT_EQ(validate(graph), "");
        drawPairs(graph, uint64_t(k), 12, tally);
        ASSERT_FALSE(HasFatalFailure());
      }
      if (!graphs)
        continue;
      double median = tally.median();
      std::cout << names[family] << (large ? ", 41 to 200" : ", 13 to 40")
                << " nodes: " << tally.plans << " plans, " << tally.impossible
                << " impossible, " << tally.open
                << " open; smallest found over proven minimum: median "
                << median << ", worst " << tally.ratios.back() << std::endl;
      if (!large || family < 2)
        EXPECT_LE(median, large ? 1.05 : 1.02) << names[family];
      if (family < 2)
        EXPECT_LE(tally.open * 20, tally.pairs()) << names[family];
      all.plans += tally.plans;
      all.impossible += tally.impossible;
      all.open += tally.open;
      all.ratios.insert(all.ratios.end(), tally.ratios.begin(),
                        tally.ratios.end());
    }
  double median = all.median();
  std::cout << "all: " << all.pairs() << " pairs, "
            << 100.0 * all.open / all.pairs() << " % open, median " << median
            << "\n";
  EXPECT_LE(median, 1.02);
  EXPECT_LE(all.open * 20, all.pairs());
}

} // namespace
