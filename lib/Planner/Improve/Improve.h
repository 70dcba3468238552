//===- Improve.h - better plans from known ones -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Interface of this folder.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_IMPROVE_IMPROVE_H
#define CKOPT_LIB_PLANNER_IMPROVE_IMPROVE_H

#include "Model/Strategy.h"

namespace ckopt::planner {

/// Strategy "local-search". Objective: the cheapest steps within the budget, or
/// the smallest where none fit. Method: simulated annealing on the sequence, in
/// several chains. Ends after a number of moves that grows with the graph and
/// the effort.
void runLocalSearch(StrategyContext &context);

struct OrderResult {
  std::vector<NodeId> order;
  int64_t peak = 0; ///< aligned bytes, as simulate() counts them
  /// Set if a search over all sets of nodes that may have run proved that no
  /// order without recomputation has a smaller peak.
  bool optimal = false;
};

/// Returns the order with the least peak that was found; it is never worse than
/// the best of candidateOrders(), and is the same for any number of threads.
OrderResult searchOrder(const Problem &problem, Deadline &deadline,
                        uint64_t seed, double effort = 1, int threads = 1,
                        const OrderTuning &tuning = defaultTuning.order);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_IMPROVE_IMPROVE_H
