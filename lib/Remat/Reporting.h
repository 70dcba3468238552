//===- Reporting.h - the planner's report of a plan -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_REMAT_REPORTING_H
#define CKOPT_LIB_REMAT_REPORTING_H

#include "ckopt/Planner/Report.h"
#include "ckopt/Remat/Remat.h"

namespace ckopt {

/// The budget that the planner had, and costs as seconds.
planner::ReportOptions reportOptions(const RematPlan &plan);

/// The planner's report; where a policy asks for what became of a value, that
/// is the reason.
planner::Report planReport(const RematPlan &plan);

/// Members of the current JSON object: how many nodes may run again, why the
/// others run once, and what is not counted.
void writeOnce(llvm::json::OStream &json, const PlanningProblem &problem);

} // namespace ckopt

#endif // CKOPT_LIB_REMAT_REPORTING_H
