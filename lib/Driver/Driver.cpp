//===- Driver.cpp - the ckopt tool ----------------------------------------===//
#include "ckopt/Driver/Driver.h"
#include "Commands.h"
#include "ckopt/Support/Error.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

using namespace ckopt;

static llvm::Error dispatch(DriverOptions &options) {
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
    return runBench(options);
  case Command::Inspect:
    return runInspect(options);
  }
  llvm_unreachable("all commands are listed");
}

int ckopt::driverMain(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  llvm::setBugReportMsg("This is a defect of ckopt; please report it with the "
                        "command line and the model.\n");
  DriverOptions options;
  int code = ExitOk;
  if (!parseCommandLine(argc, argv, options, code))
    return code;
  registerAllPasses();
  if (llvm::Error error = dispatch(options))
    return reportError(std::move(error), "ckopt", llvm::errs());
  return ExitOk;
}
