//===- Problem.cpp - a graph compiled for the solvers ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builds the arrays. Linear in the size of the graph; order edges of nodes that
// overwrite values are chained per storage, so they are linear too.
//
//===----------------------------------------------------------------------===//
#include "Model/Problem.h"

#include <algorithm>

using namespace ckopt::planner;

Csr Csr::from(const std::vector<std::vector<int32_t>> &lists) {
  Csr csr;
  csr.start.assign(1, 0);
  csr.start.reserve(lists.size() + 1);
  for (const std::vector<int32_t> &list : lists) {
    csr.items.insert(csr.items.end(), list.begin(), list.end());
    csr.start.push_back(int32_t(csr.items.size()));
  }
  return csr;
}

namespace {
void addOnce(std::vector<int32_t> &list, int32_t item) {
  if (std::find(list.begin(), list.end(), item) == list.end())
    list.push_back(item);
}
} // namespace

Problem::Problem(const Graph &graph, Rules rules)
    : graph(graph), numNodes(int32_t(graph.nodes.size())),
      numValues(int32_t(graph.values.size())), bytes(numValues),
      workspace(numNodes), cost(numNodes), producer(numValues, -1),
      base(numValues), root(numValues), initial(numValues), endLive(numValues),
      recompute(numNodes), pairs(numNodes) {
  for (ValueId v = 0; v < numValues; ++v) {
    const Value &value = graph.values[v];
    base[v] = value.aliasOf;
    bytes[v] = base[v] < 0 ? alignTo(value.bytes, graph.alignment) : 0;
    initial[v] =
        value.kind == ValueKind::Input || value.kind == ValueKind::Persistent;
    endLive[v] =
        value.kind == ValueKind::Output || value.kind == ValueKind::Persistent;
    if (value.kind == ValueKind::Persistent)
      persistentBytes += bytes[v];
  }
  for (ValueId v = 0; v < numValues; ++v) {
    root[v] = v;
    while (base[root[v]] >= 0)
      root[v] = base[root[v]];
  }
  for (NodeId n = 0; n < numNodes; ++n) {
    const Node &node = graph.nodes[n];
    cost[n] = node.cost;
    baseCost += node.cost;
    workspace[n] = alignTo(node.workspace, graph.alignment);
    recompute[n] = node.recompute && node.mutates.empty();
    for (ValueId v : node.outputs)
      producer[v] = n;
  }
  buildOperands();
  buildOrder(rules);
}

void Problem::buildOperands() {
  std::vector<std::vector<int32_t>> readLists(numNodes), outputLists(numNodes),
      readerLists(numValues), viewLists(numValues);
  for (NodeId n = 0; n < numNodes; ++n) {
    const Node &node = graph.nodes[n];
    std::vector<int32_t> &list = readLists[n];
    list = node.inputs;
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    outputLists[n] = node.outputs;
    for (ValueId v : node.outputs)
      if (base[v] >= 0 && producer[base[v]] != n)
        addOnce(list, base[v]);
    for (ValueId v : list)
      readerLists[v].push_back(n);
    for (auto [i, o] : node.reuse) {
      bool possible = std::binary_search(list.begin(), list.end(), i) &&
                      producer[o] == n && base[i] < 0 && base[o] < 0 &&
                      !initial[i] && (!endLive[i] || recompute[producer[i]]) &&
                      graph.values[o].bytes <= graph.values[i].bytes;
      // A direct view that this node reads or makes prevents the reuse.
      for (ValueId v : node.inputs)
        possible &= base[v] != i;
      for (ValueId v : node.outputs)
        possible &= base[v] != i;
      if (possible)
        pairs[n].push_back({i, o});
    }
  }
  for (ValueId v = 0; v < numValues; ++v)
    if (base[v] >= 0)
      viewLists[base[v]].push_back(v);
  reads = Csr::from(readLists);
  outputs = Csr::from(outputLists);
  readers = Csr::from(readerLists);
  views = Csr::from(viewLists);
}

