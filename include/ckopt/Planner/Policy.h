//===- Policy.h - requests to keep or recompute values ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A policy is turned into a larger graph whose every plan obeys it: a value
// that the backward pass must not find resident is made there by a separate
// node. So every strategy, every bound and every budget works under a policy
// unchanged, and a plan of the larger graph is also one of the given graph.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PLANNER_POLICY_H
#define CKOPT_PLANNER_POLICY_H

#include "ckopt/Planner/Plan.h"
#include "ckopt/Planner/Repeats.h"

namespace ckopt::planner {

/// The requests, by node; every list has one entry for each node of the graph.
struct Policy {
  /// Set for nodes of the backward pass. Successors of such nodes count as such
  /// too.
  std::vector<char> backward;
  /// Regions that hold the node, outermost first; a region has one parent. A
  /// region keeps only the values that it reads from outside: its own values
  /// are computed again when the backward pass needs them, and those of an
  /// inner region once more inside of that. A node of the backward pass has the
  /// regions of the node whose gradient it computes.
  std::vector<std::vector<int32_t>> regions;
  /// For nodes of the backward pass: set if `regions` is known. The other nodes
  /// find no value of any region resident.
  std::vector<char> regionsKnown;
  /// Set if the node runs once and its results stay until their last reader.
  std::vector<char> save;
  /// Set if the node's results are dropped after the forward pass and computed
  /// again for all later readers. Regions decide for the nodes in them.
  std::vector<char> recompute;

  explicit Policy(size_t nodes = 0)
      : backward(nodes), regions(nodes), regionsKnown(nodes), save(nodes),
        recompute(nodes) {}
};

/// A graph whose plans obey a policy.
struct PolicyGraph {
  Graph graph;
  /// By node of `graph`: the node of the given graph that it runs; -1 for a
  /// marker without work.
  std::vector<NodeId> origin;
  /// By value of `graph`: the value of the given graph that it is a copy of.
  std::vector<ValueId> valueOrigin;
  /// Nodes of the given graph that the policy recomputes, ascending.
  std::vector<NodeId> recomputed;
  /// Nodes that should be recomputed but cannot: they run once, or the forward
  /// pass overwrites a value that they read. Ascending.
  std::vector<NodeId> unable;
};

/// Builds the larger graph. O(nodes and operands, times the depth of nested
/// regions).
PolicyGraph applyPolicy(const Graph &graph, const Policy &policy);

/// Converts a plan of `constrained.graph` to one of `graph`, with cost, peak
/// and arena for that graph. Offsets are kept where they are valid, and
/// assigned anew where they are not (`holdsAll` as in packPlan()).
Plan restorePlan(const Graph &graph, const PolicyGraph &constrained,
                 const Plan &plan, bool holdsAll);

} // namespace ckopt::planner

#endif // CKOPT_PLANNER_POLICY_H
