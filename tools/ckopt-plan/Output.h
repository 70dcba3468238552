//===- Output.h - what ckopt-plan prints and writes -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TOOLS_CKOPT_PLAN_OUTPUT_H
#define CKOPT_TOOLS_CKOPT_PLAN_OUTPUT_H

#include "CommandLine.h"

#include "ckopt/Planner/Pareto.h"
#include "ckopt/Planner/Report.h"

namespace ckopt {

/// Prints figures of a result as lines of "name  value".
void printSummary(llvm::raw_ostream &os, const planner::Graph &graph,
                  const planner::Result &result,
                  const planner::ReportOptions &options, int64_t baseline);

/// Prints the values alive at the peak, largest first.
void printAlive(llvm::raw_ostream &os, const planner::Result &result);

/// Writes the report, trace and picture that the flags ask for.
llvm::Error writeReports(const CommandLine &line, const planner::Graph &graph,
                         const planner::Result &result,
                         const planner::ReportOptions &options);

/// Writes a file, or standard output for "-".
llvm::Error writeOutput(llvm::StringRef path, llvm::StringRef text);

} // namespace ckopt

#endif // CKOPT_TOOLS_CKOPT_PLAN_OUTPUT_H
