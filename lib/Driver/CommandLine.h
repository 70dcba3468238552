//===- CommandLine.h - flags of the ckopt tool ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All flags of all subcommands fill one struct; the commands read it and know
// nothing of parsing.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_DRIVER_COMMANDLINE_H
#define CKOPT_LIB_DRIVER_COMMANDLINE_H

#include "ckopt/Driver/Compile.h"
#include "ckopt/Driver/Training.h"

#include <string>
#include <vector>

namespace ckopt {

enum class Command {
  Import,
  Plan,
  Compile,
  Train,
  Run,
  Grad,
  Bench,
  Inspect,
  Compare,
  Check
};

struct DriverOptions {
  Command command = Command::Train;
  CompileOptions compile;
  const TargetInfo *target = nullptr; ///< of compile.step.target
  DataOptions data;
  TrainOptions train;
  std::vector<ArrayMapping> constants; ///< --constant: inputs with one value
  std::string output;                  ///< -o
  std::string emaOutput;               ///< --ema-out
  std::string validation; ///< --validation: like --data or --tokens
  std::string log;        ///< --log: a line a step
  std::string weights;    ///< --weights: initial values, safetensors
  std::string report;     ///< --report: JSON
  std::string timeline;   ///< --timeline: SVG, or JSON for Perfetto
  std::string trace;      ///< --trace: JSON for Perfetto
  std::string costModel = "analytic"; ///< --cost-model
  std::string plan, planHint;         ///< --plan, --plan-hint: ckopt-plan/1
  std::string planOut;                ///< --plan-out: the same
  std::string planReport;             ///< --plan-report: what is kept, and why
  std::string graphOut;               ///< plan: ckopt-graph/1
  std::string svg;         ///< plan: picture of memory, or of the curve
  int paretoPoints = 0;    ///< plan: budgets of the curve; 0: none
  bool chart = false;      ///< plan: memory as text
  unsigned chartWidth = 0; ///< characters; 0: the terminal's
  bool asciiChart = false; ///< no block characters
  std::vector<MemoryBudget> budgets; ///< compare
  uint64_t seed = 0;
  int64_t steps = 0;  ///< bench, run
  int64_t warmup = 2; ///< bench
  bool checkFinite = false;
  bool verifyRemat = false, keepValues = false;
  bool profile = false;   ///< bench: a table of kernels by time
  std::string profileOut; ///< bench: file for the kernels' times
  bool quiet = false;
  bool listOps = false;
  bool summary = false; ///< import: counts instead of IR
  /// A file that lacks parameters is a warning, whatever the command.
  bool allowInferenceExport = false;
};

/// Parses; prints help and version itself. Returns false where the program
/// should exit with `code` now.
bool parseCommandLine(int argc, char **argv, DriverOptions &options, int &code);

} // namespace ckopt

#endif // CKOPT_LIB_DRIVER_COMMANDLINE_H
