//===- Graph.cpp - what a planning problem must satisfy -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Validates graphs. Every solver indexes arrays by the ids in the graph and
// relies on program order being a topological order; this is the one place that
// checks both. Linear in the size of the graph.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/Graph.h"

#include <algorithm>
#include <cmath>

using namespace ckopt::planner;

namespace {

/// Sums of sizes stay below this limit, so that neither they nor costs times
/// any number of steps overflow.
constexpr int64_t maxTotalBytes = int64_t(1) << 60;
constexpr double maxTotalCost = 1e100;

class Validator {
public:
  explicit Validator(const Graph &graph) : graph(graph) {}
  std::string run();

private:
  void fail(const std::string &message);
  bool knownValue(ValueId value) const {
    return value >= 0 && value < int32_t(graph.values.size());
  }
  std::string node(NodeId id) const {
    std::string text = "node " + std::to_string(graph.nodeFileId(id));
    if (!graph.nodes[id].name.empty())
      text += " (" + graph.nodes[id].name + ")";
    return text;
  }
  std::string value(ValueId id) const {
    return "value " + std::to_string(graph.valueFileId(id));
  }
  bool isInitial(ValueId id) const {
    ValueKind kind = graph.values[id].kind;
    return kind == ValueKind::Input || kind == ValueKind::Persistent;
  }
  void checkValues();
  void checkAliasCycles();
  void checkTotals();
  void findProducers();
  void checkNode(NodeId id);
  void checkReads(NodeId id, const std::vector<ValueId> &inputs);
  void checkViews(NodeId id);
  void checkMutates(NodeId id);

  const Graph &graph;
  std::vector<NodeId> producer;
  std::string errors;
  int count = 0;
};

void Validator::fail(const std::string &message) {
  if (++count > 20)
    return;
  if (!errors.empty())
    errors += '\n';
  errors += count == 20 ? "... and more" : message;
}

void Validator::checkValues() {
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const Value &v = graph.values[i];
    std::string what = value(ValueId(i));
    if (v.bytes < 0)
      fail(what + ": negative size " + std::to_string(v.bytes));
    if (v.aliasOf < 0)
      continue;
    if (!knownValue(v.aliasOf))
      fail(what + ": is a view of unknown value " + std::to_string(v.aliasOf));
    else if (isInitial(ValueId(i)))
      fail(what + ": a view must be made by a node, so it cannot be of kind "
                  "input or persistent");
  }
}

/// Each view can keep one more copy of its base alive, so the load stays below
/// the sum of all sizes times one more than their views.
void Validator::checkTotals() {
  std::vector<int64_t> copies(graph.values.size(), 1);
  for (size_t i = 0; i < graph.values.size(); ++i) {
    // Chains of views are short, but a file may say otherwise.
    ValueId root = ValueId(i);
    for (int depth = 0; depth < 64 && graph.values[root].aliasOf >= 0; ++depth)
      root = graph.values[root].aliasOf;
    if (graph.values[root].aliasOf >= 0)
      return fail(value(ValueId(i)) + ": a view of views, more than 64 deep");
    copies[root] += root != ValueId(i);
  }
  int64_t total = 0;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    // A size is capped one above the limit, so that rounding it up cannot
    // overflow.
    int64_t bytes = alignTo(std::min(graph.values[i].bytes, maxTotalBytes + 1),
                            graph.alignment);
    if (bytes > (maxTotalBytes - total) / copies[i])
      return fail(value(ValueId(i)) +
                  ": the sizes of all values add up to more than 2^60 bytes");
    total += bytes * copies[i];
  }
  double cost = 0;
  for (const Node &n : graph.nodes)
    cost += n.cost;
  if (cost > maxTotalCost)
    fail("the costs of all nodes add up to more than 1e100");
}

void Validator::checkAliasCycles() {
  // 0: not seen, 1: on the current chain, 2: leads to a root.
  std::vector<char> state(graph.values.size(), 0);
  std::vector<ValueId> chain;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    chain.clear();
    ValueId v = ValueId(i);
    while (state[v] == 0) {
      state[v] = 1;
      chain.push_back(v);
      if (graph.values[v].aliasOf < 0)
        break;
      v = graph.values[v].aliasOf;
    }
    if (graph.values[v].aliasOf >= 0 && state[v] == 1)
      fail(value(v) + ": alias_of goes in a circle");
    for (ValueId seen : chain)
      state[seen] = 2;
  }
}

