//===- Inside.cpp - what a module for any machine brings ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Inside.h"

#include "ckopt/Target/Cpu/Emit.h"
#include "lld/Common/Driver.h"
#include "llvm/Plugins/PassPlugin.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdint>
#include <mutex>
#include <sys/random.h>

LLD_HAS_DRIVER(elf)

/// LLVM and the C++ library inside call it, and the C library has it from 2.36
/// on only.
extern "C" __attribute__((visibility("hidden"))) uint32_t
arc4random() noexcept {
  uint32_t number = 0;
  auto *at = reinterpret_cast<char *>(&number);
  for (size_t got = 0; got < sizeof(number);) {
    ssize_t more = getrandom(at + got, sizeof(number) - got, 0);
    got += more > 0 ? size_t(more) : 0;
  }
  return number;
}

/// lld optimizes LLVM's bitcode by Polly, too, where it is given any.
llvm::PassPluginLibraryInfo getPollyPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "Polly", "", [](llvm::PassBuilder &) {}};
}

/// lld keeps what it works on in globals, and leaves by a jump where it fails:
/// on a full disk by a signal.
static int runLld(llvm::ArrayRef<const char *> arguments) {
  static std::mutex mutex;
  static bool isBroken = false;
  std::lock_guard lock(mutex);
  if (isBroken) {
    llvm::errs() << "lld failed in this process before, and cannot run again\n";
    return 1;
  }
  llvm::CrashRecoveryContext::Enable();
  lld::Result result = lld::lldMain(arguments, llvm::outs(), llvm::errs(),
                                    {{lld::Gnu, &lld::elf::link}});
  llvm::CrashRecoveryContext::Disable();
  isBroken = !result.canRunAgain;
  return result.retCode;
}

void ckopt::python::linkInside() { setLinker(runLld); }
