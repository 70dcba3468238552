//===- Products.cpp - precisions of products by name --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/Error.h"
#include "ckopt/Target/TargetRegistry.h"
#include "ckopt/Target/Targets.h"

using namespace ckopt;

llvm::Expected<MatmulPrecision>
ckopt::parseMatmulPrecision(llvm::StringRef name) {
  if (auto known = parseChoice<MatmulPrecision>(name))
    return *known;
  return usageError("no precision of products '" + name + "'; there are " +
                    listChoices(choiceNames(MatmulPrecision())));
}

runtime::ProductPrecision ckopt::productsNamed(MatmulPrecision name,
                                               runtime::ProductPrecision high) {
  using runtime::ProductPrecision;
  switch (name) {
  case MatmulPrecision::F32:
  case MatmulPrecision::Highest:
    return ProductPrecision::F32;
  case MatmulPrecision::TF32:
    return ProductPrecision::TF32;
  case MatmulPrecision::BF16:
  case MatmulPrecision::Medium:
    return ProductPrecision::BF16;
  case MatmulPrecision::F16:
    return ProductPrecision::F16;
  case MatmulPrecision::High:
    return high;
  }
  llvm_unreachable("all classes are listed");
}

llvm::Error ckopt::refuseNarrowProducts(const TargetRequest &request) {
  MatmulPrecision precision = request.kernels.matmulPrecision;
  if (!request.flags.count("matmul-precision") ||
      precision == MatmulPrecision::F32 ||
      precision == MatmulPrecision::Highest)
    return llvm::Error::success();
  if (precision == MatmulPrecision::F16)
    return usageError(Setting("matmul-precision", "f16") +
                      ": no target rounds what f32 tensors hold to f16; " +
                      Setting("precision", "f16") + " stores tensors so");
  return usageError(Setting("matmul-precision", nameOf(precision)) +
                    " is for GPUs: give " +
                    settingFor("cuda", request.runsHere));
}
