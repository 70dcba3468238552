//===- Policy.h - what a user wants kept or computed again ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A policy is turned into a larger graph whose every plan obeys it: what the
// backward pass must not find resident is made by a node of its own there. So
// every strategy, every bound and every budget works under a policy without
// knowing of it, and a plan of the larger graph is one of the given graph.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PLANNER_POLICY_H
#define CKOPT_PLANNER_POLICY_H

#include "ckopt/Planner/Plan.h"
#include "ckopt/Planner/Repeats.h"

namespace ckopt::planner {

/// Wishes by node; every list has one entry a node of the graph.
struct Policy {
  /// Runs in the backward pass. Successors of such nodes count as such too.
  std::vector<char> backward;
  /// Regions that hold the node, outermost first; a region has one parent. A
  /// region keeps only what it reads of the outside: its values are computed
  /// again when the backward pass needs them, and what an inner region holds
  /// once more inside of that. For a node of the backward pass: those of the
  /// node whose gradient it computes.
  std::vector<std::vector<int32_t>> regions;
  /// For nodes of the backward pass: `regions` is known. The others find no
  /// value of any region resident.
  std::vector<char> regionsKnown;
  /// The node runs once and its results stay until they were last read.
  std::vector<char> save;
  /// The node's results are let go of after the forward pass and computed
  /// again for all that follows. Regions decide for the nodes in them.
  std::vector<char> recompute;

  explicit Policy(size_t nodes = 0)
      : backward(nodes), regions(nodes), regionsKnown(nodes), save(nodes),
        recompute(nodes) {}
};

/// A graph whose plans obey a policy.
struct PolicyGraph {
  Graph graph;
  /// By node of `graph`: the node of the given graph that it runs; -1: a mark
  /// without work.
  std::vector<NodeId> origin;
  /// By value of `graph`: the value of the given graph that it is a copy of.
  std::vector<ValueId> valueOrigin;
  /// Nodes of the given graph that the policy computes again, ascending.
  std::vector<NodeId> recomputed;
  /// Nodes that should be computed again and cannot: they run once, or what
  /// they read is overwritten in the forward pass. Ascending.
  std::vector<NodeId> unable;
};

/// The larger graph.
/// O(nodes and operands, times the depth of nested regions).
PolicyGraph applyPolicy(const Graph &graph, const Policy &policy);

/// A plan of `constrained.graph` as one of `graph`, with cost, peak and arena
/// as they are there. Offsets are kept where they are valid, and made anew
/// where they are not (`holdsAll` as in packPlan()).
Plan restorePlan(const Graph &graph, const PolicyGraph &constrained,
                 const Plan &plan, bool holdsAll);

} // namespace ckopt::planner

#endif // CKOPT_PLANNER_POLICY_H
