//===- Driver.cpp - the ckopt tool ----------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "ckopt/Compiler/Compile.h"
#include "ckopt/Ranks/Ranks.h"
#include "ckopt/Support/AtomicFile.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/GuardedOutput.h"
#include "ckopt/Support/OutputFiles.h"
#include "ckopt/Target/Targets.h"
#include "ckopt/Tool/Main.h"
#include "ckopt/Train/RunChecks.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <thread>

using namespace ckopt;

/// Finds out before any work is done whether its results can be written.
static llvm::Error checkOutputs(const DriverOptions &options) {
  if (llvm::Error error = checkRunFiles(options.train))
    return error;
  std::vector<std::string> paths;
  // An artifact for a device is a folder, which replaces an older one.
  bool folder = options.command == Command::Compile &&
                options.target->traits.writesFolder;
  for (const NamedFile &output : options.outputs)
    if (options.command == Command::Train && isWeightFolder(output.path))
      paths.push_back(llvm::sys::fs::is_directory(output.path)
                          ? output.path + "/model.safetensors"
                          : llvm::StringRef(output.path).rtrim('/').str());
    else if (!folder || output.flag != Setting::ofFlag("o"))
      paths.push_back(output.path);
    else if (!llvm::sys::fs::is_directory(output.path))
      paths.push_back(llvm::StringRef(output.path).rtrim('/').str());
  return checkWritable(paths);
}

static llvm::Error dispatch(DriverOptions &options) {
  OutputLocks locks;
  if (options.compile.ranks.isMain()) {
    if (llvm::Error error = checkOutputs(options))
      return error;
    if (llvm::Error error = locks.lock(options.outputs))
      return error;
  }
  switch (options.command) {
  case Command::Import:
    return runImport(options);
  case Command::Plan:
    return runPlan(options);
  case Command::Compile:
    return runCompile(options);
  case Command::Train:
    return runTrain(options);
  case Command::Compare:
    return runCompare(options);
  case Command::Run:
    return runForward(options);
  case Command::Grad:
    return runGrad(options);
  case Command::Bench:
    return options.collectives.empty() ? runBench(options)
                                       : runCollectivesBench(options);
  case Command::Inspect:
    return runInspect(options);
  case Command::Check:
    return runCheck(options);
  case Command::Merge:
    return runMerge(options);
  case Command::Quantize:
    return runQuantize(options);
  }
  llvm_unreachable("all commands are listed");
}

int ckopt::driverMain(int argc, char **argv) {
  registerAllTargets(); // flags name them
  guardOutput("ckopt");
  DriverOptions options;
  int code = ExitOk;
  if (!parseCommandLine(argc, argv, options, code))
    return code;
  llvm::Error apart = joinWorld(options);
  if (apart) { // perhaps from ranks that it had met already
    code = reportError(std::move(apart), "ckopt", llvm::errs());
    Ranks met = Ranks::met();
    met.endPreparing();
    if (met.areSeveral())
      met.world().abort(code);
    return code;
  }
  const Ranks ranks = options.compile.ranks;
  llvm::Error error = dispatch(options);
  if (!ranks.areSeveral())
    return reportError(std::move(error), "ckopt", llvm::errs());
  // A signal ends all ranks behind the same step, and rank 0 says so.
  ErrorText failure = takeErrorText(std::move(error));
  bool stopped = failure.code > 128;
  if (failure.code != ExitOk && (!stopped || ranks.isMain()))
    reportError(makeError(failure.code, failure.message),
                "ckopt: rank " + std::to_string(ranks.number()), llvm::errs());
  ranks.endPreparing();
  // A rank that was lost may have told the launcher, or be about to: the exit
  // code of the run is then its own.
  if (failure.code == ExitRank)
    std::this_thread::sleep_for(std::chrono::seconds(3));
  // The others may wait for this rank: they end with it.
  if (failure.code != ExitOk && !stopped)
    ranks.world().abort(failure.code);
  ranks.leave();
  return failure.code;
}
