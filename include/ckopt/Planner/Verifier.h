//===- Verifier.h - checks a plan against its graph -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shares no code with the solvers: it replays the steps from the rules of the
// interchange format alone.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PLANNER_VERIFIER_H
#define CKOPT_PLANNER_VERIFIER_H

#include "ckopt/Planner/Plan.h"

namespace ckopt::planner {

/// Returns the first rule that the plan breaks, or an empty string: order,
/// `mutates` and `after`, what may run again, residency, peak and cost as the
/// plan states them, in-place pairs, overlap of offsets, and load and arena
/// within `budget` (0: none). O(steps log steps + overlap checks).
std::string verify(const Graph &graph, const Plan &plan, int64_t budget);

/// The same for `steps` alone: of what the plan says of itself
/// (cost, peak, offsets, status) nothing is looked at. Steps that people edited
/// come through here first.
std::string verifySteps(const Graph &graph, const Plan &plan);

} // namespace ckopt::planner

#endif // CKOPT_PLANNER_VERIFIER_H
