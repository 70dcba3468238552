//===- PolicyTest.cpp - regions, rules and repeated blocks ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/Policy.h"
#include "TestGraphs.h"
#include "ckopt/Planner/Simulator.h"
#include "ckopt/Planner/Solve.h"
#include "ckopt/Planner/Verifier.h"

#include <gtest/gtest.h>

using namespace ckopt::planner;
using namespace ckopt::planner::test;

namespace {

/// Layers f0, f1, ...: each reads the last one's result; gradients b(n-1), ...:
/// each reads the gradient so far, its layer's input and its layer's result.
struct Layers {
  Graph graph;
  Policy policy;
  std::vector<ValueId> activations; ///< [i]: input of layer i
  int32_t count;

  explicit Layers(int32_t count, int64_t bytes = 100) : count(count) {
    activations.push_back(addValue(graph, bytes, ValueKind::Input));
    for (int32_t i = 0; i < count; ++i) {
      activations.push_back(addValue(graph, bytes));
      addNode(graph, 1, {activations[i]}, {activations[i + 1]});
    }
    ValueId gradient = activations.back();
    for (int32_t i = count - 1; i >= 0; --i) {
      ValueId next =
          addValue(graph, bytes, i == 0 ? ValueKind::Output : ValueKind::Temp);
      std::vector<ValueId> reads{activations[i], activations[i + 1]};
      if (gradient != activations[i + 1])
        reads.push_back(gradient);
      addNode(graph, 2, reads, {next});
      gradient = next;
    }
    policy = Policy(graph.nodes.size());
    for (int32_t i = 0; i < count; ++i) {
      policy.backward[backwardOf(i)] = 1;
      policy.regionsKnown[backwardOf(i)] = 1;
    }
  }
  NodeId backwardOf(int32_t layer) const { return 2 * count - 1 - layer; }
  void setRegions(int32_t layer, std::vector<int32_t> regions) {
    policy.regions[layer] = regions;
    policy.regions[backwardOf(layer)] = regions;
  }
};

Result planWithout(const Graph &graph) {
  Options options;
  return BudgetPlanner(graph).solve(options);
}

std::vector<int> runs(const Graph &graph, const std::vector<NodeId> &steps) {
  std::vector<int> result(graph.nodes.size());
  for (NodeId n : steps)
    ++result[n];
  return result;
}

} // namespace

TEST(Policy, RegionsKeepTheirInputsOnly) {
  Layers layers(6);
  for (int32_t i = 0; i < 6; ++i)
    layers.setRegions(i, {i / 3});
  PolicyGraph constrained = applyPolicy(layers.graph, layers.policy);
  EXPECT_EQ(validate(constrained.graph), "");
  // The second region's input is kept: layer 2 does not run again. Nothing
  // reads what the second region makes in the forward pass (there is no loss):
  // it runs once, behind it.
  EXPECT_EQ(constrained.recomputed, (std::vector<NodeId>{0, 1}));
  EXPECT_TRUE(constrained.unable.empty());
  Result result = planWithout(constrained.graph);
  ASSERT_TRUE(result.hasPlan()) << result.message;
  Plan plan = restorePlan(layers.graph, constrained, result.plan, false);
  EXPECT_EQ(verify(layers.graph, plan, 0), "");
  EXPECT_EQ(plan.cost, 6 + 12 + 2);
  EXPECT_LT(plan.peak, planWithout(layers.graph).plan.peak);
}

TEST(Policy, NestedRegionsRunOnceMoreForEachDepth) {
  Layers layers(8);
  for (int32_t i = 0; i < 8; ++i)
    layers.setRegions(i, {i / 4, 10 + i / 2});
  PolicyGraph constrained = applyPolicy(layers.graph, layers.policy);
  Result result = planWithout(constrained.graph);
  ASSERT_TRUE(result.hasPlan()) << result.message;
  Plan plan = restorePlan(layers.graph, constrained, result.plan, false);
  EXPECT_EQ(verify(layers.graph, plan, 0), "");
  // Layer 4 opens the second outer region: its result is inside the first
  // inner one and is made in the forward pass, in the outer recomputation (to
  // reach the second inner region) and in the inner one.
  EXPECT_EQ(runs(layers.graph, plan.steps)[4], 3);
  // Layer 5 ends the inner region: kept by the outer recomputation.
  EXPECT_EQ(runs(layers.graph, plan.steps)[5], 2);
}

