//===- Barriers.cpp - removes needless barriers ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The lowering puts a barrier wherever an interval begins or ends, and this
// file removes needless ones. A barrier is needless if no access between the
// previous barrier and it conflicts with an access between it and the next
// barrier. Two accesses of the same memory conflict if one is a store. Each
// workgroup buffer is a memory of its own. All of global memory counts as one,
// since arguments may share bytes; constant tables and a thread's own buffers
// cannot conflict.
//
// Around barriers, block form allows no control flow but scf.for (BlockForm),
// so the end of a loop's body leads to its beginning.
//
// The accesses that may run before and after each barrier are two data flow
// problems over the structured code (loops: a fixpoint). Needless barriers are
// erased one after another, each judged after the earlier ones are gone, since
// erasing merges the code on both sides. B barriers, n operations, depth d of
// loops: O(B n 2^d), all three small.
//
//===----------------------------------------------------------------------===//
#include "BlockToGPU.h"
#include "ckopt/Dialect/Block/IR/BlockDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::blockform;

namespace {

/// A set of accesses, as one bit for each memory.
struct Accesses {
  uint64_t reads = 0, writes = 0;
  Accesses operator|(Accesses other) const {
    return {reads | other.reads, writes | other.writes};
  }
  bool operator==(const Accesses &) const = default;
  bool conflictsWith(Accesses other) const {
    return (writes & (other.reads | other.writes)) | (reads & other.writes);
  }
};

class Barriers {
public:
  explicit Barriers(gpu::GPUFuncOp function) : function(function) {}
  void run();

private:
  template <bool Forward> Accesses accessesOf(Operation *op) const;
  uint64_t sharedBit(Value buffer) const;
  template <bool Forward> Accesses flow(Block &block, Accesses state);
  llvm::SmallDenseMap<Operation *, Accesses> before, after;
  gpu::GPUFuncOp function;
  uint64_t copied = 0; ///< buffers that asynchronous copies write to
};

} // namespace

/// Returns the pointer that `address` is an offset of.
static Value baseOf(Value address) {
  while (auto gep = address.getDefiningOp<LLVM::GEPOp>())
    address = gep.getBase();
  return address;
}

/// Returns the bit of a shared buffer; none for a buffer of the thread itself.
uint64_t Barriers::sharedBit(Value buffer) const {
  auto shared = dyn_cast<BlockArgument>(buffer);
  return shared ? uint64_t(1) << std::min(1 + shared.getArgNumber(), 63u) : 0;
}

/// An asynchronous copy counts as a write at its start, which must come after
/// reads of the old bytes, and at its wait, which must come before reads of the
/// new ones. The latter only matters to later accesses.
template <bool Forward> Accesses Barriers::accessesOf(Operation *op) const {
  uint64_t memory = 1; // global memory
  if (auto copy = dyn_cast<block::CopyAsyncOp>(op))
    return {memory, sharedBit(copy.getTo())};
  if (auto load = dyn_cast<block::LoadMatricesOp>(op))
    return {sharedBit(load.getFrom()), 0};
  if (isa<block::WaitCopiesOp>(op))
    return {0, Forward ? copied : 0};
  if (Value buffer = bufferOf(op)) {
    memory = sharedBit(buffer);
    if (!memory)
      return {};
  } else if (auto load = dyn_cast<LLVM::LoadOp>(op)) {
    if (baseOf(load.getAddr()).getDefiningOp<LLVM::AddressOfOp>())
      return {}; // a constant table
  } else if (!isStore(op) &&
             !isa<LLVM::MaskedLoadOp, LLVM::masked_gather>(op)) {
    return {};
  }
  return isStore(op) ? Accesses{0, memory} : Accesses{memory, 0};
}

/// Returns the accesses that reach the end of the block (going backward: its
/// start) without a barrier between, if `state` reaches the other side. Records
/// the accesses that reach each barrier.
template <bool Forward> Accesses Barriers::flow(Block &block, Accesses state) {
  auto visit = [&](Operation &op) {
    if (isa<gpu::BarrierOp>(op)) {
      (Forward ? before : after)[&op] = state;
      state = {};
      return;
    }
    bool isLoop = isa<LoopLikeOpInterface>(op);
    // A branch may not be taken, a loop may run zero times.
    Accesses out = state;
    for (Region &region : op.getRegions()) {
      if (region.empty())
        continue;
      Accesses in = state, end = flow<Forward>(region.front(), in);
      while (isLoop && !((in | end) == in)) {
        in = in | end;
        end = flow<Forward>(region.front(), in);
      }
      out = out | end;
    }
    state = op.getNumRegions() ? out : state | accessesOf<Forward>(&op);
  };
  if constexpr (Forward)
    for (Operation &op : block)
      visit(op);
  else
    for (Operation &op : llvm::reverse(block))
      visit(op);
  return state;
}

void Barriers::run() {
  function->walk(
      [&](block::CopyAsyncOp copy) { copied |= sharedBit(copy.getTo()); });
  SmallVector<gpu::BarrierOp> barriers;
  function->walk([&](gpu::BarrierOp barrier) { barriers.push_back(barrier); });
  for (gpu::BarrierOp barrier : barriers) {
    flow<true>(function.getBody().front(), {});
    flow<false>(function.getBody().front(), {});
    if (!before[barrier].conflictsWith(after[barrier]))
      barrier.erase();
    before.clear();
    after.clear();
  }
}

void blockform::removeNeedlessBarriers(gpu::GPUFuncOp function) {
  Barriers(function).run();
}
