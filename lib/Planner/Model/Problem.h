//===- Problem.h - a graph compiled for the solvers -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner: the graph as flat arrays, in the form that solvers
// need. Sizes are rounded up to the alignment, views have none, the base of a
// view counts as read by the node that makes the view.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_MODEL_PROBLEM_H
#define CKOPT_LIB_PLANNER_MODEL_PROBLEM_H

#include "ckopt/Planner/Simulator.h"

#include <span>

namespace ckopt::planner {

/// Lists of numbers in one array.
struct Csr {
  std::vector<int32_t> start{0}, items;
  std::span<const int32_t> operator[](int32_t i) const {
    return {items.data() + start[i], size_t(start[i + 1] - start[i])};
  }
  static Csr from(const std::vector<std::vector<int32_t>> &lists);
};

/// The rules for plans of graphs whose nodes overwrite values.
enum class Rules : uint8_t {
  /// Restricted rules that every strategy can follow: a result that is
  /// overwritten is made once if it has views, and is never made again after a
  /// change; making a view of it counts as reading it.
  Simple,
  /// The rules of the format: only the copies that are read must have seen all
  /// changes. Bounds and proofs use them; every plan within the simple rules is
  /// one within these.
  Format,
};

struct Problem {
  explicit Problem(const Graph &graph, Rules rules = Rules::Simple);

  const Graph &graph;
  int32_t numNodes, numValues;

  std::vector<int64_t> bytes;     ///< by value, aligned; 0 for views
  std::vector<int64_t> workspace; ///< by node, aligned
  std::vector<double> cost;       ///< by node
  std::vector<NodeId> producer;   ///< by value; -1: there at the start
  std::vector<ValueId> base;      ///< by value; -1: no view
  std::vector<ValueId> root;      ///< by value; itself if no view
  std::vector<char> initial;      ///< by value: input or persistent
  std::vector<char> endLive;      ///< by value: output or persistent
  std::vector<char> recompute;    ///< by node: may run again

  Csr reads;   ///< node -> values it needs, once each, bases of views included
  Csr outputs; ///< node -> values
  Csr readers; ///< value -> nodes, ascending
  Csr views;   ///< value -> its direct views
  Csr preds, succs; ///< order of first runs: data, after, mutates
  /// Node -> nodes that must not have run yet, because they overwrite its
  /// operands.
  Csr blockers;
  /// storage -> nodes that overwrite it, ascending
  Csr writers;
  /// Set if the two rules differ for this graph.
  bool simplified = false;
  /// Node -> reuse pairs, without those that can never be used.
  std::vector<std::vector<std::pair<ValueId, ValueId>>> pairs;

  /// Bytes that are resident from the first step to the last under every plan.
  int64_t persistentBytes = 0;
  double baseCost = 0;

  /// Returns resident bytes while the node runs, without values that it does
  /// not touch.
  int64_t ownBytes(NodeId node) const;

  /// Marks a storage and all its views as gone.
  void forget(ValueId storage, std::vector<char> &valid) const;

private:
  void buildOperands();
  void buildOrder(Rules rules);
};

/// True if valid steps keep the problem's rules on runs and order as well.
bool keepsSimpleRules(const Problem &problem, std::span<const NodeId> steps);

/// Simulates steps exactly, on these arrays.
Simulation simulate(const Problem &problem, std::span<const NodeId> steps,
                    bool aligned);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_MODEL_PROBLEM_H
