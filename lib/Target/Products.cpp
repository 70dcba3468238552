//===- Products.cpp - precisions of products by name --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/Error.h"
#include "ckopt/Target/Targets.h"

using namespace ckopt;

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
  return usageError(Setting("matmul-precision", precision) +
                    " is for GPUs: give " + Setting("target", "cuda"));
}
