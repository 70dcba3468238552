//===- AlternativesTest.cpp - choosing among equal ways -------------------===//
#include "TestGraphs.h"
#include "ckopt/Planner/Solve.h"
#include "ckopt/Planner/Verifier.h"

#include <gtest/gtest.h>

#include <limits>

using namespace ckopt::planner;
using namespace ckopt::planner::test;

namespace {

Options quick(int64_t budget) {
  Options options;
  options.budget = budget;
  options.effort = 0.01;
  return options;
}

/// Gives some nodes of a random graph a second way to compute their result.
Graph withAlternatives(uint64_t seed, int nodes, int most) {
  Graph graph = randomGraph(seed, nodes, false);
  for (size_t n = 2; n < graph.nodes.size() && most > 0; n += 2) {
    Node &node = graph.nodes[n];
    if (node.inputs.empty() || !node.mutates.empty())
      continue;
    ValueId other = graph.nodes[n - 2].outputs.empty()
                        ? node.inputs.front()
                        : graph.nodes[n - 2].outputs.front();
    bool overwritten = false; // Reading it later would need another order.
    for (const Node &writer : graph.nodes)
      for (ValueId v : writer.mutates)
        overwritten |= v == other;
    if (overwritten || graph.values[other].aliasOf >= 0)
      continue;
    node.alternatives = {{node.inputs, node.cost}, {{other}, node.cost + 1}};
    --most;
  }
  return graph;
}

/// All choices, each planned as a graph of its own: the best of them is what
/// the planner answers, and its bound is below all.
TEST(Alternatives, TheBestOfAllChoicesIsFound) {
  int planned = 0, second = 0;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    Graph graph = withAlternatives(seed, 8, 3);
    ASSERT_EQ(validate(graph), "") << seed;
    std::vector<NodeId> nodes;
    for (size_t n = 0; n < graph.nodes.size(); ++n)
      if (!graph.nodes[n].alternatives.empty())
        nodes.push_back(NodeId(n));
    Result least = minimize(graph, quick(0));
    ASSERT_TRUE(least.hasPlan()) << least.message;
    int64_t budget = least.plan.minimumBudget + int64_t(seed % 3) * 40;
    Result result = solve(graph, quick(budget));
    ASSERT_TRUE(result.hasPlan()) << result.message;
    EXPECT_EQ(verify(graph, result.plan, budget), "");
    ASSERT_EQ(result.plan.choices.size(), nodes.size());
    double best = std::numeric_limits<double>::infinity();
    for (int mask = 0; mask < 1 << nodes.size(); ++mask) {
      Graph plain = graph;
      for (size_t i = 0; i < nodes.size(); ++i) {
        Node &node = plain.nodes[nodes[i]];
        node.inputs = node.alternatives[mask >> i & 1].inputs;
        node.cost = node.alternatives[mask >> i & 1].cost;
        node.alternatives.clear();
        std::erase_if(node.reuse, [&](auto pair) {
          return std::find(node.inputs.begin(), node.inputs.end(),
                           pair.first) == node.inputs.end();
        });
      }
      Result each = solve(plain, quick(budget));
      if (each.hasPlan())
        best = std::min(best, each.plan.cost);
    }
    EXPECT_EQ(result.plan.cost, best) << "seed " << seed;
    EXPECT_LE(result.plan.lowerBound, best);
    ++planned;
    for (auto [node, index] : result.plan.choices)
      second += index == 1;
  }
  EXPECT_EQ(planned, 10);
  EXPECT_GT(second, 1); // The second way is worth taking now and then.
}

/// A gradient that may read a ReLU's input or its output: with the output kept
/// anyway, reading it saves the input's bytes, so no budget forces a replay.
TEST(Alternatives, ReadsWhatIsKeptAnyway) {
  Graph graph;
  const int layers = 40;
  auto value = [&](int64_t bytes, ValueKind kind = ValueKind::Temp) {
    graph.values.push_back({bytes, kind, -1, ""});
    return ValueId(graph.values.size() - 1);
  };
  auto node = [&](std::vector<ValueId> in, ValueId out, double cost) {
    Node n;
    n.inputs = std::move(in);
    n.outputs = {out};
    n.cost = cost;
    graph.nodes.push_back(n);
    return graph.nodes.size() - 1;
  };
  std::vector<ValueId> pre, post{value(100, ValueKind::Input)};
  for (int i = 0; i < layers; ++i) {
    pre.push_back(value(100));
    node({post.back()}, pre.back(), 50);
    post.push_back(value(100));
    node({pre.back()}, post.back(), 5);
  }
  ValueId grad = value(100);
  node({post.back()}, grad, 5);
  for (int i = layers - 1; i >= 0; --i) {
    ValueId dpre = value(100), dpost = value(100);
    size_t n = node({grad, pre[i]}, dpre, 5);
    graph.nodes[n].alternatives = {{{grad, pre[i]}, 5},
                                   {{grad, post[i + 1]}, 5}};
    node({dpre, post[i]}, dpost,
         60); // the layer's own gradient reads its input
    grad = dpost;
  }
  graph.values[grad].kind = ValueKind::Output;
  ASSERT_EQ(validate(graph), "");
  int64_t budget = (layers + 5) * 100;
  Result result = solve(graph, quick(budget));
  ASSERT_TRUE(result.hasPlan()) << result.message;
  EXPECT_EQ(result.plan.cost, baseCost(graph));
  EXPECT_EQ(verify(graph, result.plan, budget), "");
  // Where the backward part begins both are there anyway.
  for (auto [n, index] : result.plan.choices)
    if (n > 2 * layers + 1)
      EXPECT_EQ(index, 1) << "node " << n;
}

TEST(Alternatives, ChoicesAreChecked) {
  Graph graph = withAlternatives(3, 8, 2);
  Result result = solve(graph, quick(0));
  ASSERT_TRUE(result.hasPlan()) << result.message;
  ASSERT_FALSE(result.plan.choices.empty());
  Plan plan = result.plan;
  plan.choices.front().second = 7;
  EXPECT_NE(verify(graph, plan, 0).find("chooses alternative 7"),
            std::string::npos);
  plan = result.plan;
  plan.choices.pop_back();
  EXPECT_NE(verify(graph, plan, 0).find("does not choose"), std::string::npos);
  plan = result.plan;
  plan.choices.push_back({0, 0});
  EXPECT_NE(verify(graph, plan, 0).find("has no alternatives"),
            std::string::npos);
}

} // namespace
