//===- ExactOrder.h - optima of the program order, with proof ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Interface of this folder.
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
  /// Units of work at most; the same number gives the same tree.
  int64_t work = 20000000;
};

/// A certificate whose cases show that no plan in program order within the
/// budget (bytes) costs less than `bound`, in the graph's unit of cost. Empty
/// (no tree) if the limits do not suffice, or if gaps alone do not show it.
Certificate caseTree(const Problem &problem, int64_t budget, double bound,
                     const CaseTreeOptions &options = {});

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_EXACTORDER_EXACTORDER_H
