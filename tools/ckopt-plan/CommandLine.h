//===- CommandLine.h - flags of ckopt-plan ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TOOLS_CKOPT_PLAN_COMMANDLINE_H
#define CKOPT_TOOLS_CKOPT_PLAN_COMMANDLINE_H

#include "ckopt/Planner/Solve.h"
#include "ckopt/Support/ByteSize.h"
#include "ckopt/Support/OutputFiles.h"

#include "ckopt/Support/Report.h"
#include "llvm/Support/raw_ostream.h"

#include <string>
#include <vector>

namespace ckopt {

/// The tool's mode.
enum class Mode {
  Plan,     ///< a plan for a budget
  Minimum,  ///< the smallest budget
  Pareto,   ///< plans for several budgets
  PackOnly, ///< a packing problem
  Check,    ///< checks a given plan
  Help,
  Version,
};

struct CommandLine {
  Mode mode = Mode::Plan;
  std::string input; ///< the graph, or the packing problem
  planner::Options options;
  MemoryBudget budget;
  int paretoPoints = 11;
  int64_t capacity = 0;                   ///< bytes; 0: none
  std::vector<NamedFile> inputs, outputs; ///< by the flags that name them
  std::string output;                     ///< -o
  std::string check;                      ///< the plan to check
  std::string hint;                       ///< the plan to start from
  std::string report;                     ///< JSON
  std::string trace, svg;                 ///< memory over the step
  bool quiet = false;                     ///< nothing but errors
  bool counters = false; ///< of what the planner did, at the end
  bool helpAll = false;  ///< of Help: every flag

  /// Where figures are printed: nowhere, or beside a result that goes to
  /// standard output.
  llvm::raw_ostream &log() const {
    static PrintableStream out(llvm::outs()), err(llvm::errs());
    if (quiet)
      return llvm::nulls();
    return output == "-" ? err : out;
  }
};

/// Parses the arguments; problems are usage errors.
llvm::Expected<CommandLine> parseArguments(int argc, char **argv);

/// Prints the flags that most runs need, or `all`.
void printHelp(llvm::raw_ostream &os, bool all);

} // namespace ckopt

#endif // CKOPT_TOOLS_CKOPT_PLAN_COMMANDLINE_H
