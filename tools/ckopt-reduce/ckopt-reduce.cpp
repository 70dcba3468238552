//===- ckopt-reduce.cpp - the smallest IR that still shows a defect -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Base/Version.h"
#include "ckopt/Compiler/Phases.h"
#include "ckopt/Support/GuardedOutput.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

int main(int argc, char **argv) {
  ckopt::guardOutput("ckopt-reduce");
  llvm::cl::SetVersionPrinter([](llvm::raw_ostream &os) {
    os << ckopt::versionLine("ckopt-reduce", LLVM_VERSION_STRING) << "\n";
  });
  mlir::DialectRegistry registry;
  ckopt::registerAllDialects(registry);
  ckopt::registerAllPasses();
  mlir::MLIRContext context(registry);
  return mlir::failed(mlir::mlirReduceMain(argc, argv, context));
}
