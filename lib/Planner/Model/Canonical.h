//===- Canonical.h - a graph in units of its own ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner. Searches run on this form, so that neither the unit
// of costs nor that of bytes affects which plan they find.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_MODEL_CANONICAL_H
#define CKOPT_LIB_PLANNER_MODEL_CANONICAL_H

#include "ckopt/Planner/Plan.h"

namespace ckopt::planner {

/// Returns the least cost of all nodes, which is the cost of starting a kernel.
double startCost(const Graph &graph);

/// A graph to search on. It is the same for all graphs that differ only by a
/// factor on all costs or on all bytes. Steps of one are steps of the other.
/// Names are left out.
struct CanonicalGraph {
  /// With `startless`, the cost of the cheapest node is subtracted from all
  /// costs first.
  explicit CanonicalGraph(const Graph &given, bool startless = false);

  /// Converts a budget (0: none) to units of this graph, rounded down, but not
  /// to 0.
  int64_t fromBytes(int64_t budget) const;
  /// Converts sizes and offsets of a plan of this graph to those of the given
  /// one.
  void toBytes(Plan &plan) const;
  /// Converts back; returns false if the plan has an offset between two units.
  bool fromBytes(Plan &plan) const;

  Graph graph;
  int64_t byteUnit = 1; ///< bytes of the given graph in one byte of this graph
  double costUnit = 1;  ///< cost in the given graph of a cost of 1 here
  /// Factor that converts a bound of this graph to one of the given graph.
  double boundUnit = 1;

private:
  void divideBytes();
  void divideCosts();
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_MODEL_CANONICAL_H
