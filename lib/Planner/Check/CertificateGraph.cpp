//===- CertificateGraph.cpp - the graph as the checker reads it -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builds the checker's graph. Linear in the graph, except for sorting the
// storages that a node touches.
//
//===----------------------------------------------------------------------===//
#include "Check/CertificateGraph.h"

#include <algorithm>

using namespace ckopt::planner;

static void sortUnique(std::vector<int32_t> &list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

static bool contains(const std::vector<int32_t> &list, int32_t item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

CertificateGraph::CertificateGraph(const Graph &graph)
    : nodes(graph.nodes.size() + 1), bytes(graph.values.size(), 0),
      root(graph.values.size()), maker(graph.values.size(), -1) {
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value &value = graph.values[v];
    for (root[v] = ValueId(v); graph.values[root[v]].aliasOf >= 0;)
      root[v] = graph.values[root[v]].aliasOf;
    if (value.aliasOf < 0)
      bytes[v] = alignTo(value.bytes, graph.alignment);
    if (value.kind == ValueKind::Output || value.kind == ValueKind::Persistent)
      nodes.back().touches.push_back(root[v]);
  }
  sortUnique(nodes.back().touches);
  stays.assign(graph.values.size(), 1);
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    for (ValueId v : graph.nodes[n].outputs) {
      maker[v] = NodeId(n);
      stays[v] = !graph.nodes[n].recompute || !graph.nodes[n].mutates.empty();
    }
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    readNode(graph, NodeId(n));
  orderWrites(graph);
}

void CertificateGraph::readNode(const Graph &graph, NodeId n) {
  const planner::Node &from = graph.nodes[n];
  Node &node = nodes[n];
  node.cost = from.cost;
  node.workspace = alignTo(from.workspace, graph.alignment);
  std::vector<ValueId> needs = from.inputs;
  for (ValueId v : from.outputs) {
    node.bytes += bytes[v];
    ValueId base = graph.values[v].aliasOf;
    if (base >= 0 && maker[base] != n)
      needs.push_back(base);
    if (base < 0)
      node.touches.push_back(v);
  }
  node.before = from.after;
  for (ValueId v : needs) {
    node.reads.push_back(root[v]);
    if (maker[v] >= 0)
      node.before.push_back(maker[v]);
  }
  node.touches.insert(node.touches.end(), node.reads.begin(), node.reads.end());
  sortUnique(node.reads);
  sortUnique(node.touches);
  for (auto [i, o] : from.reuse) {
    bool usable = contains(from.inputs, i) && contains(from.outputs, o) &&
                  maker[i] >= 0 && root[i] == i && root[o] == o &&
                  bytes[o] <= bytes[i];
    // A view of the only copy prevents the reuse, and so does a view made here.
    for (ValueId v : from.inputs)
      usable &= graph.values[v].aliasOf != i || !stays[i];
    for (ValueId v : from.outputs)
      usable &= graph.values[v].aliasOf != i;
    if (usable)
      node.pairs.push_back({i, o});
  }
}

/// A node that overwrites a storage runs after all nodes that use it earlier in
/// program order, and before all that use it later.
void CertificateGraph::orderWrites(const Graph &graph) {
  std::vector<NodeId> writer(root.size(), -1);
  std::vector<std::vector<NodeId>> users(root.size());
  for (NodeId n = 0; n < NodeId(graph.nodes.size()); ++n) {
    std::vector<NodeId> &before = nodes[n].before;
    auto follow = [&](NodeId other) {
      if (other >= 0 && other != n)
        before.push_back(other);
    };
    for (ValueId v : graph.nodes[n].inputs) {
      follow(writer[root[v]]);
      users[root[v]].push_back(n);
    }
    for (ValueId v : graph.nodes[n].mutates) {
      follow(writer[root[v]]);
      for (NodeId user : users[root[v]])
        follow(user);
      users[root[v]].clear();
      writer[root[v]] = n;
    }
    sortUnique(before);
  }
}
