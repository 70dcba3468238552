//===- BoundUnrolling.cpp - limits the unrolling of loops -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM unrolls a loop completely if its body, after simplification, stays below
// a threshold. A sum over 392 rows in blocks of 32 becomes 392 loads, which a
// second pass over the same rows keeps in registers, all at once, and these
// spill. This file therefore keeps loops around others as loops, unless they
// are very short and without barriers, since ptxas reads shared memory for as
// many multiplications as it sees at once (250 registers for three slices of
// 16). Innermost loops of many iterations get a fixed unroll count, large
// enough that latencies of loads overlap. If an emitter knows for how many
// iterations registers suffice, it says so (ckopt.gpu.unroll): neither LLVM nor
// ptxas unrolls such a loop further. LLVM decides about all other loops.
//
//===----------------------------------------------------------------------===//
#include "BlockToGPU.h"
#include "ckopt/Target/Cuda/BlockToPTX/Passes.h"

namespace ckopt {
#define GEN_PASS_DEF_BOUNDUNROLLINGPASS
#include "ckopt/Target/Cuda/BlockToPTX/Passes.h.inc"
} // namespace ckopt

using namespace mlir;
using namespace ckopt;

/// The most iterations up to which a loop may be unrolled completely: an
/// innermost one, and one around others. The most operations of an unrolled
/// body, and the largest unroll count.
static constexpr int64_t kShort = 64, kShortAround = 8, kOperations = 256,
                         kMost = 8;

/// Returns the number of operations of a loop's body; nothing if loops are
/// nested in it.
static std::optional<int64_t> sizeOfInnermost(scf::ForOp loop) {
  int64_t size = 0;
  WalkResult nested = loop.getBody()->walk([&](Operation *op) {
    ++size;
    return isa<LoopLikeOpInterface>(op) ? WalkResult::interrupt()
                                        : WalkResult::advance();
  });
  return nested.wasInterrupted() ? std::nullopt : std::optional(size);
}

static bool hasBarrier(scf::ForOp loop) {
  return loop.getBody()
      ->walk([](gpu::BarrierOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

/// Returns the unroll count; 0 if LLVM should decide.
static int64_t unrollCount(scf::ForOp loop) {
  std::optional<APInt> trips = loop.getStaticTripCount();
  std::optional<int64_t> size = sizeOfInnermost(loop);
  if (!size)
    return trips && trips->ule(kShortAround) && !hasBarrier(loop) ? 0 : 1;
  if (!trips || trips->ule(kShort))
    return 0;
  int64_t count = kMost;
  while (count > 1 && count * *size > kOperations)
    count /= 2;
  return count;
}

static void bound(scf::ForOp loop) {
  auto stated = loop->getAttrOfType<IntegerAttr>("ckopt.gpu.unroll");
  int64_t count = stated ? stated.getInt() : unrollCount(loop);
  if (count == 0)
    return;
  Builder b(loop.getContext());
  auto unroll = LLVM::LoopUnrollAttr::get(
      b.getContext(), /*disable=*/count == 1 ? b.getBoolAttr(true) : nullptr,
      /*count=*/count > 1 ? b.getI32IntegerAttr(int32_t(count)) : nullptr,
      /*runtimeDisable=*/nullptr, /*full=*/nullptr,
      /*followupUnrolled=*/nullptr, /*followupRemainder=*/nullptr,
      /*followupAll=*/nullptr);
  // The conversions copy this attribute to LLVM's branch.
  loop->setAttr("loop_annotation", LLVM::LoopAnnotationAttr::get(
                                       b.getContext(), {}, {}, {}, unroll, {},
                                       {}, {}, {}, {}, {}, {}, {}, {}, {}, {}));
}

namespace {
struct BoundUnrolling : ckopt::impl::BoundUnrollingPassBase<BoundUnrolling> {
  void runOnOperation() override {
    getOperation()->walk([](scf::ForOp loop) { bound(loop); });
  }
};
} // namespace
