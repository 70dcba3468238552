//===- Commands.h - one function a subcommand -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_DRIVER_COMMANDS_H
#define CKOPT_LIB_DRIVER_COMMANDS_H

#include "CommandLine.h"
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

/// What import is about, in counts, on standard output.
void printSummary(const Compilation &compilation);
/// Imports and plans; the start of most commands. A budget that nothing fits
/// is reported first.
llvm::Expected<std::unique_ptr<Compilation>> planModel(DriverOptions &options);
/// A planned model and its step, loaded with the weights that flags ask for.
struct PlannedStep {
  std::unique_ptr<Compilation> compilation;
  std::unique_ptr<Session> session;
};
/// Reads the values of inputs that --constant fixes from the data.
llvm::Error readConstants(DriverOptions &options);
/// Plans and loads, and notes what the data will be checked against.
llvm::Expected<PlannedStep> prepareStep(DriverOptions &options);
llvm::Error needData(const DriverOptions &options);
/// Whether flags ask for the planning graph, and what they ask of it: the graph
/// as a file, a curve.
bool wantsPlanningGraph(const DriverOptions &options);
llvm::Error runPlanModes(const DriverOptions &options,
                         const Compilation &compilation);
/// Memory before and after as text.
void printChart(const DriverOptions &options, const Compilation &compilation);
/// The table that `plan` prints: arena by kind, budget, costs, bounds.
void printPlan(const Compilation &compilation, llvm::raw_ostream &os);
/// Memory over the step before and (where there is a plan) after.
Timeline memoryTimeline(const DriverOptions &options,
                        const Compilation &compilation);
/// As .json a trace, otherwise a picture.
llvm::Error writeTimeline(llvm::StringRef path, const Timeline &timeline);
/// Members of the current JSON object: the plan, and what training it gave.
void writeRun(llvm::json::OStream &json, const Compilation &compilation,
              const TrainResult *result);
/// --report, --timeline, --trace and --svg; also of a budget that nothing fits.
llvm::Error writeReports(const DriverOptions &options,
                         const Compilation &compilation,
                         const TrainResult *result);

} // namespace ckopt

#endif // CKOPT_LIB_DRIVER_COMMANDS_H
