//===- Bounds.h - proven lower bounds ---------------------------*- C++ -*-===//
#ifndef CKOPT_PLANNER_BOUNDS_H
#define CKOPT_PLANNER_BOUNDS_H

#include "ckopt/Planner/Graph.h"

namespace ckopt::planner {

/// No plan in any order has a smaller load (bytes).
int64_t memoryBound(const Graph &graph);

/// No plan within the budget in any order costs less.
double costBound(const Graph &graph, int64_t budget);

/// No plan within the budget whose first runs follow `order` costs less: the
/// Lagrangian of the gap relaxation at the best prices found. Any prices give a
/// valid bound. `prices` (optional) receives the price of a byte by step.
double orderBound(const Graph &graph, const std::vector<NodeId> &order,
                  int64_t budget, std::vector<double> *prices = nullptr);

} // namespace ckopt::planner

#endif // CKOPT_PLANNER_BOUNDS_H
