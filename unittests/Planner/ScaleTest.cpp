//===- ScaleTest.cpp - construction on deep graphs and small budgets ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Construct/Construct.h"
#include "Construct/Executor.h"
#include "Model/Order.h"
#include "gtest/gtest.h"

#include <limits>

using namespace ckopt::planner;

namespace {

/// A chain of `depth` forward nodes and as many backward ones; `uneven`: sizes
/// and costs differ.
Graph pyramid(int depth, bool uneven) {
  Graph graph;
  auto add = [&](double cost, std::vector<ValueId> inputs, int64_t bytes) {
    Node node;
    node.cost = cost;
    node.inputs = std::move(inputs);
    node.outputs = {ValueId(graph.values.size())};
    graph.values.push_back({bytes, ValueKind::Temp, -1, ""});
    graph.nodes.push_back(node);
    return node.outputs[0];
  };
  std::vector<ValueId> kept{add(1, {}, 64)};
  for (int i = 1; i < depth; ++i)
    kept.push_back(add(uneven ? 1 + i % 7 : 1, {kept.back()},
                       uneven ? 64 * (1 + i % 5) : 64));
  ValueId g = add(1, {kept.back()}, 64);
  for (int i = depth; i-- > 0;)
    g = add(2, {g, kept[i]}, 64);
  return graph;
}

/// Two states, each made of both before: a depth-first replay would double at
/// every step.
Graph recurrence(int depth) {
  Graph graph;
  auto add = [&](std::vector<ValueId> inputs) {
    Node node;
    node.cost = 1;
    node.inputs = std::move(inputs);
    node.outputs = {ValueId(graph.values.size())};
    graph.values.push_back({64, ValueKind::Temp, -1, ""});
    graph.nodes.push_back(node);
    return node.outputs[0];
  };
  ValueId c = add({}), h = add({});
  std::vector<ValueId> states;
  for (int i = 0; i < depth; ++i) {
    ValueId left = add({c, h}), right = add({h, c});
    c = add({left, right});
    h = add({right, c});
    states.push_back(c);
  }
  ValueId g = add({h});
  for (int i = depth; i-- > 0;)
    g = add({g, states[i]});
  return graph;
}

struct Outcome {
  std::vector<Candidate> fitting;
  int64_t least = std::numeric_limits<int64_t>::max();
  int64_t work = 0;
};

Outcome construct(const Graph &graph, double ratio,
                  void (*run)(StrategyContext &)) {
  Problem problem(graph);
  std::vector<std::vector<NodeId>> orders{programOrder(problem)};
  int64_t peak = simulate(problem, orders[0], true).peak;
  int64_t budget = int64_t(ratio * double(peak));
  Deadline deadline(0);
  Outcome outcome;
  std::vector<Candidate> known;
  auto report = [&](std::vector<NodeId> steps) {
    Simulation simulation = simulate(problem, steps, true);
    outcome.least = std::min(outcome.least, simulation.peak);
    if (simulation.peak > budget)
      return false;
    outcome.fitting.push_back(
        {std::move(steps), simulation.cost, simulation.peak, ""});
    return true;
  };
  StrategyContext context{
      problem, orders,   budget, true,   1,
      1,       deadline, known,  report, [](double, bool) {}};
  run(context);
  outcome.work = deadline.spent();
  return outcome;
}

double cheapest(const Outcome &outcome) {
  double cost = 1e300;
  for (const Candidate &candidate : outcome.fitting)
    cost = std::min(cost, candidate.cost);
  return cost;
}

TEST(Scale, SegmentsReachFarBelowTheSquareRoot) {
  // 256 nodes keep 256 values; one level of checkpoints needs about 32 of
  // them, two a good deal less.
  Graph graph = pyramid(256, false);
  Outcome outcome = construct(graph, 0.08, runSegments);
  ASSERT_FALSE(outcome.fitting.empty());
  EXPECT_LT(cheapest(outcome), 2.5 * baseCost(graph));
}

TEST(Scale, ChainsNearTheOptimumAtHalf) {
  // At half the bytes half of the nodes run again: 1 of 3 cost units each.
  Graph graph = pyramid(200, false);
  for (auto run : {runPrices, runSegments}) {
    Outcome outcome = construct(graph, 0.5, run);
    ASSERT_FALSE(outcome.fitting.empty());
    EXPECT_LT(cheapest(outcome), 1.22 * baseCost(graph));
  }
}

TEST(Scale, ReplaysOfARecurrenceStayLinear) {
  Graph graph = recurrence(16);
  Problem problem(graph);
  std::vector<NodeId> order = programOrder(problem);
  ExecutorOptions options;
  options.budget = std::numeric_limits<int64_t>::max() / 4;
  options.keepFrom.assign(problem.numValues, problem.numNodes);
  options.anchor.assign(problem.numValues, -1);
  options.turn = 2 + 4 * 16;
  auto steps = execute(problem, order, options);
  ASSERT_TRUE(steps);
  // One replay a state, at most the whole forward pass each.
  EXPECT_LT(steps->size(), size_t(16 * 4 * 16));
  EXPECT_GT(steps->size(), order.size());
}

TEST(Scale, FillNeverCostsMoreNorPassesTheBudget) {
  Graph graph = pyramid(120, true);
  Problem problem(graph);
  std::vector<NodeId> order = programOrder(problem);
  int64_t peak = simulate(problem, order, true).peak;
  for (double ratio : {0.9, 0.6, 0.4, 0.25}) {
    ExecutorOptions options;
    options.budget = int64_t(0.2 * double(peak));
    auto steps = execute(problem, order, options);
    ASSERT_TRUE(steps);
    Simulation before = simulate(problem, *steps, true);
    int64_t budget = int64_t(ratio * double(peak));
    Deadline deadline(0);
    std::vector<NodeId> filled =
        fillReplays(problem, *steps, budget, {}, deadline);
    Simulation after = simulate(problem, filled, true);
    EXPECT_LE(after.cost, before.cost);
    EXPECT_LE(after.peak, std::max(budget, before.peak));
    EXPECT_LT(after.cost, before.cost) << "memory is left at " << ratio;
    EXPECT_GT(deadline.spent(), 0);
  }
}

TEST(Scale, StrategiesCountTheirWorkAndRepeat) {
  Graph graph = pyramid(300, true);
  for (auto run : {runEviction, runPrices, runSegments}) {
    Outcome one = construct(graph, 0.3, run), two = construct(graph, 0.3, run);
    EXPECT_GT(one.work, 0);
    EXPECT_EQ(one.work, two.work);
    ASSERT_EQ(one.fitting.size(), two.fitting.size());
    for (size_t i = 0; i < one.fitting.size(); ++i)
      EXPECT_EQ(one.fitting[i].steps, two.fitting[i].steps);
  }
}

} // namespace
