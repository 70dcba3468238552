//===- ExactOrderTest.cpp - bounds and plans of a given order -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ExactOrder/GapExpand.h"
#include "ExactOrder/GapMilp.h"
#include "StateSearch.h"
#include "TestGraphs.h"
#include "ckopt/Planner/Bounds.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>

using namespace ckopt::planner;
using namespace ckopt::planner::test;

namespace {

std::vector<NodeId> programOf(const Problem &problem) {
  std::vector<NodeId> program(problem.numNodes);
  std::iota(program.begin(), program.end(), 0);
  return program;
}

/// Forward chain with skips and its gradient: every activation is read again.
Graph trainingGraph(uint64_t seed, int layers) {
  std::mt19937_64 rng(seed * 31 + 5);
  auto below = [&](uint64_t n) { return int64_t(rng() % n); };
  Graph graph;
  std::vector<ValueId> acts;
  std::vector<std::vector<ValueId>> reads;
  for (int i = 0; i < layers; ++i) {
    std::vector<ValueId> inputs;
    if (i > 0)
      inputs.push_back(acts.back());
    if (i > 1 && below(3) == 0)
      inputs.push_back(acts[below(i - 1)]);
    ValueId v = addValue(graph, 1 + below(9));
    addNode(graph, double(1 + below(9)), inputs, {v});
    acts.push_back(v);
    reads.push_back(inputs);
  }
  ValueId gradient = acts.back();
  for (int i = layers - 1; i >= 0; --i) {
    std::vector<ValueId> inputs = reads[i];
    if (std::find(inputs.begin(), inputs.end(), gradient) == inputs.end())
      inputs.push_back(gradient);
    if (below(2) &&
        std::find(inputs.begin(), inputs.end(), acts[i]) == inputs.end())
      inputs.push_back(acts[i]);
    ValueId v = addValue(graph, 1 + below(5));
    NodeId n = addNode(graph, double(1 + below(9)), inputs, {v});
    if (below(3) == 0)
      graph.nodes[n].reuse = {{gradient, v}};
    gradient = v;
  }
  return graph;
}

/// The bound never passes the optimum, and is it most of the time.
TEST(ExactOrder, BoundsAgreeWithStateSearch) {
  const char *asked = std::getenv("CKOPT_BRUTE_FORCE_CASES");
  uint64_t cases = asked ? std::strtoull(asked, nullptr, 10) / 10 : 300;
  int met = 0, tight = 0, fits = 0;
  for (uint64_t seed = 0; seed < cases; ++seed) {
    Graph graph = seed % 3 ? trainingGraph(seed, 4 + int(seed % 4))
                           : randomGraph(seed, 9);
    Problem problem(graph);
    std::vector<NodeId> program = programOf(problem);
    int64_t peak = simulate(problem, program, true).peak;
    Deadline deadline(0);
    ExactResult least =
        exactLeastPeak(problem, true, memoryBound(graph), program, deadline);
    ASSERT_TRUE(least.kind == ExactResult::Optimal);
    int64_t budget =
        least.leastPeak + (peak - least.leastPeak) * int64_t(seed / 3 % 3) / 3;
    ExactResult best = exactSearch(problem, budget, true, deadline);
    ASSERT_EQ(best.kind, ExactResult::Optimal);
    GapProblem gaps(problem, program);
    GapDecision decision = decideGaps(gaps, budget, {}, deadline);
    EXPECT_NE(decision.kind, MilpResult::Infeasible) << "seed " << seed;
    EXPECT_LE(problem.baseCost + decision.bound, best.cost * (1 + 1e-9))
        << "seed " << seed << " budget " << budget;
    if (best.cost <= problem.baseCost)
      continue;
    ++tight;
    met += problem.baseCost + decision.bound >= best.cost * (1 - 1e-9);
    auto steps = expandGaps(gaps, decision.dropped, budget);
    if (steps)
      fits += simulate(problem, *steps, true).peak <= budget;
  }
  EXPECT_GE(tight * 4, int(cases));
  EXPECT_GE(met * 3, tight * 2) << met << " of " << tight;
  EXPECT_GE(fits * 3, tight) << fits << " of " << tight;
}

} // namespace