void Problem::buildOrder(Rules rules) {
  std::vector<std::vector<int32_t>> predLists(numNodes), succLists(numNodes),
      blockerLists(numNodes);
  auto edge = [&](NodeId from, NodeId to) {
    if (from >= 0 && from != to)
      addOnce(predLists[to], from);
  };
  // Accesses of overwritten storages, in program order.
  std::vector<std::vector<int32_t>> writerLists(numValues);
  for (NodeId n = 0; n < numNodes; ++n)
    for (ValueId v : graph.nodes[n].mutates)
      addOnce(writerLists[root[v]], n);
  writers = Csr::from(writerLists);
  for (ValueId v = 0; v < numValues; ++v)
    simplified |=
        !writers[root[v]].empty() && (producer[v] >= 0 || root[v] != v);
  auto accesses = [&](NodeId n) {
    return rules == Rules::Simple
               ? reads[n]
               : std::span<const int32_t>(graph.nodes[n].inputs);
  };
  std::vector<NodeId> lastWriter(numValues, -1);
  std::vector<std::vector<NodeId>> sinceWriter(numValues);
  for (NodeId n = 0; n < numNodes; ++n) {
    const Node &node = graph.nodes[n];
    for (ValueId v : reads[n])
      edge(producer[v], n);
    for (ValueId v : accesses(n)) {
      if (writers[root[v]].empty())
        continue;
      edge(lastWriter[root[v]], n);
      sinceWriter[root[v]].push_back(n);
    }
    for (NodeId p : node.after)
      edge(p, n);
    for (ValueId v : node.mutates) {
      ValueId r = root[v];
      edge(lastWriter[r], n);
      for (NodeId reader : sinceWriter[r]) {
        edge(reader, n);
        if (reader != n)
          addOnce(blockerLists[reader], n);
      }
      sinceWriter[r].clear();
      lastWriter[r] = n;
    }
  }
  // A copy that is made again would lack the change. With views, even a copy
  // made before the change could leave an older one to be read.
  for (ValueId v = 0; v < numValues && rules == Rules::Simple; ++v) {
    if (writers[v].empty() || producer[v] < 0)
      continue;
    if (!views[v].empty())
      recompute[producer[v]] = 0;
    for (NodeId n : writers[v])
      addOnce(blockerLists[producer[v]], n);
  }
  for (NodeId n = 0; n < numNodes; ++n)
    for (NodeId p : predLists[n])
      succLists[p].push_back(n);
  preds = Csr::from(predLists);
  succs = Csr::from(succLists);
  blockers = Csr::from(blockerLists);
}

int64_t Problem::ownBytes(NodeId node) const {
  int64_t sum = workspace[node];
  for (ValueId v : outputs[node])
    sum += bytes[v];
  for (auto it = pairs[node].begin(); it != pairs[node].end(); ++it) {
    bool first = true;
    for (auto other = pairs[node].begin(); other != it; ++other)
      first &= other->second != it->second && other->first != it->first;
    if (first)
      sum -= bytes[it->second];
  }
  return sum;
}

void Problem::forget(ValueId storage, std::vector<char> &valid) const {
  std::vector<ValueId> stack{storage};
  while (!stack.empty()) {
    ValueId v = stack.back();
    stack.pop_back();
    valid[v] = 0;
    for (ValueId view : views[v])
      stack.push_back(view);
  }
}

bool ckopt::planner::keepsSimpleRules(const Problem &problem,
                                      std::span<const NodeId> steps) {
  std::vector<char> ran(problem.numNodes, 0);
  for (NodeId n : steps) {
    if (ran[n] && !problem.recompute[n])
      return false;
    for (NodeId p : problem.preds[n])
      if (!ran[p])
        return false;
    for (NodeId b : problem.blockers[n])
      if (ran[b])
        return false;
    ran[n] = 1;
  }
  return true;
}
