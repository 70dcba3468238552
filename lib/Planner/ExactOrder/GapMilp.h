//===- GapMilp.h - which gaps of an order to drop, exactly ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner. The gap relaxation (GapProblem.h) with integral
// decisions and with what a run in a gap needs: a proven bound on the cost of
// all plans of an order, and the gaps that a plan near it drops.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_EXACTORDER_GAPMILP_H
#define CKOPT_LIB_PLANNER_EXACTORDER_GAPMILP_H

#include "Bounds/Gaps.h"
#include "Math/Milp.h"
#include "Model/Deadline.h"

#include <functional>

namespace ckopt::planner {

struct GapDecision {
  MilpResult::Kind kind = MilpResult::Limited;
  /// Proven: no plan of the order within the budget has less extra cost.
  double bound = 0;
  /// By gap: dropped. Empty if none was found.
  std::vector<char> dropped;
  double value = 0; ///< extra cost that the model gives `dropped`
};

struct GapMilpOptions {
  int32_t treeNodes = 2000; ///< of each program
  /// Extra cost of a known plan (any): only what costs less is looked for.
  double known = 1e300;
  /// Programs to solve at most: each one asks for what the solution before left
  /// open.
  int rounds = 24;
  /// Programs are solved to this share at first, exactly in the end.
  double roughGap = 0.003;
  /// Called with each solution; returns the extra cost of the best plan known
  /// by then.
  std::function<double(const GapDecision &)> proposed;
};

/// Bounds, and proposes gaps to drop.
GapDecision decideGaps(const GapProblem &gaps, int64_t budget,
                       const GapMilpOptions &options, Deadline &deadline);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_EXACTORDER_GAPMILP_H
