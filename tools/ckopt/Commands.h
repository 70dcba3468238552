//===- Commands.h - one function a subcommand -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TOOLS_CKOPT_COMMANDS_H
#define CKOPT_TOOLS_CKOPT_COMMANDS_H

#include "ckopt/Compiler/Reports.h"
#include "ckopt/Settings/CommandLine.h"
#include "ckopt/Train/Step.h"
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
/// Times messages between the ranks of the world, which is open.
llvm::Error runCollectivesBench(DriverOptions &options);
llvm::Error runInspect(DriverOptions &options);
llvm::Error runCheck(DriverOptions &options);
llvm::Error runMerge(DriverOptions &options);
llvm::Error runQuantize(DriverOptions &options);

/// Imports a model of which nothing is computed: a symbolic batch size is 2.
llvm::Error importWithAnyBatch(std::unique_ptr<Compilation> &compilation,
                               const CompileOptions &options,
                               bool &guessedBatch);

/// Meets the other processes where flags ask for them. Refuses processes that
/// would each do the same, alone, and ranks that nobody started.
llvm::Error joinWorld(DriverOptions &options);

/// Makes commands print nothing but errors.
void silence(DriverOptions &options);

/// Parses the command line; prints help and version itself. Returns false if
/// the program should exit with `code` now.
bool parseCommandLine(int argc, char **argv, DriverOptions &options, int &code);

/// Prints counts of the imported model.
void printSummary(const Compilation &compilation, llvm::raw_ostream &os);
/// Imports and plans; the start of most commands. A budget that nothing fits
/// is reported first; `refused`, if given, then gets what is known of it.
llvm::Expected<std::unique_ptr<Compilation>>
planModel(DriverOptions &options,
          std::unique_ptr<Compilation> *refused = nullptr);
/// A planned model and its step, loaded with the weights that flags ask for.
struct PlannedStep {
  std::unique_ptr<Compilation> compilation;
  std::unique_ptr<Session> session;
  StepData data; ///< where samples come from, and how the losses read them
};

/// Reads the values of inputs that --constant fixes from the data.
llvm::Error readConstants(DriverOptions &options);
/// Plans and loads; `refused` as in planModel().
llvm::Expected<PlannedStep>
prepareStep(DriverOptions &options,
            std::unique_ptr<Compilation> *refused = nullptr);
llvm::Error needData(const DriverOptions &options);
/// Returns whether flags ask for the planning graph: as a file, or for a curve.
bool wantsPlanningGraph(const DriverOptions &options);
llvm::Error runPlanModes(const DriverOptions &options,
                         const Compilation &compilation);
/// Writes the picture and the trace that --timeline asks for.
llvm::Error writeTimeline(const DriverOptions &options,
                          const Timeline &timeline);
/// Writes members of the current JSON object: the plan, and the result of
/// training.
void writeRun(llvm::json::OStream &json, const Compilation &compilation,
              const TrainResult *result);
/// Says on standard output which file was written, if any was asked for.
void tellWritten(const DriverOptions &options, llvm::StringRef path,
                 llvm::StringRef what = "");
/// Writes --report and --timeline, also if no plan fits the budget, and says
/// so, and that the files of the plan were written. `more` adds members to the
/// report.
llvm::Error
writeReports(const DriverOptions &options, const Compilation &compilation,
             const TrainResult *result,
             llvm::function_ref<void(llvm::json::OStream &)> more = nullptr);

} // namespace ckopt

#endif // CKOPT_TOOLS_CKOPT_COMMANDS_H
