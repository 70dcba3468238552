//===- Reports.h - tables and JSON of a plan --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_COMPILER_REPORTS_H
#define CKOPT_COMPILER_REPORTS_H

#include "ckopt/Compiler/Compile.h"
#include "llvm/Support/JSON.h"

namespace ckopt {

/// Prints the table of `ckopt plan`: arena by kind, budget, costs, bounds.
void printPlan(const Compilation &compilation, llvm::raw_ostream &os);

/// Returns memory over the step before and (where there is a plan) after.
Timeline memoryTimeline(const Compilation &compilation);

/// Writes the figures of a plan as members of the current JSON object.
void writePlanJson(llvm::json::OStream &json, const PlanSummary &summary);

/// Returns the figures of the plan as a ckopt-step-report/1 file holds them.
std::string stepReport(const Compilation &compilation);

} // namespace ckopt

#endif // CKOPT_COMPILER_REPORTS_H
