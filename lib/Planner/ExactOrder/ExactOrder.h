//===- ExactOrder.h - optima of the program order, with proof ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The exact method for a fixed order of first runs.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_EXACTORDER_EXACTORDER_H
#define CKOPT_LIB_PLANNER_EXACTORDER_EXACTORDER_H

#include "Model/Strategy.h"
#include "ckopt/Planner/Certificate.h"

namespace ckopt::planner {

/// Strategy "exact-order". Objective: the cheapest plan whose first runs follow
/// the program order, and a proof. Method: branch and bound on the gaps to drop
/// (GapMilp.h). Gives up above 1,500 gaps; at its limits it states the bound
/// proven so far.
void runExactOrder(StrategyContext &context);

struct CaseTreeOptions {
  int mostCases = 64;
  /// The most units of work; the same number gives the same tree.
  int64_t work = 20000000;
};

/// Returns a certificate whose cases prove that no plan in program order within
/// the budget (bytes) costs less than `bound`, in the graph's unit of cost. It
/// is empty (no tree) if the limits do not suffice, or if gaps alone do not
/// prove it.
Certificate caseTree(const Problem &problem, int64_t budget, double bound,
                     const CaseTreeOptions &options = {});

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_EXACTORDER_EXACTORDER_H
