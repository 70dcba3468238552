//===- Commands.h - one function a subcommand -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_DRIVER_COMMANDS_H
#define CKOPT_LIB_DRIVER_COMMANDS_H

#include "CommandLine.h"
#include "ckopt/Driver/Reports.h"
#include "ckopt/Driver/Step.h"
#include "llvm/Support/JSON.h"

#include <set>

namespace ckopt {

llvm::Error runImport(DriverOptions &options);
llvm::Error runPlan(DriverOptions &options);
llvm::Error runCompile(DriverOptions &options);
llvm::Error runTrain(DriverOptions &options);
llvm::Error runCompare(DriverOptions &options);
llvm::Error runForward(DriverOptions &options);
llvm::Error runGrad(DriverOptions &options);
llvm::Error runBench(DriverOptions &options);
llvm::Error runInspect(DriverOptions &options);
llvm::Error runCheck(DriverOptions &options);

/// Prints counts of the imported model on standard output.
void printSummary(const Compilation &compilation);
/// Imports and plans; the start of most commands. A budget that nothing fits
/// is reported first.
llvm::Expected<std::unique_ptr<Compilation>> planModel(DriverOptions &options);
/// A planned model and its step, loaded with the weights that flags ask for.
struct PlannedStep {
  std::unique_ptr<Compilation> compilation;
  std::unique_ptr<Session> session;
};
/// What commands ask of a compilation beside its flags.
CompileOptions compileOptions(const DriverOptions &options);
/// Reads what flags name: the profile that gives costs, stored plans.
llvm::Error readPlanning(DriverOptions &options);
/// How flags have a step loaded; reads --weights.
llvm::Expected<LoadOptions> readLoadOptions(const DriverOptions &options);
/// Reads the values of inputs that --constant fixes from the data.
llvm::Error readConstants(DriverOptions &options);
/// Plans and loads, and records the checks that the data has to pass.
llvm::Expected<PlannedStep> prepareStep(DriverOptions &options);
llvm::Error needData(const DriverOptions &options);
/// Returns whether flags ask for the planning graph: as a file, or for a curve.
bool wantsPlanningGraph(const DriverOptions &options);
llvm::Error runPlanModes(const DriverOptions &options,
                         const Compilation &compilation);
/// Prints memory before and after planning as a text chart.
void printChart(const DriverOptions &options, const Compilation &compilation);
/// Writes a trace if the file name ends in .json, else a picture.
llvm::Error writeTimeline(llvm::StringRef path, const Timeline &timeline);
/// Writes members of the current JSON object: the plan, and the result of
/// training.
void writeRun(llvm::json::OStream &json, const Compilation &compilation,
              const TrainResult *result);
/// Writes --report, --timeline, --trace and --svg, also if no plan fits the
/// budget.
llvm::Error writeReports(const DriverOptions &options,
                         const Compilation &compilation,
                         const TrainResult *result);

} // namespace ckopt

#endif // CKOPT_LIB_DRIVER_COMMANDS_H
