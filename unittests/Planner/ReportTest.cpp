//===- ReportTest.cpp - reports against the plans they speak of -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/Report.h"
#include "TestGraphs.h"
#include "ckopt/Planner/Pareto.h"
#include "ckopt/Planner/Simulator.h"

#include "llvm/Support/JSON.h"

#include <gtest/gtest.h>

using namespace ckopt;
using namespace ckopt::planner;
using namespace ckopt::planner::test;

namespace {

Result given(const Graph &graph, std::vector<NodeId> steps) {
  Result result;
  Simulation simulation = simulate(graph, steps);
  result.plan.cost = simulation.cost;
  result.plan.peak = simulation.peak;
  result.plan.steps = std::move(steps);
  result.plan.status = Status::Feasible;
  return result;
}

const ValueReport &of(const Report &report, ValueId value) {
  for (const ValueReport &entry : report.values)
    if (entry.value == value)
      return entry;
  ADD_FAILURE() << "value " << value << " is not reported";
  return report.values.front();
}

bool has(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

/// Layers 0, 1, 2 forward, 3 the loss, 4, 5, 6 backward. Activation 2 (of node
/// 1) is made again by step 5 although it is still there, activation 1 waits.
TEST(Report, TellsWhatAPlanDoes) {
  Graph graph = chain(3);
  Result result = given(graph, {0, 1, 2, 3, 4, 1, 5, 6});
  ReportOptions options;
  options.budget = 400;
  Report report = makeReport(graph, result, options);
  EXPECT_EQ(report.before.steps, 7);
  EXPECT_EQ(report.after.steps, 8);
  EXPECT_EQ(report.after.cost, report.before.cost + 1);
  EXPECT_EQ(of(report, 0).fate, Fate::Resident);
  EXPECT_EQ(of(report, 1).fate, Fate::Kept);
  EXPECT_EQ(of(report, 1).made, 1);
  EXPECT_EQ(of(report, 3).fate, Fate::Passing);
  ASSERT_EQ(report.nodes.size(), 1u);
  EXPECT_EQ(report.nodes[0].node, 1);
  EXPECT_EQ(report.nodes[0].runs, 2);
  EXPECT_EQ(report.nodes[0].extraCost, 1);
}

TEST(Report, SaysWhyAValueIsMadeAgain) {
  Graph graph = chain(4);
  // Activation 1 is gone from step 1 to the replay before node 7.
  Result result = given(graph, {0, 1, 2, 3, 4, 5, 6, 0, 7, 8});
  ReportOptions options;
  options.budget = result.plan.peak;
  Report report = makeReport(graph, result, options);
  const ValueReport &entry = of(report, 1);
  EXPECT_EQ(entry.fate, Fate::Again);
  EXPECT_EQ(entry.made, 2);
  EXPECT_EQ(entry.gone, 5);
  EXPECT_EQ(entry.cost, 1);
  EXPECT_TRUE(has(entry.reason, "gone for 5 steps")) << entry.reason;
  EXPECT_TRUE(has(entry.reason, "pass the budget by 100 B")) << entry.reason;
  options.budget = 2 * result.plan.peak;
  report = makeReport(graph, result, options);
  EXPECT_TRUE(has(of(report, 1).reason, "it alone would fit"))
      << of(report, 1).reason;
  EXPECT_TRUE(has(of(report, 2).reason, "there is room") ||
              has(of(report, 2).reason, "would cost"))
      << of(report, 2).reason;
}

/// A value that only a recomputation reads is explained by it.
TEST(Report, FollowsChainsOfRecomputation) {
  Graph graph = chain(4);
  Result result = given(graph, {0, 1, 2, 3, 4, 5, 0, 1, 6, 7, 8});
  Report report = makeReport(graph, result, {});
  EXPECT_EQ(of(report, 2).fate, Fate::Again);
  // Activation 1 is read by the replay of node 1 and later by node 7.
  EXPECT_TRUE(has(of(report, 1).reason, "gone for")) << of(report, 1).reason;
  graph.nodes[7].inputs = {7}; // Now only the replay reads it.
  report = makeReport(graph, given(graph, result.plan.steps), {});
  EXPECT_EQ(of(report, 1).reason, "the recomputation of n1 reads it");
}

/// Facts add up to the plan's figures, and the timeline to its load.
TEST(Report, AddsUpOnRandomGraphs) {
  int recomputing = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Graph graph = randomGraph(seed, 22, seed % 2);
    Result least = BudgetPlanner(graph).minimize(
        {.workLimit = 300000, .threads = 1, .effort = 0.05});
    ASSERT_TRUE(least.hasPlan()) << least.message;
    ReportOptions options;
    options.budget = least.plan.minimumBudget;
    Report report = makeReport(graph, least, options);
    double extra = 0;
    int again = 0;
    for (const NodeReport &entry : report.nodes)
      extra += entry.extraCost;
    EXPECT_NEAR(extra, least.plan.cost - report.before.cost, 1e-6);
    EXPECT_EQ(report.after.peak, planPeak(graph, least.plan, true));
    for (const ValueReport &entry : report.values) {
      EXPECT_FALSE(entry.reason.empty());
      EXPECT_LE(entry.firstStep, entry.lastStep);
      if (entry.fate == Fate::Again) {
        ++again;
        EXPECT_GT(entry.made, 1);
        EXPECT_GE(entry.cost, 0);
      }
    }
    recomputing += again > 0;
    Timeline timeline = planTimeline(graph, least, options);
    ASSERT_EQ(timeline.panels.size(), 2u);
    const int64_t peaks[] = {report.before.peak, report.after.peak};
    for (int i = 0; i < 2; ++i) {
      int64_t most = 0;
      for (const TimelineStep &step : timeline.panels[i].steps)
        most = std::max(most, step.total());
      // The load at the end, behind the last step, is not a step's.
      EXPECT_LE(most, peaks[i]);
      EXPECT_GE(most, peaks[i] * 9 / 10);
    }
    auto json = llvm::json::parse(printReport(graph, least, options));
    ASSERT_TRUE(bool(json)) << llvm::toString(json.takeError());
    EXPECT_EQ(json->getAsObject()->getString("format"), "ckopt-report/1");
  }
  EXPECT_GE(recomputing, 4);
}

TEST(Report, NamesThatAreSharedGetTheirIds) {
  Graph graph = chain(3);
  graph.valueIds.clear();
  for (size_t v = 0; v < graph.values.size(); ++v) {
    graph.values[v].name = v % 2 ? "act" : "v" + std::to_string(v);
    graph.valueIds.push_back(int64_t(100 + v));
  }
  graph.nodes[0].name = graph.nodes[1].name = "conv";
  Labels labels(graph);
  EXPECT_EQ(labels.value(0, -1), "v0");
  EXPECT_EQ(labels.value(1, 0), "act #101");
  EXPECT_EQ(labels.value(3, 2), "act #103");
  EXPECT_EQ(labels.node(0), "conv #0");
  EXPECT_EQ(labels.node(2), "n2");
  graph.values[2].name.clear();
  EXPECT_EQ(Labels(graph).value(2, 1), "value 102 of conv");
  // Reports use them.
  Result result = BudgetPlanner(graph).solve({.budget = 0});
  std::set<std::string> names;
  for (const ValueReport &entry : makeReport(graph, result, {}).values)
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
}

TEST(Report, CurvesFallWithTheBudget) {
  Graph graph = chain(8);
  ParetoCurve curve = paretoCurve(
      graph, {.workLimit = 2000000, .threads = 1, .effort = 0.1}, 6);
  ASSERT_GE(curve.points.size(), 3u);
  for (size_t i = 1; i < curve.points.size(); ++i) {
    EXPECT_GT(curve.points[i].budget, curve.points[i - 1].budget);
    EXPECT_LE(curve.points[i].result.plan.cost,
              curve.points[i - 1].result.plan.cost);
  }
  auto json = llvm::json::parse(printPareto(graph, curve));
  ASSERT_TRUE(bool(json)) << llvm::toString(json.takeError());
  Graph broken = chain(2);
  broken.nodes[0].cost = -1;
  EXPECT_TRUE(paretoCurve(broken, {}, 4).points.empty());
}

} // namespace
