//===- UnitsTest.cpp - the units of a graph decide nothing ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Properties: multiplying all costs or all bytes by a constant gives the same
// plan; the time that kernels take to start does not affect the smallest
// budget; a plan found with other costs and given as a hint is never better
// than the answer.
//
//===----------------------------------------------------------------------===//
#include "Model/Canonical.h"
#include "TestGraphs.h"
#include "ckopt/Planner/Verifier.h"
#include "gtest/gtest.h"

using namespace ckopt::planner;
using namespace ckopt::planner::test;

static Graph scaled(Graph graph, double cost, int64_t bytes) {
  for (Node &node : graph.nodes) {
    node.cost *= cost;
    node.workspace *= bytes;
  }
  for (Value &value : graph.values)
    value.bytes *= bytes;
  graph.alignment *= bytes;
  return graph;
}

static double costOf(const Graph &graph, const Plan &plan) {
  double cost = 0;
  for (NodeId n : plan.steps)
    cost += graph.nodes[n].cost;
  return cost;
}

static std::vector<Graph> someGraphs() {
  return {randomGraph(3, 6), randomGraph(5, 30), randomGraph(9, 40, true),
          chain(16)};
}

static Options packed() {
  Options options;
  options.pack = true;
  options.threads = 1;
  options.timeLimitSeconds = 0;
  options.effort = 0.1;
  options.workLimit = 500000;
  return options;
}

/// Returns a budget between the smallest one and the need without
/// recomputation.
static int64_t tightBudget(const Graph &graph, Options options) {
  int64_t least = BudgetPlanner(graph).minimize(options).plan.minimumBudget;
  options.budget = 0;
  return least + (BudgetPlanner(graph).solve(options).plan.arena - least) / 3;
}

TEST(Units, OfCostsDecideNothing) {
  for (const Graph &graph : someGraphs()) {
    Options options = packed();
    options.budget = tightBudget(graph, options);
    Result known = BudgetPlanner(graph).solve(options),
           least = BudgetPlanner(graph).minimize(options);
    ASSERT_TRUE(known.hasPlan() && least.hasPlan());
    for (double factor : {400.0, 0.001, 7.0}) {
      Graph other = scaled(graph, factor, 1);
      Result result = BudgetPlanner(other).solve(options);
      EXPECT_EQ(result.plan.steps, known.plan.steps) << factor;
      EXPECT_EQ(result.plan.offsets, known.plan.offsets) << factor;
      EXPECT_EQ(result.status(), known.status()) << factor;
      EXPECT_NEAR(result.plan.cost, known.plan.cost * factor,
                  1e-9 * result.plan.cost);
      EXPECT_EQ(BudgetPlanner(other).minimize(options).plan.steps,
                least.plan.steps);
    }
  }
}

TEST(Units, OfBytesDecideNothing) {
  for (const Graph &graph : someGraphs()) {
    Options options = packed();
    options.budget = tightBudget(graph, options);
    Result known = BudgetPlanner(graph).solve(options),
           least = BudgetPlanner(graph).minimize(options);
    ASSERT_TRUE(known.hasPlan() && least.hasPlan());
    for (int64_t factor : {7, 1000}) {
      Graph other = scaled(graph, 1, factor);
      Options more = options;
      more.budget *= factor;
      Result result = BudgetPlanner(other).solve(more);
      EXPECT_EQ(result.plan.steps, known.plan.steps) << factor;
      EXPECT_EQ(result.plan.arena, known.plan.arena * factor);
      EXPECT_EQ(result.plan.peak, known.plan.peak * factor);
      EXPECT_EQ(BudgetPlanner(other).minimize(more).plan.minimumBudget,
                least.plan.minimumBudget * factor);
      // Bytes between two units are of no use.
      more.budget += factor - 1;
      EXPECT_EQ(BudgetPlanner(other).solve(more).plan.steps, known.plan.steps);
    }
  }
}

TEST(Units, LessThanOneUnitIsTooLittle) {
  Graph graph = scaled(chain(20), 1, 512);
  Options options = packed();
  options.budget = 1;
  EXPECT_EQ(BudgetPlanner(graph).solve(options).status(), Status::Infeasible);
}

TEST(Units, WhatKernelsTakeToStartDecidesNoBytes) {
  for (const Graph &graph : someGraphs()) {
    Options options = packed();
    double start = 3 * baseCost(graph) / double(graph.nodes.size());
    // The graph without the cost of its cheapest node.
    Graph without = graph, with = graph;
    double least = startCost(graph);
    for (NodeId n = 0; n < NodeId(graph.nodes.size()); ++n) {
      without.nodes[n].cost -= least;
      with.nodes[n].cost += start;
    }
    Result cheap = BudgetPlanner(without).minimize(options),
           dear = BudgetPlanner(with).minimize(options);
    ASSERT_TRUE(cheap.hasPlan() && dear.hasPlan());
    EXPECT_LE(dear.plan.minimumBudget, cheap.plan.minimumBudget);
    if (dear.plan.minimumBudget == cheap.plan.minimumBudget)
      EXPECT_LE(dear.plan.cost, costOf(with, cheap.plan) * (1 + 1e-9));
  }
}

TEST(Units, HintsByOtherCostsAreKept) {
  for (const Graph &graph : someGraphs()) {
    Options options = packed();
    options.budget = tightBudget(graph, options);
    Graph other = graph;
    for (Node &node : other.nodes)
      node.cost = 1; // Another model of costs altogether.
    Result hint = BudgetPlanner(other).solve(options);
    ASSERT_TRUE(hint.hasPlan());
    options.hint = &hint.plan;
    Result result = BudgetPlanner(graph).solve(options);
    ASSERT_TRUE(result.hasPlan());
    EXPECT_LE(result.plan.cost, costOf(graph, hint.plan) * (1 + 1e-9));
  }
}

TEST(Units, CanonicalCostsAreWholeWhereTheyCanBe) {
  Graph graph = chain(3);
  double costs[] = {0.003, 0.012, 0, 0.021, 0.009, 0.006, 0.003};
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    graph.nodes[n].cost = costs[n];
  CanonicalGraph canonical(graph);
  double whole[] = {1, 4, 0, 7, 3, 2, 1};
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    EXPECT_EQ(canonical.graph.nodes[n].cost, whole[n]);
  EXPECT_NEAR(canonical.costUnit, 0.003, 1e-15);
  EXPECT_EQ(canonical.byteUnit, 100);
  EXPECT_LE(canonical.boundUnit, canonical.costUnit);
  // Costs without a common unit keep their proportions.
  graph.nodes[0].cost = 0.0031415926535;
  graph.nodes[1].cost = 0.0027182818284;
  CanonicalGraph rough(graph);
  EXPECT_NEAR(rough.graph.nodes[0].cost / rough.graph.nodes[1].cost,
              0.0031415926535 / 0.0027182818284, 1e-9);
}
