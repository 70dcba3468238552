//===- Targets.cpp - registration, and what targets share -----------------===//
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

llvm::Expected<runtime::ProductPrecision>
ckopt::parsePrecision(llvm::StringRef name, runtime::ProductPrecision high) {
  if (auto precision = runtime::parseProductPrecision(name))
    return *precision;
  if (name == "highest")
    return runtime::ProductPrecision::F32;
  if (name == "high")
    return high;
  if (name == "medium")
    return runtime::ProductPrecision::BF16;
  return usageError("no precision of products '" + name +
                    "'; there are highest, high, medium, f32, tf32, bf16, f16");
}

llvm::Error ckopt::refuseNarrowProducts(const TargetRequest &request) {
  const std::string &precision = request.kernels.matmulPrecision;
  if (!request.flags.count("matmul-precision") || precision == "f32" ||
      precision == "highest")
    return llvm::Error::success();
  return usageError("--matmul-precision=" + precision +
                    " is for GPUs: give --target=cuda");
}
