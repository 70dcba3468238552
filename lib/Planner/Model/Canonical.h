//===- Canonical.h - a graph in units of its own ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner. Searches run on this form, so that neither the unit
// of costs nor that of bytes decides which plan they find.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_MODEL_CANONICAL_H
#define CKOPT_LIB_PLANNER_MODEL_CANONICAL_H

#include "ckopt/Planner/Plan.h"

namespace ckopt::planner {

/// What all nodes cost at least: the start of a kernel.
double startCost(const Graph &graph);

/// A graph to search on, the same for all graphs that differ from it by a
/// factor on all costs or on all bytes alone. Steps of one are steps of the
/// other. Names are left out.
struct CanonicalGraph {
  /// `startless`: of the graph whose costs are less what the cheapest node
  /// costs.
  explicit CanonicalGraph(const Graph &given, bool startless = false);

  /// A budget (0: none) in units of this graph, rounded down, but not to 0.
  int64_t fromBytes(int64_t budget) const;
  /// Replaces sizes and offsets of a plan of this graph by those of the given
  /// one.
  void toBytes(Plan &plan) const;
  /// The reverse; false if the plan has an offset between two units.
  bool fromBytes(Plan &plan) const;

  Graph graph;
  int64_t byteUnit = 1; ///< a byte here is so many there
  double costUnit = 1;  ///< a cost of 1 here is so much there
  /// A bound here is one there once it is multiplied by this.
  double boundUnit = 1;

private:
  void divideBytes();
  void divideCosts();
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_MODEL_CANONICAL_H
