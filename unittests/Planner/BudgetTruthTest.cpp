//===- BudgetTruthTest.cpp - a budget is kept or proven impossible --------===//
//
// Random pairs of graph and budget, from below every bound to above every need:
// the answer is a verified plan within the budget or a proof that there is
// none. For graphs of up to 12 nodes nothing else is allowed. For larger ones
// the share of open answers and the distance of the smallest budget found from
// the proven minimum are printed and kept from growing.
//
//===----------------------------------------------------------------------===//
#include "TestGraphs.h"
#include "ckopt/Planner/Simulator.h"
#include "ckopt/Planner/Verifier.h"

#include <gtest/gtest.h>

#include <algorithm>
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

/// Asks and checks what can be checked without trusting the planner.
Answer ask(const Graph &graph, int64_t budget, int64_t smallestKnown) {
  Options options;
  options.budget = budget;
  options.effort = 0.02;
  options.timeLimitSeconds = 0;
  Result result = solve(graph, options);
  if (result.hasPlan()) {
    EXPECT_EQ(verify(graph, result.plan, budget), "");
    EXPECT_LE(result.plan.lowerBound, result.plan.cost * (1 + 1e-9));
    EXPECT_LE(result.plan.provenMinimum, budget);
    return Answer::Plan;
  }
  EXPECT_NE(result.status, Status::Error) << result.message;
  if (result.status != Status::Infeasible)
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

TEST(BudgetTruth, LargerGraphsAreSeldomLeftOpen) {
  int counts[3] = {};
  std::vector<double> ratios;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    int nodes = 13 + int(seed * 107 / 7);
    Graph graph = randomGraph(seed * 17 + 3, nodes, false);
    int64_t full = programPeak(graph);
    int64_t smallest = full;
    for (int percent : {100, 85, 70}) {
      int64_t budget = full * percent / 100;
      Answer answer = ask(graph, budget, smallest);
      ++counts[int(answer)];
      if (answer == Answer::Plan)
        smallest = budget;
    }
    Options options;
    options.effort = 0.02;
    options.timeLimitSeconds = 0;
    Result least = minimize(graph, options);
    ASSERT_TRUE(least.hasPlan()) << least.message;
    ratios.push_back(double(least.plan.minimumBudget) /
                     double(least.plan.provenMinimum));
  }
  std::sort(ratios.begin(), ratios.end());
  double median = ratios[ratios.size() / 2];
  std::cout << counts[0] << " plans, " << counts[1] << " impossible, "
            << counts[2] << " open; smallest found over proven minimum: median "
            << median << ", worst " << ratios.back() << "\n";
  // With the little effort of a test; test/bench/README.md has the figures of
  // the default effort.
  EXPECT_LE(median, 1.6);
  EXPECT_LE(counts[2] * 2, counts[0] + counts[1] + counts[2]);
}

} // namespace