TEST(Policy, RecomputeRuleLetsGoOfOneValue) {
  Layers layers(4);
  layers.policy.recompute[1] = 1;
  PolicyGraph constrained = applyPolicy(layers.graph, layers.policy);
  EXPECT_EQ(constrained.recomputed, std::vector<NodeId>{1});
  Result result = planWithout(constrained.graph);
  Plan plan = restorePlan(layers.graph, constrained, result.plan, false);
  EXPECT_EQ(verify(layers.graph, plan, 0), "");
  // No copy of it is resident while the last layer runs.
  Simulation simulation = simulate(layers.graph, plan.steps);
  int32_t last = -1;
  for (size_t s = 0; s < plan.steps.size(); ++s)
    if (plan.steps[s] == 3)
      last = int32_t(s);
  for (const Copy &copy : simulation.copies)
    if (copy.value == layers.activations[2])
      EXPECT_FALSE(copy.made < last && copy.last >= last);
}

TEST(Policy, WhatOnlyTheBackwardPassReadsRunsOnlyThere) {
  Layers layers(3);
  // A node beside the layers, read by two gradients alone.
  Graph &graph = layers.graph;
  ValueId aside = addValue(graph, 100);
  Node node;
  node.cost = 1;
  node.inputs = {layers.activations[1]};
  node.outputs = {aside};
  graph.nodes.insert(graph.nodes.begin() + 3, node);
  for (NodeId n : {5, 6})
    graph.nodes[n].inputs.push_back(aside);
  layers.policy = Policy(graph.nodes.size());
  for (NodeId n = 4; n < 7; ++n)
    layers.policy.backward[n] = 1;
  layers.policy.recompute[3] = 1;
  PolicyGraph constrained = applyPolicy(graph, layers.policy);
  EXPECT_EQ(validate(constrained.graph), "");
  EXPECT_TRUE(constrained.recomputed.empty());
  Result result = planWithout(constrained.graph);
  ASSERT_TRUE(result.hasPlan()) << result.message;
  Plan plan = restorePlan(graph, constrained, result.plan, false);
  EXPECT_EQ(verify(graph, plan, 0), "");
  EXPECT_EQ(plan.steps.size(), graph.nodes.size());
  EXPECT_GT(std::find(plan.steps.begin(), plan.steps.end(), 3),
            std::find(plan.steps.begin(), plan.steps.end(), 2));
}

TEST(Policy, SavedNodesRunOnceInsideOfRegions) {
  Layers layers(4);
  for (int32_t i = 0; i < 4; ++i)
    layers.setRegions(i, {0});
  layers.policy.save[1] = 1;
  PolicyGraph constrained = applyPolicy(layers.graph, layers.policy);
  EXPECT_EQ(constrained.recomputed, std::vector<NodeId>{0});
  EXPECT_FALSE(constrained.graph.nodes[1].recompute);
}

TEST(Policy, WhatTheForwardPassOverwritesCannotBeReadAgain) {
  Layers layers(3);
  ValueId state = addValue(layers.graph, 8, ValueKind::Persistent);
  layers.graph.nodes[1].inputs.push_back(state);
  layers.graph.nodes[2].mutates.push_back(state);
  layers.graph.nodes[2].recompute = false;
  for (int32_t i = 0; i < 3; ++i)
    layers.setRegions(i, {0});
  PolicyGraph constrained = applyPolicy(layers.graph, layers.policy);
  EXPECT_EQ(constrained.unable, (std::vector<NodeId>{1, 2}));
  EXPECT_EQ(constrained.recomputed, std::vector<NodeId>{0});
}

