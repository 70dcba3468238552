//===- Policy.cpp - a graph whose plans obey a policy ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: torch.utils.checkpoint, nested or not, and rules that keep or drop
// single values, for a planner that knows only graphs and budgets.
// Method: a value that the backward pass must not find resident gets a second
// version, made by a copy of its node that waits for the end of the forward
// pass; backward nodes read that version. In nested regions a value has one
// version for each depth: a copy at depth d stands for the d-th recomputation,
// reads what lies in the same regions down to d at depth d, and what lies
// outside at the depth that both have in common. A value that is kept for one
// late reader is read by all late readers, so that it is not computed again
// while its original is resident. Marks are nodes without work that stand for
// the ends of passes, so that the number of order edges stays linear.
// Guarantee: at each step of a plan of the larger graph the version that is
// read is the one made last, unless the planner recomputes more than the policy
// asks for; restorePlan() (PolicyPlan.cpp) therefore simulates anew.
// Complexity: O((nodes + operands) * depth) per round; a round lowers the depth
// at which some value is read, in practice two rounds.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/Policy.h"

#include <algorithm>
#include <map>

using namespace ckopt::planner;

namespace {

class RegionExpander {
public:
  RegionExpander(const Graph &graph, const Policy &policy)
      : graph(graph), policy(policy), numNodes(int32_t(graph.nodes.size())) {}
  PolicyGraph run();

private:
  void survey();
  void findBackward();
  void findUnable();
  int32_t depthOf(NodeId node) const;
  /// Returns whether a rule of its own makes the node recomputed, rather than a
  /// region.
  bool alone(NodeId node) const {
    return policy.recompute[node] && policy.regions[node].empty();
  }
  int32_t sharedDepth(NodeId a, NodeId b) const;
  int32_t versionFor(NodeId reader, int32_t level, ValueId value) const;
  bool collectDemand();
  void findDeferred();
  void demand(NodeId node, int32_t level);
  bool readAll(NodeId reader, int32_t level);

  void emitOriginal(NodeId node);
  void emitCopy(NodeId node, int32_t level);
  void emitBeforeUpdate(NodeId node);
  NodeId mark(int32_t region);
  NodeId addNode(NodeId node, int32_t level);
  ValueId valueAt(ValueId value, int32_t version) const;
  size_t slot(NodeId node, int32_t level) const {
    return size_t(node) * size_t(maxDepth + 1) + size_t(level);
  }

  const Graph &graph;
  const Policy &policy;
  const int32_t numNodes;
  std::vector<NodeId> producer;
  std::vector<ValueId> root;
  std::vector<char> backward, kept; ///< by node
  /// By value: forward nodes that read it, in program order.
  std::vector<std::vector<NodeId>> readers;
  int32_t maxDepth = 0;
  /// By value: the depth below which no late reader reads a version.
  std::vector<int32_t> deepest;
  std::vector<char> demanded; ///< by slot()
  /// By node: set if it has late readers only; its single run is then that of
  /// the copy.
  std::vector<char> deferred;
  std::vector<std::pair<NodeId, int32_t>> worklist;

