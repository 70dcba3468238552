//===- Graph.cpp - what a planning problem must satisfy -------------------===//
//
// Every solver indexes arrays by the ids in the graph and trusts program order
// to be a topological order; this is the one place that makes both true. Linear
// in the size of the graph.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/Graph.h"

#include <algorithm>
#include <cmath>

using namespace ckopt::planner;

namespace {

/// Sums of sizes stay far from overflow.
constexpr int64_t maxTotalBytes = int64_t(1) << 60;

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
    std::string text = "node " + std::to_string(id);
    if (!graph.nodes[id].name.empty())
      text += " (" + graph.nodes[id].name + ")";
    return text;
  }
  void checkValues();
  void checkAliasCycles();
  void checkNode(NodeId id);
  void checkReads(NodeId id);
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
  int64_t total = 0;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const Value &value = graph.values[i];
    std::string what = "value " + std::to_string(i);
    if (value.bytes < 0)
      fail(what + ": negative size " + std::to_string(value.bytes));
    else if (value.bytes > maxTotalBytes - total)
      fail(what + ": the sizes of all values add up to more than 2^60 bytes");
    else
      total += value.bytes;
    if (value.aliasOf < 0)
      continue;
    if (!knownValue(value.aliasOf))
      fail(what + ": is a view of unknown value " +
           std::to_string(value.aliasOf));
    else if (value.kind == ValueKind::Input ||
             value.kind == ValueKind::Persistent)
      fail(what + ": a view must be made by a node, so it cannot be of kind "
                  "input or persistent");
  }
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
      fail("value " + std::to_string(v) + ": alias_of goes in a circle");
    for (ValueId seen : chain)
      state[seen] = 2;
  }
}

void Validator::checkReads(NodeId id) {
  for (ValueId v : graph.nodes[id].inputs) {
    if (!knownValue(v)) {
      fail(node(id) + ": reads unknown value " + std::to_string(v));
      continue;
    }
    ValueKind kind = graph.values[v].kind;
    if (kind == ValueKind::Input || kind == ValueKind::Persistent)
      continue;
    if (producer[v] < 0)
      fail(node(id) + ": reads value " + std::to_string(v) +
           ", which no node makes");
    else if (producer[v] >= id)
      fail(
          node(id) + ": reads value " + std::to_string(v) + ", which " +
          node(producer[v]) +
          " makes: ids must be a topological order (or the graph has a cycle)");
  }
}

void Validator::checkMutates(NodeId id) {
  const Node &n = graph.nodes[id];
  for (ValueId v : n.mutates) {
    if (!knownValue(v))
      fail(node(id) + ": mutates unknown value " + std::to_string(v));
    else if (graph.values[v].kind != ValueKind::Persistent &&
             std::find(n.inputs.begin(), n.inputs.end(), v) == n.inputs.end())
      fail(node(id) + ": mutates value " + std::to_string(v) +
           ", which is neither persistent nor one of its inputs");
  }
}

void Validator::checkNode(NodeId id) {
  const Node &n = graph.nodes[id];
  if (!std::isfinite(n.cost) || n.cost < 0)
    fail(node(id) + ": the cost must be a finite number, not negative");
  if (n.workspace < 0 || n.workspace > maxTotalBytes)
    fail(node(id) + ": workspace out of range");
  checkReads(id);
  for (auto [i, o] : n.reuse)
    if (!knownValue(i) || !knownValue(o))
      fail(node(id) + ": reuse names an unknown value");
  checkMutates(id);
  for (NodeId p : n.after)
    if (p < 0 || p >= id)
      fail(node(id) + ": 'after' names node " + std::to_string(p) +
           ", which does not come before it");
  for (size_t k = 0; k < n.outputs.size(); ++k) {
    ValueId v = n.outputs[k];
    if (!knownValue(v) || !knownValue(graph.values[v].aliasOf))
      continue;
    ValueId base = graph.values[v].aliasOf;
    ValueKind kind = graph.values[base].kind;
    if (kind == ValueKind::Input || kind == ValueKind::Persistent)
      continue;
    auto end = n.outputs.begin() + k;
    bool here = std::find(n.outputs.begin(), end, base) != end;
    if (!here && (producer[base] < 0 || producer[base] >= id))
      fail(node(id) + ": makes value " + std::to_string(v) + ", a view of " +
           std::to_string(base) + ", which is not made before it");
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
    return errors; // Ids below could be out of range.
  checkAliasCycles();
  producer.assign(graph.values.size(), -1);
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    for (ValueId v : graph.nodes[i].outputs) {
      if (!knownValue(v)) {
        fail(node(NodeId(i)) + ": makes unknown value " + std::to_string(v));
        continue;
      }
      ValueKind kind = graph.values[v].kind;
      if (kind == ValueKind::Input || kind == ValueKind::Persistent)
        fail(node(NodeId(i)) + ": makes value " + std::to_string(v) +
             ", which is there before the first step (input or persistent)");
      if (producer[v] >= 0)
        fail("value " + std::to_string(v) + " is made twice, by " +
             node(producer[v]) + " and by " + node(NodeId(i)));
      producer[v] = NodeId(i);
    }
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    checkNode(NodeId(i));
  for (size_t i = 0; i < graph.values.size(); ++i)
    if (graph.values[i].kind == ValueKind::Output && producer[i] < 0)
      fail("value " + std::to_string(i) +
           " is an output, but no node makes it");
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
