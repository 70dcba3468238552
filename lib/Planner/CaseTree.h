//===- CaseTree.h - an optimum that a search proved, in cases ---*- C++ -*-===//
#ifndef CKOPT_LIB_PLANNER_CASETREE_H
#define CKOPT_LIB_PLANNER_CASETREE_H

#include "Problem.h"
#include "ckopt/Planner/Certificate.h"

namespace ckopt::planner {

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

#endif // CKOPT_LIB_PLANNER_CASETREE_H
