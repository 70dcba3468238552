//===- PtxMutationTest.cpp - mistakes in PTX that must be seen ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// That all kernels run in the interpreter without a race says something only if
// a race would be seen. So kernels lose one barrier after the other, in the
// text of their PTX: each loss that matters must be seen.
//
//===----------------------------------------------------------------------===//
#include "../../test/lib/CudaStandin/Ptx/Memory.h"
#include "KernelJit.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include "ckopt/Target/Cuda/BlockToPTX/BlockToPTX.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::test;

namespace {

constexpr char kBarrier[] = "bar.sync";

size_t countBarriers(StringRef text) { return text.count(kBarrier); }

/// The text without its barrier number `which`.
std::string withoutBarrier(std::string text, size_t which) {
  size_t at = text.find(kBarrier);
  for (; which > 0; --which)
    at = text.find(kBarrier, at + 1);
  return text.erase(at, text.find(';', at) + 1 - at);
}

/// Runs PTX that was changed; records the interpreter's error.
class Mutant : public KernelLauncher {
public:
  Mutant(PtxModule made, std::string text, std::string &error)
      : module(std::move(made)), error(error) {
    program = standin::ptx::parse(text, error);
  }
  std::string launch(StringRef symbol, ArrayRef<uint64_t> values,
                     ArrayRef<Range> ranges) override {
    std::vector<standin::ptx::Region> regions;
    for (const Range &range : ranges)
      regions.push_back({reinterpret_cast<uint64_t>(range.begin),
                         uint64_t(range.bytes), range.name});
    memory.setRegions(regions);
    for (const PtxKernel &kernel : module.kernels)
      if (program && error.empty() && kernel.symbol == symbol)
        error =
            standin::ptx::launch(*program, symbol.str(), uint32_t(kernel.grid),
                                 uint32_t(kernel.block), values, memory);
    return error;
  }

private:
  PtxModule module;
  std::string &error;
  std::unique_ptr<standin::ptx::Program> program;
  standin::ptx::GlobalMemory memory;
};

/// Runs the kernel over zeros, without barrier `lost` if there are so many.
/// Returns how many there are.
size_t runWithout(const std::string &text, size_t lost, std::string &error) {
  size_t barriers = 0;
  auto make = [&](ModuleOp blockForm,
                  std::string &) -> std::unique_ptr<KernelLauncher> {
    PtxOptions options;
    options.sm = 80;
    auto made = emitPtx(blockForm, options);
    if (!made) {
      ADD_FAILURE() << llvm::toString(made.takeError());
      return nullptr;
    }
    barriers = countBarriers(made->text);
    std::string changed =
        lost < barriers ? withoutBarrier(made->text, lost) : made->text;
    return std::make_unique<Mutant>(std::move(*made), changed, error);
  };
  auto jit = KernelJit::launchedBy(make, text);
  if (!jit->ok())
    return 0;
  jit->launchOnZeros();
  return barriers;
}

/// The number of barriers, and of those whose removal is detected: as a race,
/// or, since warps run one after the other here, as a read of a value that a
/// later warp writes, or that another thread's copy has not brought yet.
struct Losses {
  size_t all = 0;
  std::vector<size_t> needed;
};
Losses loseEach(const std::string &text) {
  std::string error;
  Losses barriers;
  barriers.all = runWithout(text, ~size_t(0), error);
  EXPECT_EQ(error, "") << "with all barriers";
  for (size_t lost = 0; lost < barriers.all; ++lost) {
    error.clear();
    runWithout(text, lost, error);
    auto says = [&](const char *text) {
      return error.find(text) != std::string::npos;
    };
    if (says("a race in shared memory") ||
        says("reads shared memory that nobody wrote") ||
        says("which nobody has waited for"))
      barriers.needed.push_back(lost);
    else
      EXPECT_EQ(error, "") << "without barrier " << lost;
  }
  return barriers;
}

// A tree over the warps of a block: the sums of 256 threads become those of
// 128, 64 and 32, and each of the three steps reads what other warps wrote.
// Threads of the first warp then read their own words alone, whatever barriers
// stand there.
TEST(PtxMutation, ReductionWithoutABarrier) {
  Losses barriers = loseEach(kernelText(
      "reduction", "%x: tensor<3x1000xf32>", "tensor<3xf32>",
      "%0 = ckopt.reduce sum %x {axes = array<i64: 1>, keepdims = false} : "
      "(tensor<3x1000xf32>) -> tensor<3xf32>\nreturn %0 : "
      "tensor<3xf32>\n"));
  EXPECT_EQ(barriers.needed, (std::vector<size_t>{0, 1, 2}));
}

std::string productText(int64_t k) {
  std::string a = "tensor<1x40x" + std::to_string(k) + "xf32>",
              b = "tensor<1x" + std::to_string(k) + "x36xf32>";
  return kernelText("library", "%a: " + a + ", %b: " + b, "tensor<1x40x36xf32>",
                    "%0 = ckopt.matmul %a, %b : (" + a + ", " + b +
                        ") -> tensor<1x40x36xf32>\nreturn %0 : "
                        "tensor<1x40x36xf32>\n");
}

// Buffers that are filled and used in turn, with one barrier a slice. The
// other one, before results are stored, separates accesses of global memory,
// which counts as one.
TEST(PtxMutation, ProductWithoutABarrier) {
  Losses barriers = loseEach(productText(300));
  EXPECT_EQ(barriers.all, 2u);
  EXPECT_EQ(barriers.needed, std::vector<size_t>{0});
}

// Few slices are a loop, too, where all of them may be under way at once: what
// other threads copied needs its barrier.
TEST(PtxMutation, ShortProductWithoutABarrier) {
  Losses barriers = loseEach(productText(70));
  EXPECT_EQ(barriers.all, 2u);
  EXPECT_EQ(barriers.needed, std::vector<size_t>{0});
}

} // namespace
