//===- RunOpt.cpp - what ckopt-opt and ckopt-remat-opt share --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "RunOpt.h"
#include "ckopt/Base/Version.h"
#include "ckopt/Support/Debug.h"
#include "ckopt/Support/GuardedOutput.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

/// Hides flags that LLVM's code generators register, since --help is about
/// passes. --help-hidden still lists them.
static void hideFlagsOfLibraries() {
  for (auto &[name, flag] : llvm::cl::getRegisteredOptions())
    if (name != "help" && name != "version")
      flag->setHiddenFlag(llvm::cl::Hidden);
}

int ckopt::runOpt(int argc, char **argv, const char *name,
                  void (*registerAll)(mlir::DialectRegistry &)) {
  guardOutput(name);
  llvm::cl::SetVersionPrinter([name](llvm::raw_ostream &os) {
    os << versionLine(name, LLVM_VERSION_STRING) << "\n";
  });
  hideFlagsOfLibraries();
  llvm::cl::opt<bool> printsCounters(
      "ckopt-stats",
      llvm::cl::desc("Print how often passes and planner did what"));
  mlir::DialectRegistry registry;
  registerAll(registry);
  llvm::LogicalResult result = mlir::MlirOptMain(
      argc, argv, std::string(name) + " optimizer driver\n", registry);
  if (printsCounters)
    debug::printCounters(llvm::errs());
  return mlir::asMainReturnCode(result);
}
