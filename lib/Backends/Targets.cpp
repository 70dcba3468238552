//===- Targets.cpp - registration, and what targets share -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Backends/Backends.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Target/TargetRegistry.h"

using namespace ckopt;

void ckopt::registerAllTargets() {
  static const bool once = [] {
    registerTarget(cpuTarget());
    registerTarget(cudaTarget());
    return true;
  }(); // one thread initializes, others wait
  (void)once;
}

llvm::Expected<runtime::ProductPrecision>
ckopt::parsePrecision(const std::string &name) {
  if (auto precision = runtime::parseProductPrecision(name))
    return *precision;
  return usageError("no precision of products '" + name +
                    "'; there are f32, tf32, bf16, f16");
}

llvm::Error ckopt::refuseGpuFlags(const TargetRequest &request) {
  for (const char *flag :
       {"sm", "cuda-libs", "cuda-workspace", "matmul-precision",
        "cuda-emulation", "cuda-emulation-order"}) {
    if (!request.flags.count(flag))
      continue;
    std::string text = flag;
    if (text == "matmul-precision") {
      if (request.kernels.matmulPrecision == "f32")
        continue; // every target accepts this flag
      text += "=" + request.kernels.matmulPrecision;
    }
    return usageError("--" + text + " is for GPUs: give --target=cuda");
  }
  return llvm::Error::success();
}
