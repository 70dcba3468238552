//===- Mlir.cpp - registration for MLIR's C API ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt-c/mlir.h"
#include "Handles.h"

#include "ckopt/Compiler/Phases.h"
#include "mlir/IR/DialectRegistry.h"

using namespace ckopt;
using namespace ckopt::capi;

ckopt_status ckopt_register_dialects(MlirDialectRegistry registry) {
  return guarded([&]() -> llvm::Error {
    if (!registry.ptr)
      return misuse("the registry is NULL");
    registerAllDialects(*static_cast<mlir::DialectRegistry *>(registry.ptr));
    return llvm::Error::success();
  });
}

ckopt_status ckopt_register_passes(void) {
  return guarded([&]() -> llvm::Error {
    static const bool once = (registerAllPasses(), true);
    (void)once; // one thread registers, others wait
    return llvm::Error::success();
  });
}
