//===- Targets.cpp - the targets that are built in ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Target/Targets.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Target/TargetRegistry.h"

using namespace ckopt;

void ckopt::registerAllTargets() {
  static const bool once = [] {
    llvm::cantFail(registerTarget(cpuTarget()));
    llvm::cantFail(registerTarget(cudaTarget()));
    return true;
  }(); // one thread initializes, others wait
  (void)once;
}
