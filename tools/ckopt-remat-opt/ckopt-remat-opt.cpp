//===- ckopt-remat-opt.cpp - mlir-opt with the pass -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All dialects and passes of MLIR, and `remat` with options of its own on the
// command line, which a plugin cannot have.
//
//===----------------------------------------------------------------------===//
#include "RunOpt.h"
#include "TestPasses.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include "ckopt/Interfaces/Compat.h"
#include "ckopt/Remat/Passes.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"

static void registerAll(mlir::DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllPasses();
  registry.insert<ckopt::CkoptDialect>();
  ckopt::registerBarrierBufferization(registry);
  ckopt::registerRematPasses();
  ckopt::compat::registerAllocationLivenessPass();
  ckopt::registerPrintPasses();
}

int main(int argc, char **argv) {
  return ckopt::runOpt(argc, argv, "ckopt-remat-opt", registerAll);
}
