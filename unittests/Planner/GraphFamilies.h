//===- GraphFamilies.h - random graphs of several kinds ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Families of graphs for the property tests of budgets. All take a seed and the
// wanted number of nodes, and give the same graph for the same two.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_PLANNER_GRAPHFAMILIES_H
#define CKOPT_UNITTESTS_PLANNER_GRAPHFAMILIES_H

#include "TestGraphs.h"

#include <cmath>

namespace ckopt::planner::test {

/// Layers of nodes with one result each; edges to the next layer, a few that
/// skip layers; every node may run again. As the random layered graphs of
/// Gagrani et al. (2022), on which Moccasin reports.
inline Graph layeredGraph(uint64_t seed, int nodes) {
  std::mt19937_64 rng(seed * 7919 + 11);
  auto below = [&](uint64_t n) { return int64_t(rng() % n); };
  Graph graph;
  graph.name = "layered";
  int width = std::max<int>(2, std::lround(std::sqrt(double(nodes)) *
                                           (0.6 + 0.1 * double(below(9)))));
  std::vector<std::vector<ValueId>> layers;
  while (int(graph.nodes.size()) < nodes) {
    std::vector<ValueId> layer;
    int64_t count = 1 + below(uint64_t(width));
    for (int64_t k = 0; k < count && int(graph.nodes.size()) < nodes; ++k) {
      std::vector<ValueId> inputs;
      auto take = [&](ValueId v) {
        if (std::find(inputs.begin(), inputs.end(), v) == inputs.end())
          inputs.push_back(v);
      };
      if (!layers.empty()) {
        take(layers.back()[below(layers.back().size())]);
        for (ValueId v : layers.back())
          if (below(100) < 20)
            take(v);
        for (size_t l = 0; l + 1 < layers.size(); ++l)
          if (below(100) < 14)
            take(layers[l][below(layers[l].size())]);
      }
      std::sort(inputs.begin(), inputs.end());
      ValueId v = addValue(graph, 10 * (1 + below(600)));
      addNode(graph, double(below(1000)), std::move(inputs), {v});
      layer.push_back(v);
    }
    layers.push_back(std::move(layer));
  }
  return graph;
}

/// A random network with its gradients: sizes over four orders of magnitude,
/// scratch, in-place pairs and a loss that runs once; with parameters that are
/// updated in place by nodes that run once.
inline Graph trainingGraph(uint64_t seed, int nodes, bool updates = true) {
  std::mt19937_64 rng(seed * 104729 + 5);
  auto below = [&](uint64_t n) { return int64_t(rng() % n); };
  auto size = [&](ValueId v, Graph &g) { return g.values[v].bytes; };
  Graph graph;
  graph.name = "training";
  struct Op {
    std::vector<ValueId> inputs;
    ValueId saved, param, out;
    double cost;
  };
  std::vector<Op> tape;
  std::vector<ValueId> values{addValue(graph, 1 << 20, ValueKind::Input)};
  int forward = std::max(3, nodes / (updates ? 4 : 3));
  for (int i = 0; i < forward; ++i) {
    Op op;
    for (int64_t k = 1 + below(5) / 2; k > 0; --k) {
      size_t back = 0;
      while (back + 1 < values.size() && below(2))
        ++back;
      ValueId v = values[values.size() - 1 - back];
      if (std::find(op.inputs.begin(), op.inputs.end(), v) == op.inputs.end())
        op.inputs.push_back(v);
    }
    std::sort(op.inputs.begin(), op.inputs.end());
    int64_t bytes = int64_t(1) << (12 + below(13));
    op.cost = double(bytes) * (below(3) ? 1 : 100) / 1e4 + 1;
    op.param = updates && below(3) == 0
                   ? addValue(graph, int64_t(1) << (10 + below(12)),
                              ValueKind::Persistent)
                   : -1;
    op.out = addValue(graph, bytes);
    std::vector<ValueId> reads = op.inputs;
    if (op.param >= 0)
      reads.push_back(op.param);
    NodeId n = addNode(graph, op.cost, std::move(reads), {op.out});
    if (below(10) == 0)
      graph.nodes[n].workspace = bytes / 2;
    if (below(5) == 0)
      graph.nodes[n].reuse = {{op.inputs[0], op.out}};
    size_t pick = size_t(below(op.inputs.size() + 1));
    op.saved = pick < op.inputs.size() ? op.inputs[pick] : op.out;
    values.push_back(op.out);
    tape.push_back(std::move(op));
  }
  std::vector<ValueId> last;
  for (ValueId v : values) {
    bool used = v == values[0];
    for (const Op &op : tape)
      used |=
          std::find(op.inputs.begin(), op.inputs.end(), v) != op.inputs.end();
    if (!used)
      last.push_back(v);
  }
  ValueId loss = addValue(graph, 4, ValueKind::Output);
  NodeId lossNode = addNode(graph, 1, last, {loss});
  graph.nodes[lossNode].recompute = false;
  std::vector<ValueId> grad(graph.values.size(), -1);
  for (ValueId v : last) {
    grad[v] = addValue(graph, size(v, graph));
    addNode(graph, 1, {loss}, {grad[v]});
  }
  for (size_t k = tape.size(); k-- > 0;) {
    const Op &op = tape[k];
    ValueId g = grad[op.out];
    auto make = [&](std::vector<ValueId> inputs, int64_t bytes) {
      ValueId v = addValue(graph, bytes);
      std::sort(inputs.begin(), inputs.end());
      inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
      addNode(graph, op.cost, std::move(inputs), {v});
      return v;
    };
    ValueId dw = -1;
    if (op.param >= 0)
      dw = make({g, op.saved}, size(op.param, graph));
    for (ValueId v : op.inputs) {
      if (v == values[0])
        continue;
      std::vector<ValueId> inputs{g, op.saved};
      if (op.param >= 0)
        inputs.push_back(op.param);
      ValueId d = make(inputs, size(v, graph));
      if (size(v, graph) == size(op.out, graph))
        graph.nodes.back().reuse = {{g, d}};
      if (grad[v] >= 0) {
        ValueId sum = make({grad[v], d}, size(v, graph));
        graph.nodes.back().reuse = {{grad[v], sum}};
        d = sum;
      }
      grad[v] = d;
    }
    if (op.param >= 0) {
      NodeId n = addNode(graph, 1, {dw, op.param}, {});
      graph.nodes[n].recompute = false;
      graph.nodes[n].mutates = {op.param};
    }
  }
  return graph;
}

} // namespace ckopt::planner::test

#endif // CKOPT_UNITTESTS_PLANNER_GRAPHFAMILIES_H