TEST(Policy, CopiesComeBeforeUpdatesOfWhatTheyRead) {
  Layers layers(3);
  ValueId weight = addValue(layers.graph, 8, ValueKind::Persistent);
  layers.graph.nodes[0].inputs.push_back(weight);
  // The update stands right behind the first gradient.
  layers.graph.nodes[3].mutates.push_back(weight);
  layers.graph.nodes[3].recompute = false;
  layers.setRegions(0, {0});
  layers.policy.regionsKnown.assign(6, 0);
  PolicyGraph constrained = applyPolicy(layers.graph, layers.policy);
  EXPECT_EQ(validate(constrained.graph), "");
  Result result = planWithout(constrained.graph);
  ASSERT_TRUE(result.hasPlan()) << result.message;
  Plan plan = restorePlan(layers.graph, constrained, result.plan, false);
  EXPECT_EQ(verify(layers.graph, plan, 0), "");
  EXPECT_EQ(runs(layers.graph, plan.steps)[0], 2);
}

/// For all random regions and rules, the plan is valid, saved nodes run once,
/// and values inside a region do not cross its boundary.
TEST(Policy, RandomPoliciesGiveValidPlansWithinTheBudget) {
  std::mt19937 random(7);
  int fitted = 0;
  for (int round = 0; round < 12; ++round) {
    int32_t count = 3 + int32_t(random() % 9);
    Layers layers(count, 64 + int64_t(random() % 200));
    Graph &graph = layers.graph;
    // Skips make the layers a graph.
    for (NodeId n = 2; n < count; ++n)
      if (random() % 3 == 0)
        graph.nodes[n].inputs.push_back(
            layers.activations[random() % size_t(n)]);
    for (int32_t i = 0; i < count; ++i) {
      if (random() % 4 == 0)
        continue;
      std::vector<int32_t> path{i / 4};
      if (random() % 2)
        path.push_back(100 + i / 2);
      layers.setRegions(i, path);
      layers.policy.save[i] = random() % 6 == 0;
    }
    for (int32_t i = 0; i < count; ++i) {
      layers.policy.recompute[i] = random() % 4 == 0;
      layers.policy.regionsKnown[layers.backwardOf(i)] = random() % 2;
    }
    ASSERT_EQ(validate(graph), "");
    PolicyGraph constrained = applyPolicy(graph, layers.policy);
    ASSERT_EQ(validate(constrained.graph), "");
    Options options;
    options.effort = 0.1;
    options.pack = true;
    options.arenaHoldsAll = false;
    Result result = BudgetPlanner(constrained.graph).solve(options);
    ASSERT_TRUE(result.hasPlan()) << result.message;
    for (int part = 0; part < 2; ++part) {
      Plan plan = restorePlan(graph, constrained, result.plan, false);
      EXPECT_EQ(verify(graph, plan, 0), "");
      std::vector<int> times = runs(graph, plan.steps);
      for (NodeId n = 0; n < int32_t(graph.nodes.size()); ++n)
        if (layers.policy.save[n])
          EXPECT_EQ(times[n], 1);
      for (NodeId n : constrained.recomputed)
        EXPECT_GE(times[n], 2);
      fitted += part;
      options.budget = result.plan.arena * 9 / 10;
      result = BudgetPlanner(constrained.graph).solve(options);
      if (!result.hasPlan())
        break;
    }
  }
  EXPECT_GT(fitted, 2);
}

TEST(Policy, RepeatsAreFoundWithTheirNarrowestCuts) {
  //                        0  1  2  3  4  5  6  7  8  9 10 11
  std::vector<int32_t> labels{9, 8, 1, 2, 3, 1, 2, 3, 1, 2, 3, 7};
  std::vector<double> weights(labels.size(), 1);
  std::vector<int64_t> cuts(labels.size() + 1, 50);
  auto found = findRepeats(labels, weights, cuts);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].first, 2);
  EXPECT_EQ(found[0].period, 3);
  EXPECT_EQ(found[0].count, 3);
  // Narrow cuts one label later: one block less, and between 3, 1 and 2.
  cuts[3] = cuts[6] = cuts[9] = 1;
  found = findRepeats(labels, weights, cuts);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].first, 3);
  EXPECT_EQ(found[0].count, 2);
  EXPECT_TRUE(findRepeats({1, 2, 3, 4}, {1, 1, 1, 1}, {}).empty());
}
