//===- Nccl.cpp - NCCL, opened at run time --------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Nccl.h"

#include <cstdlib>
#include <dlfcn.h>
#include <memory>
#include <mutex>

using namespace ckopt::runtime::cuda;

static const char *ncclName() {
  const char *chosen = std::getenv("CKOPT_NCCL");
  return chosen && *chosen ? chosen : "libnccl.so.2";
}

static std::unique_ptr<NcclEntries> openNccl(std::string &error) {
  const char *name = ncclName();
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *reason = dlerror();
    error = std::string("ranks on GPUs need NCCL, which is not here: ") + name +
            " (" + (reason ? reason : "unknown reason") +
            "): install it, or name it by CKOPT_NCCL";
    return nullptr;
  }
  auto entries = std::make_unique<NcclEntries>();
#define CKOPT_ENTRY(member, symbol, result, parameters)                        \
  entries->member =                                                            \
      reinterpret_cast<result(*) parameters>(dlsym(library, #symbol));         \
  if (!entries->member) {                                                      \
    error = std::string(name) + " has no entry " #symbol                       \
                                ": ckopt needs NCCL 2.7 or later";             \
    return nullptr;                                                            \
  }
#include "NcclEntries.def"
#undef CKOPT_ENTRY
  return entries;
}

const NcclEntries *NcclEntries::open(std::string &error) {
  static std::mutex mutex;
  // Never destroyed, since its threads may outlive main.
  static NcclEntries *opened = nullptr;
  std::lock_guard<std::mutex> lock(mutex);
  if (!opened)
    opened = openNccl(error).release();
  return opened;
}

std::string NcclEntries::version() const {
  int number = 0;
  if (getVersion(&number) != kNcclSuccess)
    return "of unknown version";
  // Up to 2.8 the number was major * 1000 + minor * 100 + patch.
  int unit = number >= 10000 ? 10000 : 1000;
  return std::to_string(number / unit) + "." +
         std::to_string(number % unit / 100) + "." +
         std::to_string(number % 100);
}
