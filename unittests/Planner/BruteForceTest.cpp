//===- BruteForceTest.cpp - agreement with exhaustive search --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random graphs of 1 to 9 nodes with every feature of ckopt-graph/1, each
// planned for several budgets around the tight ones: what the planner finds
// must hold and mostly be the optimum, what it calls optimal or infeasible must
// be, and its bounds must be valid. PlanReference computes the truth.
//
//===----------------------------------------------------------------------===//
#include "Exact/ExactSearch.h"
#include "PlanReference.h"
#include "TestGraphs.h"
#include "ckopt/Planner/Bounds.h"
#include "ckopt/Planner/Simulator.h"
#include "ckopt/Planner/Solve.h"
#include "ckopt/Planner/Verifier.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <numeric>

using namespace ckopt::planner;
using namespace ckopt::planner::test;

namespace {

/// Makes one random graph; `seen` counts the graphs that have a feature.
class SmallGraph {
public:
  SmallGraph(uint64_t seed, std::map<std::string, int> &seen)
      : rng(seed * 7919 + 13), seen(seen), nodes(1 + int(seed % 9)) {}
  Graph make();

private:
  int64_t below(int64_t n) { return int64_t(rng() % uint64_t(n)); }
  bool oneIn(int64_t n) { return below(n) == 0; }
  void note(const char *feature) { has[feature] = true; }
  ValueId pick() {
    // Mostly recent values, sometimes old ones.
    int64_t count = int64_t(values.size());
    int64_t back = oneIn(3) ? below(count) : below(std::min<int64_t>(3, count));
    return values[count - 1 - back];
  }
  std::vector<ValueId> readList();
  void addOutputs(NodeId n);
  void addRest(NodeId n);

