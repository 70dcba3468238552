//===- KernelPtx.cpp - the PTX of kernels, interpreted --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "../CudaStandin/Ptx/Memory.h"
#include "KernelJit.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Target/Cuda/BlockToPTX/BlockToPTX.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::test;

namespace {
/// Kernels of one module as PTX, with what the interpreter knows of memory.
class PtxLauncher : public KernelLauncher {
public:
  /// Whether there is code and the interpreter knows all of it.
  bool make(ModuleOp blockForm, std::string &error) {
    PtxOptions options;
    options.sm = 80;
    options.tf32 = true; // where the kernel is made so
    // Refused, as it should be: f64's exp and such have no code on a GPU.
    ScopedDiagnosticHandler quiet(blockForm.getContext(),
                                  [](Diagnostic &) { return success(); });
    auto code = emitPtx(blockForm, options);
    if (!code) {
      auto refusal = takeErrorText(code.takeError());
      if (refusal.code != ExitUnsupported)
        error = refusal.text;
      return false;
    }
    module = std::move(*code);
    program = standin::ptx::parse(module.text, error);
    return program != nullptr;
  }

  std::string launch(StringRef symbol, ArrayRef<uint64_t> values,
                     ArrayRef<Range> ranges) override {
    auto kernel = llvm::find_if(module.kernels, [&](const PtxKernel &kernel) {
      return kernel.symbol == symbol;
    });
    if (kernel == module.kernels.end())
      return "PTX lacks " + symbol.str();
    std::vector<standin::ptx::Region> regions;
    for (const Range &range : ranges) {
      auto begin = reinterpret_cast<uint64_t>(range.begin);
      bool isKnown = llvm::any_of(
          regions, [&](const auto &other) { return other.begin == begin; });
      // Operands and results that share bytes are one region.
      if (!isKnown)
        // LLVM may read the rest of 16 aligned bytes and drop it: no place in
        // an arena ends before. What is written there, the buffers show.
        regions.push_back(
            {begin, llvm::alignTo(uint64_t(range.bytes), 16), range.name});
    }
    memory.setRegions(regions);
    std::string wrong = standin::ptx::launch(
        *program, symbol.str(), uint32_t(kernel->grid), uint32_t(kernel->block),
        values, memory, dynamicSharedBytes(*kernel));
    return wrong.empty() ? wrong : wrong + "\n" + module.text;
  }

private:
  PtxModule module;
  std::unique_ptr<standin::ptx::Program> program;
  standin::ptx::GlobalMemory memory;
};
} // namespace

uint32_t test::dynamicSharedBytes(const PtxKernel &kernel) {
  constexpr int64_t kMostDeclared = 48 * 1024;
  return kernel.sharedBytes > kMostDeclared ? uint32_t(kernel.sharedBytes) : 0;
}

std::unique_ptr<KernelLauncher> test::interpretPtx(ModuleOp blockForm,
                                                   std::string &error) {
  auto launcher = std::make_unique<PtxLauncher>();
  if (!launcher->make(blockForm, error))
    return nullptr;
  return launcher;
}
