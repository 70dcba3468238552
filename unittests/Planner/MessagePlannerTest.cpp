//===- MessagePlannerTest.cpp - plans whose messages go on meanwhile ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/MessagePlanner.h"
#include "TestGraphs.h"
#include "ckopt/Planner/Pareto.h"
#include "ckopt/Planner/Verifier.h"

#include <gtest/gtest.h>

using namespace ckopt::planner;
using namespace ckopt::planner::test;

namespace {

/// Hides as much of all messages as `share` times the other nodes' seconds.
class ShareClock : public MessageClock {
public:
  ShareClock(const Graph &graph, std::vector<char> isMessage, double share)
      : graph(graph), isMessage(std::move(isMessage)), share(share) {}
  bool mayHide() const override { return share > 0; }
  const std::vector<char> &messages() const override { return isMessage; }
  StepTime follow(const Plan &plan, int64_t) override {
    StepTime time;
    for (NodeId node : plan.steps)
      (isMessage[node] ? time.messages : time.kernels) +=
          graph.nodes[node].cost;
    time.exposed = std::max(0.0, time.messages - share * time.kernels);
    return time;
  }

private:
  const Graph &graph;
  std::vector<char> isMessage;
  double share;
};

/// Two values that are read twice, of which one fits in between: a gathered
/// one, and one of a kernel, which costs less to make again.
struct TwoValues {
  Graph graph;
  NodeId gather, kernel;

  TwoValues() {
    ValueId x = addValue(graph, 1, ValueKind::Persistent);
    ValueId a = addValue(graph, 100), b = addValue(graph, 100);
    ValueId c = addValue(graph, 1), d = addValue(graph, 1);
    gather = addNode(graph, 6, {x}, {a});
    kernel = addNode(graph, 4, {x}, {b});
    addNode(graph, 10, {a, b}, {c});
    graph.nodes[addNode(graph, 10, {c}, {d})].workspace = 150;
    addNode(graph, 10, {a, b, d}, {addValue(graph, 1, ValueKind::Output)});
  }
  Options options() const {
    Options options;
    options.budget = 260;
    options.threads = 1;
    return options;
  }
};

int64_t runs(const Plan &plan, NodeId node) {
  return std::count(plan.steps.begin(), plan.steps.end(), node);
}

} // namespace

TEST(MessagePlanner, GathersAgainWhatKernelsHide) {
  TwoValues two;
  Result first = BudgetPlanner(two.graph).solve(two.options());
  ASSERT_TRUE(first.hasPlan());
  EXPECT_EQ(runs(first.plan, two.kernel), 2);
  EXPECT_EQ(first.plan.cost, 44);

  ShareClock clock(two.graph, {1, 0, 0, 0, 0}, 1);
  MessagePlanner planner(two.graph, clock);
  TimedPlan best = planner.improve(first, two.options());
  EXPECT_EQ(runs(best.result.plan, two.gather), 2);
  EXPECT_EQ(best.time.seconds(), 34);
  EXPECT_EQ(best.time.messages, 12);
  // The plan's own cost still counts messages, and so do its bounds.
  EXPECT_EQ(best.result.plan.cost, 46);
  EXPECT_EQ(best.result.plan.lowerBound, first.plan.lowerBound);
  EXPECT_EQ(best.result.plan.status, Status::Feasible);
  EXPECT_EQ(verify(two.graph, best.result.plan, two.options().budget), "");
}

TEST(MessagePlanner, KeepsThePlanWhereMessagesBlock) {
  TwoValues two;
  Result first = BudgetPlanner(two.graph).solve(two.options());
  ShareClock clock(two.graph, {1, 0, 0, 0, 0}, 0);
  TimedPlan best =
      MessagePlanner(two.graph, clock).improve(first, two.options());
  EXPECT_EQ(best.result.plan.steps, first.plan.steps);
  EXPECT_EQ(best.time.seconds(), first.plan.cost);
}

TEST(MessagePlanner, TakesAHintThatIsFaster) {
  TwoValues two;
  Options options = two.options();
  Result first = BudgetPlanner(two.graph).solve(options);
  Plan hint;
  hint.steps = {0, 1, 2, 3, 0, 4};
  options.hint = &hint;
  options.workLimit = 1;
  ShareClock clock(two.graph, {1, 0, 0, 0, 0}, 1);
  TimedPlan best = MessagePlanner(two.graph, clock).improve(first, options);
  EXPECT_EQ(best.time.seconds(), 34);
}

/// Never slower, always valid, never below the bound, the same twice.
TEST(MessagePlanner, RandomGraphs) {
  for (uint64_t seed = 0; seed < (runsLongTests() ? 200 : 20); ++seed) {
    Graph graph = randomGraph(seed, 14, seed % 2);
    std::vector<char> isMessage(graph.nodes.size());
    for (size_t n = 0; n < isMessage.size(); ++n)
      isMessage[n] = (n + seed) % 3 == 0;
    ShareClock clock(graph, isMessage, 0.5);
    Options options;
    options.threads = 1;
    options.pack = true;
    Result least = BudgetPlanner(graph).minimize(options);
    if (!least.hasPlan())
      continue;
    options.budget = least.plan.minimumBudget + int64_t(seed) * 8;
    Result first = BudgetPlanner(graph).solve(options);
    ASSERT_TRUE(first.hasPlan()) << seed;
    MessagePlanner planner(graph, clock);
    TimedPlan best = planner.improve(first, options);
    EXPECT_LE(best.time.seconds(),
              clock.follow(first.plan, options.budget).seconds())
        << seed;
    EXPECT_EQ(verify(graph, best.result.plan, options.budget), "") << seed;
    EXPECT_GE(best.time.seconds(), planner.bound(options.budget) * (1 - 1e-9))
        << seed;
    EXPECT_LE(best.result.plan.lowerBound, best.result.plan.cost * (1 + 1e-9))
        << seed;
    TimedPlan again = MessagePlanner(graph, clock).improve(first, options);
    EXPECT_EQ(best.result.plan.steps, again.result.plan.steps) << seed;
  }
}

TEST(MessagePlanner, CurvesFallWithTheBudget) {
  TwoValues two;
  ShareClock clock(two.graph, {1, 0, 0, 0, 0}, 1);
  Options options = two.options();
  ParetoCurve curve = paretoCurve(two.graph, options, 8, nullptr, &clock);
  ASSERT_FALSE(curve.points.empty());
  double last = curve.points.front().cost;
  for (const ParetoPoint &point : curve.points) {
    EXPECT_LE(point.cost, last);
    last = point.cost;
    ASSERT_TRUE(point.time);
    EXPECT_EQ(point.cost, point.time->kernels + point.time->exposed);
    EXPECT_LE(point.lowerBound, point.cost);
  }
  EXPECT_EQ(last, 34);
  EXPECT_EQ(curve.baseCost, 34);
}
