//===- LoadSearch.h - plans within a load, at any cost ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner. The pebble game with a limit on bytes: is there any
// plan, whatever its cost?
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_EXACT_LOADSEARCH_H
#define CKOPT_LIB_PLANNER_EXACT_LOADSEARCH_H

#include "Exact/ExactModel.h"
#include "Model/Deadline.h"

namespace ckopt::planner {

struct LoadResult {
  enum Kind : uint8_t {
    Found,  ///< `steps` should fit; simulate them to be sure
    NoPlan, ///< proven: no plan in any order fits
    GaveUp, ///< a limit was reached, or the graph is too large to encode
  };
  Kind kind = GaveUp;
  std::vector<NodeId> steps;
};

/// Searches for a plan, in any order, whose load (aligned) is within `budget`.
/// With `width` 0, it explores all relevant states, at most `stateLimit`, best
/// first, and can prove that there is no plan. Otherwise it is a beam of that
/// many states, which proves nothing.
LoadResult searchWithin(const ExactModel &model, int64_t budget,
                        Deadline &deadline, size_t stateLimit = 400000,
                        int32_t width = 0);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_EXACT_LOADSEARCH_H
