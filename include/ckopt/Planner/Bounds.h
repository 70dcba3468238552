//===- Bounds.h - proven lower bounds ---------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What no plan can do better than. Bounds on cost come with a certificate from
// which an independent checker derives the very same figure.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PLANNER_BOUNDS_H
#define CKOPT_PLANNER_BOUNDS_H

#include "ckopt/Planner/Certificate.h"

namespace ckopt::planner {

/// No plan in any order has a smaller load (bytes). Searches for `workUnits`
/// of about 50 ns; more may prove more, and the same number proves the same.
int64_t memoryBound(const Graph &graph, int64_t workUnits = 4000000);

/// No plan whose first runs follow `order` (all nodes) has a smaller load.
/// Linear time; not always above memoryBound().
int64_t memoryBoundInOrder(const Graph &graph,
                           const std::vector<NodeId> &order);

/// No order has a smaller load where every node runs once.
int64_t orderOnlyBound(const Graph &graph, int64_t workUnits = 4000000);

/// No plan within the budget (bytes) in any order costs less; the certificate
/// (optional) proves it.
double costBound(const Graph &graph, int64_t budget,
                 Certificate *certificate = nullptr);

/// No plan within the budget whose first runs follow `order` (all nodes) costs
/// less. `prices` (optional) receives the price of a byte at each position, the
/// end included, in the graph's unit of cost; all 0 where nothing has to be
/// saved.
double orderBound(const Graph &graph, const std::vector<NodeId> &order,
                  int64_t budget, std::vector<double> *prices = nullptr,
                  Certificate *certificate = nullptr);

/// The bound of orderBound() at given prices, without a search for the best
/// ones; any prices give a valid one.
double orderBoundAt(const Graph &graph, const std::vector<NodeId> &order,
                    int64_t budget, std::vector<double> prices,
                    Certificate *certificate = nullptr);

} // namespace ckopt::planner

#endif // CKOPT_PLANNER_BOUNDS_H
