//===- TestGraphs.h - graphs for the planner's tests ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_PLANNER_TESTGRAPHS_H
#define CKOPT_UNITTESTS_PLANNER_TESTGRAPHS_H

#include "../LongTests.h"
#include "ckopt/Planner/Graph.h"
#include "ckopt/Planner/Solve.h"

#include <algorithm>
#include <random>

namespace ckopt::planner::test {

using ckopt::test::runsLongTests;

inline ValueId addValue(Graph &graph, int64_t bytes,
                        ValueKind kind = ValueKind::Temp,
                        ValueId aliasOf = -1) {
  graph.values.push_back({bytes, kind, aliasOf, ""});
  return ValueId(graph.values.size()) - 1;
}

inline NodeId addNode(Graph &graph, double cost, std::vector<ValueId> inputs,
                      std::vector<ValueId> outputs) {
  Node node;
  node.name = "n" + std::to_string(graph.nodes.size());
  node.cost = cost;
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  graph.nodes.push_back(std::move(node));
  return NodeId(graph.nodes.size()) - 1;
}

/// A chain of `length` equal layers forwards and backwards: activation i is
/// read by the backward node of layer i + 1. Node i makes activation i.
inline Graph chain(int length, int64_t bytes = 100) {
  Graph graph;
  graph.name = "chain";
  ValueId x = addValue(graph, bytes, ValueKind::Input);
  std::vector<ValueId> acts{x};
  for (int i = 0; i < length; ++i) {
    ValueId v = addValue(graph, bytes);
    addNode(graph, 1, {acts.back()}, {v});
    acts.push_back(v);
  }
  ValueId grad = addValue(graph, bytes);
  addNode(graph, 1, {acts.back()}, {grad});
  for (int i = length; i > 0; --i) {
    ValueId next =
        addValue(graph, bytes, i == 1 ? ValueKind::Output : ValueKind::Temp);
    addNode(graph, 2, {grad, acts[i - 1]}, {next});
    grad = next;
  }
  return graph;
}

/// A random graph with everything that the format has: views, reuse, mutated
/// persistent values, `after`, workspaces, nodes that must not run again,
/// several results. `aligned` gives odd sizes and an alignment of 64.
inline Graph randomGraph(uint64_t seed, int nodes, bool aligned = false) {
  std::mt19937_64 rng(seed);
  auto below = [&](uint64_t n) { return int64_t(rng() % n); };
  auto size = [&] { return aligned ? 1 + below(300) : 8 * (1 + below(16)); };
  Graph graph;
  graph.name = "random";
  graph.alignment = aligned ? 64 : 1;
  std::vector<ValueId> values, params;
  for (int i = 0; i < 2; ++i)
    values.push_back(addValue(graph, size(), ValueKind::Input));
  for (int i = 0; i < 2; ++i) {
    params.push_back(addValue(graph, size(), ValueKind::Persistent));
    values.push_back(params.back());
  }
  for (int i = 0; i < nodes; ++i) {
    std::vector<ValueId> inputs;
    for (int64_t k = 1 + below(3); k > 0; --k) {
      // Mostly recent values, sometimes old ones: long gaps.
      int64_t back = below(3) ? below(std::min<int64_t>(6, values.size()))
                              : below(values.size());
      ValueId v = values[values.size() - 1 - back];
      if (std::find(inputs.begin(), inputs.end(), v) == inputs.end())
        inputs.push_back(v);
    }
    NodeId n = addNode(graph, 1 + below(9), inputs, {});
    bool update = below(12) == 0;
    if (update)
      graph.nodes[n].mutates = {params[below(params.size())]};
    bool view = !update && below(8) == 0 && graph.values[inputs[0]].aliasOf < 0;
    for (int64_t k = update ? 0 : 1 + (below(6) == 0); k > 0; --k) {
      ValueKind kind = below(10) ? ValueKind::Temp : ValueKind::Output;
      ValueId v = addValue(graph, view ? graph.values[inputs[0]].bytes : size(),
                           kind, view ? inputs[0] : -1);
      graph.nodes[n].outputs.push_back(v);
      values.push_back(v);
    }
    Node &node = graph.nodes[n];
    if (!view && !node.outputs.empty() && below(3) == 0)
      for (ValueId input : node.inputs)
        node.reuse.push_back({input, node.outputs[0]});
    if (below(6) == 0)
      node.workspace = size();
    if (below(8) == 0)
      node.recompute = false;
    if (n > 0 && below(10) == 0)
      node.after = {NodeId(below(n))};
  }
  return graph;
}

} // namespace ckopt::planner::test

#endif // CKOPT_UNITTESTS_PLANNER_TESTGRAPHS_H
