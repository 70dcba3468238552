//===- PlanCheck.h - checks the claims of a plan file -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PLANNER_PLANCHECK_H
#define CKOPT_PLANNER_PLANCHECK_H

#include "ckopt/Planner/GraphJson.h"

#include <string>
#include <vector>

namespace ckopt::planner {

/// Results of checking the claims in a plan file.
struct CheckedClaims {
  /// The first wrong claim, or "".
  std::string wrong;
  /// Claims that were derived again, and claims that cannot be checked, each
  /// with the reason.
  std::vector<std::string> derived, notChecked;
};

/// Checks the plan itself against `budget` (bytes, 0: none) and everything that
/// the file states: figures, status, bounds, smallest budgets, packing. Claims
/// that hold only under rules are not checked, since files do not have the
/// rules. Sets the peak if none is stated. Searches again on graphs of at most
/// 12 nodes.
CheckedClaims checkPlanFile(const Graph &graph, PlanFile &file, int64_t budget);

} // namespace ckopt::planner

#endif // CKOPT_PLANNER_PLANCHECK_H