  PolicyGraph out;
  std::map<std::pair<ValueId, int32_t>, ValueId> versions;
  std::vector<NodeId> emitted;     ///< by slot(); -1: not yet
  std::map<int32_t, NodeId> marks; ///< by region; -1: the forward pass
  std::map<int32_t, std::vector<NodeId>> members; ///< by region and depth
};

constexpr int32_t forwardPass = -1;

void RegionExpander::survey() {
  producer.assign(graph.values.size(), -1);
  root.resize(graph.values.size());
  readers.resize(graph.values.size());
  for (NodeId n = 0; n < numNodes; ++n)
    for (ValueId v : graph.nodes[n].outputs)
      producer[v] = n;
  for (ValueId v = 0; v < ValueId(graph.values.size()); ++v) {
    root[v] = v;
    while (graph.values[root[v]].aliasOf >= 0)
      root[v] = graph.values[root[v]].aliasOf;
  }
}

/// Finds nodes of the backward pass and all that must follow them.
void RegionExpander::findBackward() {
  backward = policy.backward;
  /// A backward node reads or makes it.
  std::vector<char> touched(graph.values.size());
  for (NodeId n = 0; n < numNodes; ++n) {
    const Node &node = graph.nodes[n];
    char &late = backward[n];
    for (NodeId before : node.after)
      late |= backward[before];
    for (ValueId v : node.inputs)
      if (NodeId maker = producer[v]; maker >= 0)
        late |= backward[maker];
    // Reads and updates of one value keep their order.
    for (ValueId v : node.mutates)
      late |= touched[root[v]];
    for (ValueId v : node.inputs)
      late |= touched[root[v]] == 2;
    if (!late) {
      for (ValueId v : node.inputs)
        readers[root[v]].push_back(n);
      continue;
    }
    for (ValueId v : node.inputs)
      touched[root[v]] = std::max<char>(touched[root[v]], 1);
    for (ValueId v : node.mutates)
      touched[root[v]] = 2;
  }
}

int32_t RegionExpander::depthOf(NodeId node) const {
  if (backward[node] || kept[node])
    return 0;
  int32_t depth = int32_t(policy.regions[node].size());
  return depth == 0 && policy.recompute[node] ? 1 : depth;
}

/// Finds nodes that must run only once.
void RegionExpander::findUnable() {
  kept = policy.save;
  std::vector<char> overwritten(graph.values.size());
  for (NodeId n = 0; n < numNodes; ++n)
    if (!backward[n])
      for (ValueId v : graph.nodes[n].mutates)
        overwritten[root[v]] = 1;
  for (NodeId n = 0; n < numNodes; ++n) {
    if (depthOf(n) == 0)
      continue;
    const Node &node = graph.nodes[n];
    bool unable = !node.recompute || !node.mutates.empty();
    for (ValueId v : node.inputs)
      unable |= overwritten[root[v]] != 0;
    if (!unable)
      continue;
    kept[n] = 1;
    out.unable.push_back(n);
  }
}

int32_t RegionExpander::sharedDepth(NodeId a, NodeId b) const {
  const std::vector<int32_t> &x = policy.regions[a], &y = policy.regions[b];
  size_t depth = 0;
  while (depth < x.size() && depth < y.size() && x[depth] == y[depth])
    ++depth;
  return int32_t(depth);
}

/// Returns the version of a value that a reader sees at a depth of
/// recomputation (0: the node itself).
int32_t RegionExpander::versionFor(NodeId reader, int32_t level,
                                   ValueId value) const {
  NodeId maker = producer[value];
  if (maker < 0 || (level == 0 && !backward[reader]))
    return 0;
  int32_t depth = depthOf(maker);
  if (depth == 0 || graph.values[value].kind == ValueKind::Output)
    return 0;
  int32_t version = depth;
  if (alone(maker))
    version = 1;
  else if (level > 0)
    version = std::min(level, sharedDepth(maker, reader));
  else if (policy.regionsKnown[reader])
    version = sharedDepth(maker, reader);
  return std::min(version, deepest[value]);
}

void RegionExpander::demand(NodeId node, int32_t level) {
  if (level == 0 || demanded[slot(node, level)])
    return;
  demanded[slot(node, level)] = 1;
  worklist.push_back({node, level});
}

/// Requests the operands of a node (or of a copy). Returns whether a value
/// turned out to be kept at a lower depth than assumed.
bool RegionExpander::readAll(NodeId reader, int32_t level) {
  bool changed = false;
  for (ValueId read : graph.nodes[reader].inputs) {
    NodeId maker = producer[read];
    if (maker < 0)
      continue;
    int32_t version = versionFor(reader, level, read);
    demand(maker, version);
    if (!backward[reader] && level <= version)
      continue;
    // A view that is kept keeps its base.
    for (ValueId v = read; v >= 0; v = graph.values[v].aliasOf) {
      if (v != read && version > 0)
        break;
      if (version < deepest[v] && producer[v] >= 0 && !alone(producer[v])) {
        deepest[v] = version;
        changed = true;
      }
    }
  }
  return changed;
}

/// Runs one round: collects which copies are needed at the depths known so far.
bool RegionExpander::collectDemand() {
  demanded.assign(size_t(numNodes) * size_t(maxDepth + 1), 0);
  worklist.clear();
  bool changed = false;
  for (NodeId n = 0; n < numNodes; ++n)
    if (backward[n])
      changed |= readAll(n, 0);
  while (!worklist.empty()) {
    auto [node, level] = worklist.back();
    worklist.pop_back();
    changed |= readAll(node, level);
  }
  return changed;
}

/// Nodes that no forward node reads need not run in the forward pass.
void RegionExpander::findDeferred() {
  deferred.assign(size_t(numNodes), 0);
  std::vector<char> followed(size_t(numNodes), 0);
  for (const Node &node : graph.nodes)
    for (NodeId before : node.after)
      followed[before] = 1;
  for (NodeId n = numNodes; n-- > 0;) {
    if (depthOf(n) != 1 || !demanded[slot(n, 1)] || followed[n])
      continue;
    deferred[n] = 1;
    for (ValueId v : graph.nodes[n].outputs)
      deferred[n] &= root[v] == v && deepest[v] == 1 &&
                     graph.values[v].kind == ValueKind::Temp &&
                     std::all_of(readers[v].begin(), readers[v].end(),
                                 [&](NodeId r) { return deferred[r] != 0; });
  }
}

ValueId RegionExpander::valueAt(ValueId value, int32_t version) const {
  auto found = versions.find({value, version});
  return found == versions.end() ? value : found->second;
}

/// Adds a node of the larger graph that stands for `node` at a depth.
NodeId RegionExpander::addNode(NodeId original, int32_t level) {
  NodeId id = NodeId(out.graph.nodes.size());
  Node node = graph.nodes[original];
  auto seen = [&](ValueId v) {
    return valueAt(v, versionFor(original, level, v));
  };
  for (ValueId &v : node.inputs)
    v = seen(v);
  for (ValueId &v : node.outputs) {
    if (level > 0 && !deferred[original]) {
      Value copy = graph.values[v];
      out.valueOrigin.push_back(v);
      copy.kind = ValueKind::Temp;
      if (copy.aliasOf >= 0)
        copy.aliasOf = seen(copy.aliasOf);
      versions[{v, level}] = ValueId(out.graph.values.size());
      v = ValueId(out.graph.values.size());
      out.graph.values.push_back(std::move(copy));
    }
  }
  for (auto &[input, output] : node.reuse) {
    input = seen(input);
    output = valueAt(output, level);
  }
  for (NodeId &before : node.after)
    before = emitted[slot(before, 0)];
  node.recompute = node.recompute && !kept[original];
  out.graph.nodes.push_back(std::move(node));
  out.origin.push_back(original);
  emitted[slot(original, level)] = id;
  return id;
}

/// Returns the mark that follows the forward pass, or a region's recomputation.
NodeId RegionExpander::mark(int32_t region) {
  if (auto found = marks.find(region); found != marks.end())
    return found->second;
  Node node;
  node.recompute = false;
  if (region == forwardPass) {
    node.name = "end of the forward pass";
    for (NodeId n = 0; n < numNodes; ++n)
      if (!backward[n] && !deferred[n])
        node.after.push_back(emitted[slot(n, 0)]);
  } else {
    node.name = "end of a region's recomputation";
    for (NodeId n : members[region]) {
      const std::vector<int32_t> &path = policy.regions[n];
      int32_t level =
          int32_t(std::find(path.begin(), path.end(), region) - path.begin()) +
          1;
      if (!demanded[slot(n, level)])
        continue;
      emitCopy(n, level);
      node.after.push_back(emitted[slot(n, level)]);
    }
  }
  NodeId id = NodeId(out.graph.nodes.size());
  out.graph.nodes.push_back(std::move(node));
  out.origin.push_back(-1);
  return marks[region] = id;
}

/// Emits a copy after the copies that it reads (without recursion along the
/// graph; marks recur once for each level of nesting).
void RegionExpander::emitCopy(NodeId node, int32_t level) {
  std::vector<std::pair<NodeId, int32_t>> stack{{node, level}};
  while (!stack.empty()) {
    auto [n, l] = stack.back();
    if (emitted[slot(n, l)] >= 0) {
      stack.pop_back();
      continue;
    }
    size_t waiting = stack.size();
    for (ValueId v : graph.nodes[n].inputs)
      if (int32_t version = versionFor(n, l, v);
          version > 0 && emitted[slot(producer[v], version)] < 0)
        stack.push_back({producer[v], version});
    if (stack.size() > waiting)
      continue;
    int32_t pass = l >= 2 ? policy.regions[n][size_t(l - 2)] : forwardPass;
    NodeId follows = mark(pass);
    if (emitted[slot(n, l)] < 0)
      out.graph.nodes[size_t(addNode(n, l))].after.push_back(follows);
    stack.pop_back();
  }
}

/// Emits copies that read a value before the node that overwrites it.
void RegionExpander::emitBeforeUpdate(NodeId node) {
  for (ValueId v : graph.nodes[node].mutates)
    for (NodeId reader : readers[root[v]])
      for (int32_t level = 1; level <= depthOf(reader); ++level)
        if (demanded[slot(reader, level)])
          emitCopy(reader, level);
}

void RegionExpander::emitOriginal(NodeId node) {
  if (backward[node]) {
    emitBeforeUpdate(node);
    for (ValueId v : graph.nodes[node].inputs)
      if (int32_t version = versionFor(node, 0, v); version > 0)
        emitCopy(producer[v], version);
  }
  addNode(node, 0);
}

PolicyGraph RegionExpander::run() {
  survey();
  findBackward();
  findUnable();
  for (NodeId n = 0; n < numNodes; ++n)
    maxDepth = std::max(maxDepth, depthOf(n));
  deepest.assign(graph.values.size(), 0);
  for (NodeId n = 0; n < numNodes; ++n)
    for (ValueId v : graph.nodes[n].outputs)
      deepest[v] = depthOf(n);
  while (collectDemand())
    ;
  findDeferred();
  bool copies = false;
  for (NodeId n = 0; n < numNodes; ++n) {
    bool again = false;
    for (int32_t level = 1; level <= depthOf(n); ++level)
      again |= demanded[slot(n, level)] != 0;
    copies |= again;
    if (again && !deferred[n])
      out.recomputed.push_back(n);
    if (depthOf(n) > 0)
      for (int32_t region : policy.regions[n])
        members[region].push_back(n);
  }
  out.graph.name = graph.name;
  out.graph.alignment = graph.alignment;
  out.graph.obeysPolicy = true;
  out.graph.values = graph.values;
  for (ValueId v = 0; v < ValueId(graph.values.size()); ++v)
    out.valueOrigin.push_back(v);
  emitted.assign(size_t(numNodes) * size_t(maxDepth + 1), -1);
  // The mark follows the forward pass, so the pass must come before the first
  // copy.
  if (copies)
    for (NodeId n = 0; n < numNodes; ++n)
      if (!backward[n] && !deferred[n])
        emitOriginal(n);
  for (NodeId n = 0; n < numNodes; ++n)
    if (!copies || backward[n])
      emitOriginal(n);
  return std::move(out);
}

} // namespace

PolicyGraph ckopt::planner::applyPolicy(const Graph &graph,
                                        const Policy &policy) {
  return RegionExpander(graph, policy).run();
}
