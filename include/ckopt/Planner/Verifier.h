//===- Verifier.h - checks a plan against its graph -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks plans without sharing code with the solvers: it only uses the rules of
// the interchange format to replay the steps.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PLANNER_VERIFIER_H
#define CKOPT_PLANNER_VERIFIER_H

#include "ckopt/Planner/Plan.h"

namespace ckopt::planner {

/// Returns the first rule that the plan breaks, or an empty string: order,
/// `mutates` and `after`, recomputation, residency, the scope's restrictions,
/// the stated peak and cost, in-place pairs, overlap of offsets, and load and
/// arena within `budget` (0: none). O(steps log steps + overlap checks).
std::string verify(const Graph &graph, const Plan &plan, int64_t budget);

/// Checks only `steps`, and no other statement of the plan (cost, peak,
/// offsets, status). Steps that people edited are checked by this first.
std::string verifySteps(const Graph &graph, const Plan &plan);

} // namespace ckopt::planner

#endif // CKOPT_PLANNER_VERIFIER_H
