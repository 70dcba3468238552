//===- BruteForceTest.cpp - agreement with exhaustive search --------------===//
//
// The planning problem as a pebble game (PebbleGame.h) gives the least cost
// within a budget, and so what is feasible at all.
//
//===----------------------------------------------------------------------===//
#include "PebbleGame.h"
#include "TestGraphs.h"
#include "ckopt/Planner/Bounds.h"
#include "ckopt/Planner/Solve.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace ckopt::planner;
using namespace ckopt::planner::test;

namespace {

/// A small graph without views: chains with skips, reuse, updates, `after`.
Graph tinyGraph(uint64_t seed) {
  std::mt19937_64 rng(seed);
  auto below = [&](uint64_t n) { return int64_t(rng() % n); };
  Graph graph;
  std::vector<ValueId> values{addValue(graph, 1 + below(4), ValueKind::Input)};
  ValueId param = addValue(graph, 1 + below(3), ValueKind::Persistent);
  int nodes = 5 + int(below(3));
  for (int i = 0; i < nodes; ++i) {
    std::vector<ValueId> inputs{values.back()};
    ValueId extra = values[below(values.size())];
    if (extra != inputs[0])
      inputs.push_back(extra);
    if (below(4) == 0)
      inputs.push_back(param);
    NodeId n = addNode(graph, 1 + below(5), inputs, {});
    Node &node = graph.nodes[n];
    if (i == nodes - 1) {
      node.mutates = {param};
      continue;
    }
    ValueId v = addValue(graph, 1 + below(6),
                         below(8) ? ValueKind::Temp : ValueKind::Output);
    graph.nodes[n].outputs = {v};
    if (below(3) == 0)
      for (ValueId input : inputs)
        graph.nodes[n].reuse.push_back({input, v});
    graph.nodes[n].workspace = below(4) == 0 ? below(5) : 0;
    graph.nodes[n].recompute = below(5) != 0;
    if (n > 1 && below(4) == 0)
      graph.nodes[n].after = {NodeId(below(n))};
    values.push_back(v);
  }
  return graph;
}

TEST(BruteForce, AgreesOnTinyGraphs) {
  int feasible = 0, found = 0, optimal = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Graph graph = tinyGraph(seed);
    ASSERT_EQ(validate(graph), "");
    int64_t bound = memoryBound(graph);
    PebbleGame any(graph, false), ordered(graph, true);
    std::vector<NodeId> program(graph.nodes.size());
    std::iota(program.begin(), program.end(), 0);
    for (int64_t budget = std::max<int64_t>(1, bound - 1); budget < bound + 8;
         budget += 2) {
      double truth = any.solve(budget);
      if (budget < bound)
        EXPECT_LT(truth, 0) << "bound " << bound << " seed " << seed;
      Options options;
      options.budget = budget;
      options.effort = 0.2;
      Result result = solve(graph, options);
      ASSERT_NE(result.status, Status::Error) << result.message;
      if (result.status == Status::Infeasible)
        EXPECT_LT(truth, 0) << "seed " << seed << " budget " << budget;
      feasible += truth >= 0;
      if (result.hasPlan()) {
        ASSERT_GE(truth, 0) << "seed " << seed << " budget " << budget;
        ++found;
        EXPECT_GE(result.plan.cost, truth - 1e-9);
        EXPECT_LE(result.plan.lowerBound, truth + 1e-9);
        optimal += result.plan.cost <= truth + 1e-9;
      }
      double inOrder = ordered.solve(budget);
      if (inOrder >= 0)
        EXPECT_LE(orderBound(graph, program, budget), inOrder * (1 + 1e-9))
            << "seed " << seed << " budget " << budget;
    }
  }
  // The heuristics may miss a plan, but rarely.
  EXPECT_GE(found, feasible * 95 / 100) << found << " of " << feasible;
  EXPECT_GE(optimal, found * 90 / 100) << optimal << " of " << found;
}

} // namespace
