//===- ScalarTarget.cpp - a target for tests ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a new target is made of: traits, and one function for each decision. It
// shares the processor's way from functions to machine code.
//
//===----------------------------------------------------------------------===//
#include "ScalarTarget.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Target/Targets.h"

using namespace ckopt;
using namespace ckopt::test;

namespace {

class ScalarTarget final : public TargetInfo {
public:
  ScalarTarget() : TargetInfo(describe()) {}

  llvm::Error settle(TargetRequest &request) const override {
    if (request.flags.count("threads"))
      return usageError("--threads: target scalar has one");
    request.kernels.threads = 1;
    request.kernels.layout = ActivationLayout::None;
    return refuseNarrowProducts(request);
  }

  llvm::Expected<CodegenOptions>
  codegen(const KernelSettings &settings) const override {
    return CodegenOptions{this, /*threads=*/1, /*vectorBits=*/0};
  }

  LibraryChoice chooseLibrary(const runtime::PrimitiveDesc &desc,
                              const CodegenOptions &options) const override {
    return chooseHostLibrary(desc, options);
  }

  llvm::Expected<std::unique_ptr<StepCode>>
  emit(mlir::ModuleOp planned, const EmitOptions &options) const override {
    auto kernels = codegen(options.kernels);
    if (!kernels)
      return kernels.takeError();
    return emitHostCode(planned, *kernels, options);
  }

private:
  static TargetTraits describe() {
    TargetTraits traits;
    traits.name = "scalar";
    traits.machines = "scalar cores";
    traits.limits.joined = 3;
    traits.rates.vector = 1e8;
    return traits;
  }
};

} // namespace

const TargetInfo &test::scalarTarget() {
  static const ScalarTarget target;
  return target;
}
