//===- BruteForceTest.cpp - agreement with exhaustive search --------------===//
//
// The planning problem as a pebble game: a state is what ran and what is
// resident. Dijkstra's algorithm over all states gives the least cost within a
// budget, and so what is feasible at all.
//
//===----------------------------------------------------------------------===//
#include "TestGraphs.h"
#include "ckopt/Planner/Bounds.h"
#include "ckopt/Planner/Solve.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <queue>

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

class PebbleGame {
public:
  PebbleGame(const Graph &graph, bool programOrder)
      : graph(graph), programOrder(programOrder) {
    for (size_t v = 0; v < graph.values.size(); ++v) {
      ValueKind kind = graph.values[v].kind;
      bool read = false;
      for (const Node &node : graph.nodes)
        read |= std::find(node.inputs.begin(), node.inputs.end(), ValueId(v)) !=
                node.inputs.end();
      if (kind == ValueKind::Persistent || (kind == ValueKind::Input && read))
        start |= 1u << v;
      if (kind == ValueKind::Persistent || kind == ValueKind::Output)
        finish |= 1u << v;
    }
  }
  /// Least cost within the budget; negative: infeasible.
  double solve(int64_t budget);

private:
  using State = std::pair<uint32_t, uint32_t>;
  bool allowed(uint32_t ran, uint32_t resident, NodeId n) const;
  int64_t usage(uint32_t resident, uint32_t dropped, NodeId n) const;
  int64_t bytes(uint32_t resident) const {
    int64_t sum = 0;
    for (size_t v = 0; v < graph.values.size(); ++v)
      if (resident >> v & 1)
        sum += graph.values[v].bytes;
    return sum;
  }

  const Graph &graph;
  bool programOrder;
  uint32_t start = 0, finish = 0;
};

bool PebbleGame::allowed(uint32_t ran, uint32_t resident, NodeId n) const {
  const Node &node = graph.nodes[n];
  bool again = ran >> n & 1;
  if (again && (!node.recompute || !node.mutates.empty()))
    return false;
  if (!again && programOrder && (ran >> n || ran != (1u << n) - 1))
    return false;
  for (ValueId v : node.inputs)
    if (!(resident >> v & 1))
      return false;
  for (NodeId p : node.after)
    if (!(ran >> p & 1))
      return false;
  for (size_t w = 0; w < graph.nodes.size(); ++w)
    for (ValueId v : graph.nodes[w].mutates) {
      bool reads = std::find(node.inputs.begin(), node.inputs.end(), v) !=
                   node.inputs.end();
      bool done = ran >> w & 1;
      if (reads && int32_t(w) < n && !done)
        return false;
      if (reads && int32_t(w) > n && done)
        return false;
    }
  return true;
}

int64_t PebbleGame::usage(uint32_t resident, uint32_t dropped, NodeId n) const {
  const Node &node = graph.nodes[n];
  int64_t sum = node.workspace;
  uint32_t during = resident, taken = 0, given = 0;
  for (ValueId v : node.outputs)
    during |= 1u << v;
  sum += bytes(during);
  for (auto [i, o] : node.reuse) {
    bool can = (dropped >> i & 1) && !(taken >> o & 1) && !(given >> i & 1) &&
               graph.values[i].kind == ValueKind::Temp &&
               graph.values[o].bytes <= graph.values[i].bytes;
    if (!can)
      continue;
    taken |= 1u << o;
    given |= 1u << i;
    sum -= graph.values[o].bytes;
  }
  return sum;
}

double PebbleGame::solve(int64_t budget) {
  std::map<State, double> best;
  std::priority_queue<std::pair<double, State>,
                      std::vector<std::pair<double, State>>, std::greater<>>
      queue;
  uint32_t all = (1u << graph.nodes.size()) - 1;
  auto push = [&](double cost, State state) {
    auto [it, fresh] = best.insert({state, cost});
    if (!fresh && it->second <= cost)
      return;
    it->second = cost;
    queue.push({cost, state});
  };
  push(0, {0, start});
  while (!queue.empty()) {
    auto [cost, state] = queue.top();
    queue.pop();
    if (best[state] < cost)
      continue;
    auto [ran, resident] = state;
    if (ran == all && (resident & finish) == finish)
      return cost;
    for (size_t v = 0; v < graph.values.size(); ++v)
      if ((resident >> v & 1) && graph.values[v].kind != ValueKind::Persistent)
        push(cost, {ran, resident & ~(1u << v)});
    for (NodeId n = 0; n < int32_t(graph.nodes.size()); ++n) {
      if (!allowed(ran, resident, n))
        continue;
      const Node &node = graph.nodes[n];
      for (uint32_t pick = 0; pick < 1u << node.inputs.size(); ++pick) {
        uint32_t dropped = 0;
        for (size_t k = 0; k < node.inputs.size(); ++k)
          if ((pick >> k & 1) &&
              graph.values[node.inputs[k]].kind != ValueKind::Persistent)
            dropped |= 1u << node.inputs[k];
        // A new copy replaces the old one, which ended before.
        uint32_t before = resident;
        for (ValueId v : node.outputs)
          before &= ~(1u << v);
        if (usage(before, dropped, n) > budget)
          continue;
        uint32_t after = before & ~dropped;
        for (ValueId v : node.outputs)
          after |= 1u << v;
        push(cost + node.cost, {ran | 1u << n, after});
      }
    }
  }
  return -1;
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
