//===- Check.h - what a plan file states of itself --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TOOLS_CKOPT_PLAN_CHECK_H
#define CKOPT_TOOLS_CKOPT_PLAN_CHECK_H

#include "ckopt/Planner/GraphJson.h"

#include <string>
#include <vector>

namespace ckopt::planner {

/// What became of the claims in a plan file.
struct CheckedClaims {
  /// The first one that is wrong; empty: none.
  std::string wrong;
  /// Claims that were derived again, and those that nothing here can derive,
  /// each with the reason.
  std::vector<std::string> derived, notChecked;
};

/// Checks the plan itself against `budget` (bytes, 0: none) and everything that
/// the file states: figures, status, bounds, least budgets, packing. Fills in
/// the peak where none is stated. Searches again on graphs of at most 12 nodes.
CheckedClaims checkPlanFile(const Graph &graph, PlanFile &file, int64_t budget);

} // namespace ckopt::planner

#endif // CKOPT_TOOLS_CKOPT_PLAN_CHECK_H
