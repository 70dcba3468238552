//===- Bounds.h - proven lower bounds ---------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lower bounds on the load and cost of plans. Bounds on cost come with a
// certificate from which an independent checker derives the very same figure.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PLANNER_BOUNDS_H
#define CKOPT_PLANNER_BOUNDS_H

#include "ckopt/Planner/Certificate.h"

namespace ckopt::planner {

/// Returns a load in bytes below which no plan in any order can stay. Searches
/// for `workUnits` of about 50 ns; more may prove more, and the same number
/// proves the same.
int64_t memoryBound(const Graph &graph, int64_t workUnits = 4000000);

/// Returns a load below which no plan can stay whose first runs follow `order`
/// (all nodes). Linear time; not always above memoryBound().
int64_t memoryBoundInOrder(const Graph &graph,
                           const std::vector<NodeId> &order);

/// Returns a load below which no order can stay if every node runs once.
int64_t orderOnlyBound(const Graph &graph, int64_t workUnits = 4000000);

/// Returns a cost below which no plan within the budget (bytes) exists, in any
/// order; the certificate (optional) proves it.
double costBound(const Graph &graph, int64_t budget,
                 Certificate *certificate = nullptr);

/// Returns a cost below which no plan within the budget exists whose first runs
/// follow `order` (all nodes). `prices` (optional) receives the price of a byte
/// at each position, the end included, in the graph's unit of cost; all 0 if
/// nothing has to be recomputed.
double orderBound(const Graph &graph, const std::vector<NodeId> &order,
                  int64_t budget, std::vector<double> *prices = nullptr,
                  Certificate *certificate = nullptr);

/// Returns the bound of orderBound() at given prices, without a search for the
/// best ones; any prices give a valid bound.
double orderBoundAt(const Graph &graph, const std::vector<NodeId> &order,
                    int64_t budget, std::vector<double> prices,
                    Certificate *certificate = nullptr);

} // namespace ckopt::planner

#endif // CKOPT_PLANNER_BOUNDS_H
