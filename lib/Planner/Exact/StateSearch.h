//===- StateSearch.h - the cheapest way through states ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner: the search behind ExactSearch.h.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_EXACT_STATESEARCH_H
#define CKOPT_LIB_PLANNER_EXACT_STATESEARCH_H

#include "Exact/ExactModel.h"
#include "Exact/ExactSearch.h"

namespace ckopt::planner {

/// Finds the cheapest steps whose load (aligned bytes) is within `budget`.
/// First runs follow the program order if `fixedOrder`; without `countCost` any
/// steps will do, and their cost counts as 0. Returns GaveUp if a limit was
/// reached, with the smallest cost that is left, or if the model is too large
/// to encode.
ExactResult searchStates(const ExactModel &model, int64_t budget,
                         bool fixedOrder, bool countCost, Deadline &deadline,
                         size_t stateLimit);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_EXACT_STATESEARCH_H
