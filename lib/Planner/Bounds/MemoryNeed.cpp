//===- MemoryNeed.cpp - what makes a budget too small ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: name values that prove a budget to be too small, for users who have
// to change the model. Method: while a node first runs, its operands, results
// and scratch are resident, less results that may be written over operands; so
// are values that cannot be made again, are made before the node in every
// order, and are read after it in every order. The former are added up for all
// nodes, the latter only for the few nodes that need most without them.
// Guarantee: no plan in any order has a smaller load. memoryBound() starts from
// the same sets and may prove more by search. Gives up: never, since only the
// few largest nodes are looked at closely. Complexity: linear in nodes and
// operands.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/MemoryNeed.h"

#include "Model/Problem.h"
#include "ckopt/Planner/Labels.h"

#include <algorithm>

using namespace ckopt::planner;

/// The number of nodes for which waiting values are looked for.
static constexpr size_t maxCandidates = 8;

namespace {

class NeedFinder {
public:
  explicit NeedFinder(const Problem &problem) : problem(problem) {}
  MemoryNeed run() const;

private:
  std::vector<ValueId> touched(NodeId node) const;
  int64_t bytesOf(NodeId node, const std::vector<ValueId> &values) const;
  std::vector<char> reach(NodeId node, const Csr &edges) const;
  void addWaiting(NodeId node, std::vector<ValueId> &values) const;
  bool isPersistent(ValueId v) const {
    return problem.initial[v] && problem.endLive[v];
  }

  const Problem &problem;
};

} // namespace

/// Returns storages that the node reads or makes, without results that may take
/// an operand's bytes over.
std::vector<ValueId> NeedFinder::touched(NodeId node) const {
  std::vector<ValueId> values;
  for (ValueId v : problem.reads[node])
    if (!isPersistent(problem.root[v]))
      values.push_back(problem.root[v]);
  for (ValueId v : problem.outputs[node]) {
    bool shares = false;
    for (auto [input, output] : problem.pairs[node])
      shares |= output == v;
    if (!shares && problem.root[v] == v)
      values.push_back(v);
  }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

int64_t NeedFinder::bytesOf(NodeId node,
                            const std::vector<ValueId> &values) const {
  int64_t sum = problem.persistentBytes + problem.workspace[node];
  for (ValueId v : values)
    sum += problem.bytes[v];
  return sum;
}

/// Returns the nodes that come after (or, with `preds`, before) the node in
/// every order.
std::vector<char> NeedFinder::reach(NodeId node, const Csr &edges) const {
  std::vector<char> mark(size_t(problem.numNodes), 0);
  std::vector<NodeId> stack{node};
  while (!stack.empty()) {
    NodeId n = stack.back();
    stack.pop_back();
    for (NodeId next : edges[n])
      if (!mark[next]) {
        mark[next] = 1;
        stack.push_back(next);
      }
  }
  return mark;
}

/// Adds values that wait for later readers and cannot be made again.
void NeedFinder::addWaiting(NodeId node, std::vector<ValueId> &values) const {
  std::vector<char> before = reach(node, problem.preds);
  std::vector<char> after = reach(node, problem.succs);
  std::vector<char> later(size_t(problem.numValues), 0);
  for (ValueId v = 0; v < problem.numValues; ++v)
    if (problem.endLive[v])
      later[problem.root[v]] = 1;
  for (NodeId n = 0; n < problem.numNodes; ++n)
    if (after[n])
      for (ValueId v : problem.reads[n])
        later[problem.root[v]] = 1;
  for (ValueId v = 0; v < problem.numValues; ++v) {
    NodeId maker = problem.producer[v];
    bool there = problem.initial[v]
                     ? !problem.endLive[v]
                     : maker >= 0 && before[maker] && !problem.recompute[maker];
    if (there && later[v] && problem.root[v] == v)
      values.push_back(v);
  }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

MemoryNeed NeedFinder::run() const {
  std::vector<std::pair<int64_t, NodeId>> nodes;
  for (NodeId n = 0; n < problem.numNodes; ++n)
    nodes.push_back({-bytesOf(n, touched(n)), n});
  size_t candidates = std::min(nodes.size(), maxCandidates);
  std::partial_sort(nodes.begin(), nodes.begin() + candidates, nodes.end());
  MemoryNeed need;
  need.bytes = need.persistentBytes = problem.persistentBytes;
  std::vector<ValueId> most;
  for (size_t i = 0; i < candidates; ++i) {
    NodeId n = nodes[i].second;
    std::vector<ValueId> values = touched(n);
    addWaiting(n, values);
    int64_t bytes = bytesOf(n, values);
    if (need.node >= 0 && bytes <= need.bytes)
      continue;
    need.node = n;
    need.bytes = bytes;
    most = std::move(values);
  }
  if (need.node < 0)
    return need;
  Labels labels(problem.graph);
  for (ValueId v : most)
    if (problem.bytes[v] > 0)
      need.values.push_back(
          {v, problem.bytes[v], labels.value(v, problem.producer[v])});
  if (problem.workspace[need.node] > 0)
    need.values.push_back({-1, problem.workspace[need.node],
                           "workspace of " + labels.node(need.node)});
  std::sort(need.values.begin(), need.values.end(),
            [](const PeakEntry &a, const PeakEntry &b) {
              return a.bytes != b.bytes ? a.bytes > b.bytes : a.value < b.value;
            });
  return need;
}

MemoryNeed ckopt::planner::memoryNeed(const Graph &graph) {
  Problem problem(graph, Rules::Format);
  return NeedFinder(problem).run();
}
