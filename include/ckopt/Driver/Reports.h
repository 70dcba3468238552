//===- Reports.h - what a plan says, for programs and people ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DRIVER_REPORTS_H
#define CKOPT_DRIVER_REPORTS_H

#include "ckopt/Driver/Compile.h"

namespace ckopt {

/// Prints the table of `ckopt plan`: arena by kind, budget, costs, bounds.
void printPlan(const Compilation &compilation, llvm::raw_ostream &os);

/// Returns memory over the step before and (where there is a plan) after.
Timeline memoryTimeline(const Compilation &compilation);

/// Returns the figures of the plan as a ckopt-step-report/1 file holds them.
std::string stepReport(const Compilation &compilation);

} // namespace ckopt

#endif // CKOPT_DRIVER_REPORTS_H
