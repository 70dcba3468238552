//===- Commands.h - one function a subcommand -------------------*- C++ -*-===//
#ifndef CKOPT_LIB_DRIVER_COMMANDS_H
#define CKOPT_LIB_DRIVER_COMMANDS_H

#include "CommandLine.h"
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
/// What the file lacks of the model that was exported: an error of the commands
/// that train or give gradients, a warning of the others.
llvm::Error judgeExport(const DriverOptions &options,
                        const Compilation &compilation);

/// Settles what --loss leaves open: outputs, kinds of targets, the class axis.
llvm::Error settleLoss(Compilation &compilation, const DriverOptions &options);
/// What data must be like for the planned step, and how its loss is evaluated.
void describeTargets(const Compilation &compilation, DataOptions &data);
/// Settings of losses that no loss reads are usage errors.
llvm::Error checkLossFlags(const DriverOptions &options,
                           const std::set<std::string> &given);
/// Weights, as a list ("0.5,1,2") or from a file (text, .npy).
llvm::Error readNumbers(llvm::StringRef flag, llvm::StringRef text,
                        std::vector<double> &numbers);

/// Imports, plans and prints remarks; the start of most commands.
llvm::Expected<std::unique_ptr<Compilation>>
planModel(const DriverOptions &options);
/// Emits and loads the planned step with the weights that the flags ask for.
struct ProgramDeleter {
  void operator()(ckrt_program *program) const {
    ckrt_program_destroy(program);
  }
};
using DeviceProgram = std::unique_ptr<ckrt_program, ProgramDeleter>;
/// A step for a GPU as a program; needs no device.
llvm::Expected<DeviceProgram> loadDeviceProgram(const Compilation &compilation);
struct LoadedStep {
  std::unique_ptr<JitProgram> program; ///< of the CPU
  DeviceProgram deviceProgram;         ///< of a GPU
  std::unique_ptr<Session> session;
};
llvm::Expected<LoadedStep> loadStep(Compilation &compilation,
                                    const DriverOptions &options);
/// A planned model and its step, loaded.
struct PlannedStep {
  std::unique_ptr<Compilation> compilation;
  LoadedStep step;
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
/// A member "device_code" of the current JSON object: kernels, those that are
/// not vectorized and why, registers and spills where ptxas is installed.
llvm::Error writeDeviceJson(llvm::json::OStream &json,
                            const Compilation &compilation);
/// The same in a few lines, without ptxas.
void printDeviceCode(const Compilation &compilation, llvm::raw_ostream &os);
/// ... and with it; then what the device reports, if --device names one.
llvm::Error inspectDevice(Compilation &compilation,
                          const DriverOptions &options);
/// --report, --timeline, --trace and --svg; also of a budget that nothing fits.
llvm::Error writeReports(const DriverOptions &options,
                         const Compilation &compilation,
                         const TrainResult *result);

} // namespace ckopt

#endif // CKOPT_LIB_DRIVER_COMMANDS_H