void Validator::checkReads(NodeId id, const std::vector<ValueId> &inputs) {
  for (ValueId v : inputs) {
    if (!knownValue(v)) {
      fail(node(id) + ": reads unknown value " + std::to_string(v));
      continue;
    }
    if (isInitial(v))
      continue;
    if (producer[v] < 0)
      fail(node(id) + ": reads " + value(v) + ", which no node makes");
    else if (producer[v] >= id)
      fail(
          node(id) + ": reads " + value(v) + ", which " + node(producer[v]) +
          " makes: ids must be a topological order (or the graph has a cycle)");
  }
}

void Validator::checkMutates(NodeId id) {
  const Node &n = graph.nodes[id];
  for (ValueId v : n.mutates) {
    if (!knownValue(v)) {
      fail(node(id) + ": mutates unknown value " + std::to_string(v));
      continue;
    }
    bool read =
        std::find(n.inputs.begin(), n.inputs.end(), v) != n.inputs.end();
    if (graph.values[v].kind != ValueKind::Persistent && !read)
      fail(node(id) + ": mutates " + value(v) +
           ", which is neither persistent nor one of its inputs");
  }
}

/// Checks that the base of a view is made before it.
void Validator::checkViews(NodeId id) {
  const Node &n = graph.nodes[id];
  for (size_t k = 0; k < n.outputs.size(); ++k) {
    ValueId v = n.outputs[k];
    if (!knownValue(v) || !knownValue(graph.values[v].aliasOf))
      continue;
    ValueId base = graph.values[v].aliasOf;
    if (isInitial(base))
      continue;
    auto end = n.outputs.begin() + k;
    bool here = std::find(n.outputs.begin(), end, base) != end;
    if (!here && (producer[base] < 0 || producer[base] >= id))
      fail(node(id) + ": makes " + value(v) + ", a view of " +
           std::to_string(graph.valueFileId(base)) +
           ", which is not made before it");
  }
}

void Validator::checkNode(NodeId id) {
  const Node &n = graph.nodes[id];
  if (!std::isfinite(n.cost) || n.cost < 0)
    fail(node(id) + ": the cost must be a finite number, not negative");
  if (n.workspace < 0 || n.workspace > maxTotalBytes)
    fail(node(id) + ": workspace out of range");
  checkReads(id, n.inputs);
  for (auto [i, o] : n.reuse)
    if (!knownValue(i) || !knownValue(o))
      fail(node(id) + ": reuse names an unknown value");
  checkMutates(id);
  for (NodeId p : n.after)
    if (p < 0 || p >= id)
      fail(node(id) + ": 'after' names node " +
           std::to_string(p < 0 ? p : graph.nodeFileId(p)) +
           ", which does not come before it");
  checkViews(id);
}

void Validator::findProducers() {
  producer.assign(graph.values.size(), -1);
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    for (ValueId v : graph.nodes[i].outputs) {
      if (!knownValue(v)) {
        fail(node(NodeId(i)) + ": makes unknown value " + std::to_string(v));
        continue;
      }
      if (isInitial(v))
        fail(node(NodeId(i)) + ": makes " + value(v) +
             ", which is there before the first step (input or persistent)");
      if (producer[v] >= 0)
        fail(value(v) + " is made twice, by " + node(producer[v]) + " and by " +
             node(NodeId(i)));
      producer[v] = NodeId(i);
    }
}

std::string Validator::run() {
  if (graph.alignment < 1 || graph.alignment > (int64_t(1) << 30))
    fail("alignment must lie between 1 and 2^30");
  if (graph.values.size() > (size_t(1) << 28) ||
      graph.nodes.size() > (size_t(1) << 28))
    fail("more than 2^28 values or nodes");
  checkValues();
  if (count)
    return errors; // ids below could be out of range
  checkAliasCycles();
  if (count)
    return errors;
  checkTotals();
  findProducers();
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    checkNode(NodeId(i));
  for (size_t i = 0; i < graph.values.size(); ++i)
    if (graph.values[i].kind == ValueKind::Output && producer[i] < 0)
      fail(value(ValueId(i)) + " is an output, but no node makes it");
  return errors;
}

} // namespace

std::string ckopt::planner::validate(const Graph &graph) {
  return Validator(graph).run();
}

double ckopt::planner::baseCost(const Graph &graph) {
  double cost = 0;
  for (const Node &node : graph.nodes)
    cost += node.cost;
  return cost;
}
