//===- Graph.h - the planning problem ---------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The problem that every planner strategy solves: nodes with costs, values
// with sizes, aliases, workspaces, in-place pairs and mutations. It is the
// in-memory form of ckopt-graph/1 (`GraphJson.h` reads and writes the file
// form) and knows nothing of any compiler IR.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PLANNER_GRAPH_H
#define CKOPT_PLANNER_GRAPH_H

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ckopt::planner {

/// Index into Graph::values.
using ValueId = int32_t;
/// Index into Graph::nodes; the order of ids is the program order.
using NodeId = int32_t;

enum class ValueKind : uint8_t {
  Temp,       ///< made by a node, resident from there to its last use
  Input,      ///< there before the first step, resident until its last use
  Persistent, ///< there before the first step, resident to the end
  Output,     ///< made by a node, its last copy is resident to the end
};

/// One value. If `aliasOf` is not negative, it is a view of that value: it
/// needs no bytes of its own, and keeps the other value resident while it is
/// resident itself.
struct Value {
  int64_t bytes = 0;
  ValueKind kind = ValueKind::Temp;
  ValueId aliasOf = -1;
  std::string name;
};

struct Node {
  std::string name;
  /// Cost of a run in any unit (the compiler uses seconds), additive, not
  /// negative.
  double cost = 0;
  std::vector<ValueId> inputs, outputs;
  /// Bytes resident only while the node runs.
  int64_t workspace = 0;
  /// False: the node runs exactly once.
  bool recompute = true;
  /// Pairs (input, output): the output may take the input's bytes, in listed
  /// order, if the input is at its last use, is not a view, has no live view,
  /// is not of kind Input or Persistent, and is at least as large.
  std::vector<std::pair<ValueId, ValueId>> reuse;
  /// Values that the node overwrites. The node runs once; nodes before it in
  /// program order read the value before it runs, nodes after it read the new
  /// contents.
  std::vector<ValueId> mutates;
  /// Nodes that must have run before this one (smaller ids).
  std::vector<NodeId> after;
  /// Name of the repeated block that the node belongs to; may be empty.
  std::string group;
};

struct Graph {
  std::string name;
  std::vector<Value> values;
  std::vector<Node> nodes;
  /// Every buffer starts at a multiple of this number of bytes and is rounded
  /// up to it.
  int64_t alignment = 1;
  /// Where the costs come from ("analytic", a profile's name, ...); may be
  /// empty. Plans and reports repeat it.
  std::string costModel;
  /// Ids that values and nodes have in the file that the graph was read from,
  /// ascending; empty if they are the same as in memory. Files and messages use
  /// them.
  std::vector<int64_t> valueIds, nodeIds;
  /// Set by applyPolicy(): statements on this graph's plans cover only those
  /// plans of the original graph that obey the policy.
  bool obeysPolicy = false;

  int64_t valueFileId(ValueId v) const {
    return size_t(v) < valueIds.size() ? valueIds[v] : v;
  }
  int64_t nodeFileId(NodeId n) const {
    return size_t(n) < nodeIds.size() ? nodeIds[n] : n;
  }
};

/// Returns all problems of the graph, one a line, of which at most 20 are
/// named, or an empty string. Every entry point of the planner calls it, so
/// malformed graphs are diagnosed and never reach a solver.
std::string validate(const Graph &graph);

/// Returns the sum of all nodes' costs, which is the cost of a plan without
/// recomputation.
double baseCost(const Graph &graph);

/// Rounds `bytes` up to a multiple of `alignment`.
inline int64_t alignTo(int64_t bytes, int64_t alignment) {
  return alignment <= 1 ? bytes
                        : (bytes + alignment - 1) / alignment * alignment;
}

} // namespace ckopt::planner

#endif // CKOPT_PLANNER_GRAPH_H
