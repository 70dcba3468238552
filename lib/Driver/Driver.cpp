//===- Driver.cpp - the ckopt tool ----------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Driver/Driver.h"
#include "Commands.h"
#include "Parallel.h"
#include "ckopt/Backends/Backends.h"
#include "ckopt/Support/AtomicFile.h"
#include "ckopt/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

using namespace ckopt;

/// Finds out before any work is done whether its results can be written.
static llvm::Error checkOutputs(const DriverOptions &options) {
  std::vector<std::string> paths{options.train.checkpoint,
                                 options.report,
                                 options.train.log,
                                 options.train.keepBest,
                                 options.train.html,
                                 options.timeline,
                                 options.trace,
                                 options.curve,
                                 options.graphOut,
                                 options.planOut,
                                 options.planReport};
  // An artifact for a device is a folder, which replaces an older one.
  bool folder = options.command == Command::Compile &&
                options.target->traits.writesFolder;
  if (!folder)
    paths.insert(paths.begin(), options.output);
  else if (!llvm::sys::fs::is_directory(options.output))
    paths.insert(paths.begin(),
                 llvm::StringRef(options.output).rtrim('/').str());
  return checkWritable(paths);
}

static llvm::Error dispatch(DriverOptions &options) {
  if (isMainRank())
    if (llvm::Error error = checkOutputs(options))
      return error;
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
  }
  llvm_unreachable("all commands are listed");
}

int ckopt::driverMain(int argc, char **argv) {
  registerAllTargets(); // flags name them
  DriverOptions options;
  int code = ExitOk;
  if (!parseCommandLine(argc, argv, options, code))
    return code;
  if (llvm::Error error = joinWorld(options))
    return reportError(std::move(error), "ckopt", llvm::errs());
  llvm::Error error = dispatch(options);
  runtime::World *world = runtime::World::current();
  if (!world)
    return reportError(std::move(error), "ckopt", llvm::errs());
  std::string name = "ckopt: rank " + std::to_string(world->rank());
  code = reportError(std::move(error), name, llvm::errs());
  // The others may wait for this rank: they end with it.
  if (code != ExitOk)
    world->abort(code);
  world->close();
  return ExitOk;
}
