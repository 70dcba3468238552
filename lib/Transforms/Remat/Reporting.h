//===- Reporting.h - the planner's report of a plan -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRANSFORMS_REMAT_REPORTING_H
#define CKOPT_LIB_TRANSFORMS_REMAT_REPORTING_H

#include "ckopt/Planner/Report.h"
#include "ckopt/Remat/Remat.h"

namespace ckopt {

/// Returns the report's options: the budget that the planner had, and seconds
/// as the unit of costs.
planner::ReportOptions reportOptions(const RematPlan &plan);

/// Returns the planner's report. If a policy decided on a value, that is the
/// reason given.
planner::Report planReport(const RematPlan &plan);

/// Writes members of the current JSON object: how many nodes may run again, why
/// the others run once, and which memory is not counted.
void writeOnce(llvm::json::OStream &json, const PlanningProblem &problem);

} // namespace ckopt

#endif // CKOPT_LIB_TRANSFORMS_REMAT_REPORTING_H
