//===- CommandLine.h - flags of the ckopt tool ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All flags of all subcommands fill one struct, so that commands need not know
// how they are parsed.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SETTINGS_COMMANDLINE_H
#define CKOPT_SETTINGS_COMMANDLINE_H

#include "ckopt/Compiler/CompileOptions.h"
#include "ckopt/Train/Step.h"

#include <string>
#include <vector>

namespace ckopt {

class TargetInfo;

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
  Check,
  Merge,
  Quantize
};

struct DriverOptions {
  Command command = Command::Train;
  CompileOptions compile;
  const TargetInfo *target = nullptr; ///< of compile.step.target
  DataOptions data;
  TrainOptions train;
  std::vector<ArrayMapping> constants; ///< --constant: inputs with one value
  bool asksForInit = false;            ///< --init was given
  std::string output;                  ///< -o
  std::string emaOutput;               ///< --ema-out
  bool saveTrained = false;            ///< --save-trained
  std::string validation; ///< --validation: like --data or --tokens
  std::string weights;    ///< --weights: initial values, safetensors
  std::string report;     ///< --report: JSON
  std::string timeline;   ///< --timeline: SVG
  std::string trace;      ///< --timeline: JSON for Perfetto
  std::string costModel = "analytic"; ///< --cost-model
  std::string plan, planHint;         ///< --plan, --plan-hint: ckopt-plan/1
  std::string planOut;                ///< --plan-out: the same
  /// --plan-report: values that are kept, and why
  std::string planReport;
  std::string graphOut;              ///< plan: ckopt-graph/1
  int paretoPoints = 0;              ///< plan: budgets of the curve; 0: none
  std::vector<MemoryBudget> budgets; ///< compare
  uint64_t seed = 0;
  int64_t steps = 0;  ///< bench, run
  int64_t warmup = 2; ///< --warmup of bench
  bool checkFinite = false;
  bool verifyRemat = false, keepValues = false;
  bool profile = false;    ///< bench: a table of kernels by time
  std::string profileOut;  ///< bench: file for the kernels' times
  std::string calibrate;   ///< bench: file for the machine's rates
  std::string collectives; ///< bench: file for times between ranks; no model
  std::string quantizedType = "int4"; ///< quantize: --type
  int64_t quantizedGroup = 64;        ///< quantize: --group-size
  int depth = 2;          ///< levels of modules in tables; 0: no table
  double rankTimeout = 0; ///< --rank-timeout: seconds; 0: none
  std::string ncclId;     ///< --nccl-id
  std::vector<NamedFile> inputs, outputs; ///< all, by the flags that name them
  bool quiet = false;
  bool listOps = false;
  bool summary = false; ///< import: prints counts instead of IR
  /// If set, a file that lacks parameters only causes a warning, in every
  /// command.
  bool allowInferenceExport = false;

  /// The stream for output that is not a file: discards it if the command is to
  /// be quiet.
  llvm::raw_ostream &out() const;
};

/// The options of a compilation by a command.
CompileOptions compileOptions(const DriverOptions &options);

/// Reads the files that flags name: the profile with costs, stored plans.
llvm::Error readPlanning(DriverOptions &options);

/// The options for loading a step; reads --weights.
llvm::Expected<LoadOptions> readLoadOptions(const DriverOptions &options);
/// Refuses flags about samples that contradict each other.
llvm::Error checkDataFlags(const DataOptions &data);

} // namespace ckopt

#endif // CKOPT_SETTINGS_COMMANDLINE_H