  std::mt19937_64 rng;
  std::map<std::string, int> &seen;
  std::map<std::string, bool> has;
  int nodes;
  Graph graph;
  std::vector<ValueId> values;
  ValueId param = -1;
};

std::vector<ValueId> SmallGraph::readList() {
  std::vector<ValueId> list;
  for (int64_t k = oneIn(8) ? 0 : 1 + below(2); k > 0; --k)
    if (ValueId v = pick();
        std::find(list.begin(), list.end(), v) == list.end())
      list.push_back(v);
  if (oneIn(6))
    list.push_back(param);
  return list;
}

void SmallGraph::addOutputs(NodeId n) {
  int64_t count = oneIn(8) ? 0 : 1 + oneIn(3);
  count = std::min<int64_t>(count, 16 - int64_t(graph.values.size()));
  if (count > 1)
    note("several outputs");
  for (int64_t k = 0; k < count; ++k) {
    ValueId base = -1;
    const std::vector<ValueId> &mine = graph.nodes[n].outputs;
    if (k == 1 && oneIn(3)) {
      base = mine[0];
      note("view of its own result");
    } else if (oneIn(3)) {
      base = pick();
      if (std::find(mine.begin(), mine.end(), base) != mine.end())
        base = -1;
    }
    if (base >= 0) {
      note("view");
      if (graph.values[base].aliasOf >= 0)
        note("view of a view");
      if (graph.values[base].kind != ValueKind::Temp)
        note("view of what is not temporary");
    }
    ValueKind kind = oneIn(7) ? ValueKind::Output : ValueKind::Temp;
    if (kind == ValueKind::Output)
      note("output");
    int64_t size = oneIn(12) ? 0 : 1 + below(6);
    if (size == 0 && base < 0)
      note("no bytes");
    ValueId v = addValue(graph, size, kind, base);
    graph.nodes[n].outputs.push_back(v);
  }
}

void SmallGraph::addRest(NodeId n) {
  Node &node = graph.nodes[n];
  if (oneIn(8)) {
    node.recompute = false;
    note("runs once");
  }
  if (oneIn(4)) {
    node.workspace = below(5);
    note("workspace");
  }
  if (n > 1 && oneIn(7)) {
    node.after = {NodeId(below(n))};
    note("after");
  }
  if (oneIn(7)) {
    ValueId target = oneIn(4) || node.inputs.empty()
                         ? param
                         : node.inputs[below(int64_t(node.inputs.size()))];
    node.mutates = {target};
    note(graph.values[target].kind == ValueKind::Temp ? "overwrites a result"
                                                      : "overwrites");
  }
  if (oneIn(2)) {
    for (ValueId o : node.outputs)
      for (ValueId i : node.inputs)
        if (oneIn(2)) {
          node.reuse.push_back({i, o});
          note("reuse");
        }
  }
}

Graph SmallGraph::make() {
  graph.alignment = oneIn(5) ? 4 : 1;
  if (graph.alignment > 1)
    note("alignment");
  for (int64_t k = 1 + below(2); k > 0; --k)
    values.push_back(addValue(graph, below(5), ValueKind::Input));
  param = addValue(graph, 1 + below(3), ValueKind::Persistent);
  for (int i = 0; i < nodes; ++i) {
    NodeId n = addNode(graph, double(below(6)), readList(), {});
    addOutputs(n);
    addRest(n);
    const std::vector<ValueId> &made = graph.nodes[n].outputs;
    values.insert(values.end(), made.begin(), made.end());
  }
  for (const auto &[feature, yes] : has)
    ++seen[feature];
  return std::move(graph);
}

int64_t programPeak(const Graph &graph) {
  std::vector<NodeId> program(graph.nodes.size());
  std::iota(program.begin(), program.end(), 0);
  return simulate(graph, program, true).peak;
}

struct Counts {
  int infeasible = 0, optimal = 0, costly = 0;
  int asked = 0, possible = 0; ///< budgets, and those with a plan
  int leastAsked = 0, leastProven = 0;
};

void checkAnswer(const Graph &graph, int64_t budget, bool fixed, double truth,
                 const Result &result, Counts &counts) {
  ASSERT_NE(result.status(), Status::Error) << result.message;
  ++counts.asked;
  counts.possible += truth >= 0;
  if (!result.hasPlan()) {
    ASSERT_TRUE(truth < 0 || result.status() != Status::Infeasible)
        << result.message;
    counts.infeasible += result.status() == Status::Infeasible;
    return;
  }
  ASSERT_GE(truth, 0);
  ASSERT_EQ(verify(graph, result.plan, budget), "");
  ASSERT_GE(result.plan.cost, truth - 1e-9);
  bool isBest = result.plan.cost <= truth + 1e-9;
  if (result.status() == Status::Optimal ||
      (fixed && result.status() == Status::OrderOptimal))
    ASSERT_TRUE(isBest) << statusName(result.status());
  counts.optimal += isBest;
  counts.costly += isBest && truth > baseCost(graph);
}

/// No plan has less than the bound on the load; where it is proven, its steps
/// reach it.
void checkLeastLoad(const Graph &graph, const PlanReference &reference,
                    Counts &counts) {
  Problem problem(graph);
  std::vector<NodeId> program(graph.nodes.size());
  std::iota(program.begin(), program.end(), 0);
  Deadline deadline(0);
  LeastLoad least = leastLoad(problem, memoryBound(graph), program, deadline);
  int64_t peak = simulate(problem, least.steps, true).peak;
  ++counts.leastAsked;
  counts.leastProven += least.proven;
  ASSERT_GE(reference.leastCost(peak), 0);
  ASSERT_LT(reference.leastCost(least.bound - 1), 0);
  if (least.proven)
    ASSERT_EQ(peak, least.bound);
}

/// One graph at `budgets` budgets from below every bound to above every need.
void checkCase(uint64_t seed, int budgets, std::map<std::string, int> &seen,
               Counts &counts) {
  Graph graph = SmallGraph(seed, seen).make();
  ASSERT_EQ(validate(graph), "");
  bool fixed = seed % 3 == 0;
  PlanReference reference(graph, fixed);
  int64_t peak = programPeak(graph), low = memoryBound(graph);
  if (seed % 4 == 0 && !fixed) {
    SCOPED_TRACE("least load, seed " + std::to_string(seed));
    checkLeastLoad(graph, reference, counts);
  }
  BudgetPlanner planner(graph);
  std::mt19937_64 rng(seed);
  for (int k = 0; k < budgets; ++k) {
    // The first one is where proofs are hardest: at the bound.
    int64_t from = std::max<int64_t>(1, low - 1), span = peak + 2 - from;
    int64_t budget = k == 0 ? from + 1 : from + int64_t(rng() % span);
    SCOPED_TRACE("seed " + std::to_string(seed) + " budget " +
                 std::to_string(budget) + (fixed ? " fixed" : ""));
    double truth = reference.leastCost(budget);
    if (budget < low)
      ASSERT_LT(truth, 0) << "the bound on memory is " << low;
    Options options;
    options.budget = budget;
    options.fixedOrder = fixed;
    options.effort = 0.02;
    options.timeLimitSeconds = 0;
    options.threads = 1;
    checkAnswer(graph, budget, fixed, truth, planner.solve(options), counts);
    if (testing::Test::HasFatalFailure())
      return;
    if (truth >= 0)
      ASSERT_LE(costBound(graph, budget), truth * (1 + 1e-9));
    if (truth >= 0 && fixed) {
      std::vector<NodeId> program(graph.nodes.size());
      std::iota(program.begin(), program.end(), 0);
      ASSERT_LE(orderBound(graph, program, budget), truth * (1 + 1e-9));
    }
  }
}

TEST(BruteForce, NothingIsFalseOnSmallGraphs) {
  const char *asked = std::getenv("CKOPT_BRUTE_FORCE_CASES");
  const char *start = std::getenv("CKOPT_BRUTE_FORCE_START");
  uint64_t first = start ? std::strtoull(start, nullptr, 10) : 0;
  uint64_t cases = asked             ? std::strtoull(asked, nullptr, 10)
                   : runsLongTests() ? 10000
                                     : 1000;
  std::map<std::string, int> seen;
  Counts counts;
  for (uint64_t seed = first; seed < first + cases; ++seed) {
    checkCase(seed, 3, seen, counts);
    if (HasFatalFailure())
      return;
  }
  std::cout << counts.optimal << " optima of " << counts.possible << " ("
            << counts.costly << " recompute), " << counts.infeasible
            << " infeasible of " << counts.asked - counts.possible << ", "
            << counts.leastProven << " least loads of " << counts.leastAsked
            << "\n";
  // The cases say something: each feature in one of twenty graphs, and budgets
  // of all kinds.
  for (const char *feature :
       {"several outputs", "view", "view of a view", "view of its own result",
        "view of what is not temporary", "output", "no bytes", "runs once",
        "workspace", "after", "overwrites a result", "overwrites", "reuse",
        "alignment"})
    EXPECT_GE(seen[feature] * 20, int(cases)) << feature;
  EXPECT_GE(counts.infeasible * 10, int(cases));
  EXPECT_GE(counts.costly * 20, int(cases));
  // They are decided nearly always.
  EXPECT_GE(counts.optimal * 100, counts.possible * 90);
  EXPECT_GE(counts.infeasible * 100, (counts.asked - counts.possible) * 90);
  EXPECT_GE(counts.leastProven * 100, counts.leastAsked * 90);
}

} // namespace
