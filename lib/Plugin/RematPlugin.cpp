//===- RematPlugin.cpp - remat in stock mlir-opt --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A shared library with the two entry points that MLIR's tools look for:
//
//   mlir-opt-22 --load-pass-plugin=CkoptRematPlugin.so
//     --pass-pipeline='builtin.module(func.func(remat{budget=64MiB}))' in.mlir
//
// It holds ckopt's passes and dialect and uses the MLIR and LLVM of the process
// that loads it: two copies would have two sets of type ids. As a pass plugin
// alone it suffices for `remat`; IR that holds `ckopt.barrier` is read back
// with --load-dialect-plugin of the same file. All other symbols are hidden.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include "ckopt/Remat/Passes.h"
#include "ckopt/Remat/Remat.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "llvm/Support/Compiler.h"

static constexpr const char *kName = "CkoptRematPlugin";

extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT mlir::PassPluginLibraryInfo
mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, kName, CKOPT_VERSION,
          [] { ckopt::registerRematPasses(); }};
}

extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT mlir::DialectPluginLibraryInfo
mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, kName, CKOPT_VERSION,
          [](mlir::DialectRegistry *registry) {
            registry->insert<ckopt::CkoptDialect>();
            ckopt::registerBarrierBufferization(*registry);
          }};
}
