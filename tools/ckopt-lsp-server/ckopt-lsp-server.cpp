//===- ckopt-lsp-server.cpp - editors read IR dumps -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Base/Version.h"
#include "ckopt/Compiler/Phases.h"
#include "ckopt/Support/GuardedOutput.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

int main(int argc, char **argv) {
  ckopt::guardOutput("ckopt-lsp-server");
  llvm::cl::SetVersionPrinter([](llvm::raw_ostream &os) {
    os << ckopt::versionLine("ckopt-lsp-server", LLVM_VERSION_STRING) << "\n";
  });
  mlir::DialectRegistry registry;
  ckopt::registerAllDialects(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
