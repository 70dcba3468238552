//===- GapMilp.h - which gaps of an order to drop, exactly ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner. Solves the gap relaxation (GapProblem.h) with
// integral decisions and with the inputs that a run in a gap needs. The result
// is a proven bound on the cost of all plans of an order, and the gaps that a
// nearly optimal plan drops.
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
  /// Proven lower bound on the extra cost of plans of the order within the
  /// budget.
  double bound = 0;
  /// By gap: whether it is dropped. Empty if no decision was found.
  std::vector<char> dropped;
  double value = 0; ///< extra cost of `dropped` in the model
};

struct GapMilpOptions {
  int32_t treeNodes = 2000; ///< of each program
  /// Extra cost of some known plan: only cheaper ones are searched for.
  double known = 1e300;
  /// The most programs to solve; each one adds rows that the solution before
  /// violated.
  int rounds = 24;
  /// Programs are solved to this relative gap at first, exactly in the end.
  double roughGap = 0.003;
  /// Called with each solution; returns the extra cost of the best plan known
  /// by then.
  std::function<double(const GapDecision &)> proposed;
};

/// Computes bounds, and proposes gaps to drop.
GapDecision decideGaps(const GapProblem &gaps, int64_t budget,
                       const GapMilpOptions &options, Deadline &deadline);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_EXACTORDER_GAPMILP_H
