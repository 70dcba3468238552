//===- ExactSearch.h - the least load of small graphs ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_EXACT_EXACTSEARCH_H
#define CKOPT_LIB_PLANNER_EXACT_EXACTSEARCH_H

#include "Model/Strategy.h"

namespace ckopt::planner {

struct LeastLoad {
  std::vector<NodeId> steps; ///< of the smallest load found
  /// A proven lower bound of the load of all plans (aligned bytes).
  int64_t bound = 0;
  bool proven = false; ///< `steps` reach the bound
};

/// Finds the plan of the smallest load, in any order, at whatever cost. `low`
/// is a proven bound on it, `known` any valid steps (they are returned if
/// nothing is smaller). `stateLimit` bounds the memory (about 100 bytes a
/// state).
LeastLoad leastLoad(const Problem &problem, int64_t low,
                    const std::vector<NodeId> &known, Deadline &deadline,
                    size_t stateLimit = 4000000);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_EXACT_EXACTSEARCH_H
