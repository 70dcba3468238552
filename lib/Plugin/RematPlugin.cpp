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
// Loaded by another MLIR than the one that it was built for, it would fault, or
// register into the one that it brings along. So the entry points look first
// whose code calls them, by functions of the C library and of LLVM's C
// interface alone, and refuse: the tool then ends with an error.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include "ckopt/Interfaces/Compat.h"
#include "ckopt/Remat/Passes.h"
#include "ckopt/Remat/Remat.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/Compiler.h"

#include <cstdio>
#include <dlfcn.h>
#include <link.h>

static constexpr const char *kName = "CkoptRematPlugin";

/// Returns whether the file of the code at `late` was loaded behind that of
/// `early`.
static bool isLoadedBehind(const void *late, const void *early) {
  struct Order {
    uintptr_t addresses[2];
    int places[2] = {-1, -1};
    int count = 0;
  } order{
      {reinterpret_cast<uintptr_t>(late), reinterpret_cast<uintptr_t>(early)}};
  dl_iterate_phdr(
      [](dl_phdr_info *file, size_t, void *data) {
        auto *order = static_cast<Order *>(data);
        for (int h = 0; h < file->dlpi_phnum; ++h)
          for (int which : {0, 1}) {
            const auto &header = file->dlpi_phdr[h];
            uintptr_t begin = file->dlpi_addr + header.p_vaddr;
            if (header.p_type == PT_LOAD && order->addresses[which] >= begin &&
                order->addresses[which] - begin < header.p_memsz)
              order->places[which] = order->count;
          }
        ++order->count;
        return 0;
      },
      &order);
  return order.places[0] > order.places[1];
}

/// Returns whether the code at `caller`, which loads the plugin, is of the MLIR
/// that the plugin was built for and uses; else says on standard error why not.
static bool mayLoad(void *caller) {
  Dl_info tool = {};
  if (!dladdr(caller, &tool) || !tool.dli_fname)
    return true; // nothing can be told
  void *loaded = dlopen(tool.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (!loaded) // the program itself
    loaded = dlopen(nullptr, RTLD_LAZY);
  using GetVersion = void (*)(unsigned *, unsigned *, unsigned *);
  auto version =
      loaded ? reinterpret_cast<GetVersion>(dlsym(loaded, "LLVMGetVersion"))
             : nullptr;
  if (version) {
    unsigned major = 0, minor = 0, patch = 0;
    version(&major, &minor, &patch);
    if (major != LLVM_VERSION_MAJOR || minor != LLVM_VERSION_MINOR) {
      std::fprintf(
          stderr,
          "error: %s was built for MLIR %s and cannot be loaded by %s, "
          "which has MLIR %u.%u.%u: build it for that one "
          "(-DCKOPT_COMPONENTS=remat -DMLIR_DIR=...)\n",
          kName, LLVM_VERSION_STRING, tool.dli_fname, major, minor, patch);
      return false;
    }
  }
  auto *own = reinterpret_cast<void *>(&mayLoad);
  auto *mlir = reinterpret_cast<void *>(&mlir::registerPassPipeline);
  if (isLoadedBehind(mlir, own)) {
    std::fprintf(stderr,
                 "error: %s was built for the shared library of MLIR %s, and "
                 "%s, which loads it, has an MLIR of its own inside, whose "
                 "passes it cannot add to: build the pass into that tool "
                 "(ckopt::registerRematPasses)\n",
                 kName, LLVM_VERSION_STRING, tool.dli_fname);
    return false;
  }
  return true;
}

/// No loader takes it.
static constexpr uint32_t kRefused = ~uint32_t(0);

extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT mlir::PassPluginLibraryInfo
mlirGetPassPluginInfo() {
  return {mayLoad(__builtin_return_address(0)) ? MLIR_PLUGIN_API_VERSION
                                               : kRefused,
          kName, CKOPT_VERSION, [] {
            ckopt::registerRematPasses();
            ckopt::compat::registerAllocationLivenessPass();
          }};
}

extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT mlir::DialectPluginLibraryInfo
mlirGetDialectPluginInfo() {
  return {mayLoad(__builtin_return_address(0)) ? MLIR_PLUGIN_API_VERSION
                                               : kRefused,
          kName, CKOPT_VERSION, [](mlir::DialectRegistry *registry) {
            registry->insert<ckopt::CkoptDialect>();
            ckopt::registerBarrierBufferization(*registry);
          }};
}
