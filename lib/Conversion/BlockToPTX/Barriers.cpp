//===- Barriers.cpp - which barriers a kernel needs -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The lowering puts a barrier wherever an interval begins or ends. One is
// needless if nothing that may run between the barrier before it and itself
// conflicts with anything that may run between itself and the next one:
// accesses of the same memory of which one is a store. Memory is told apart by
// workgroup buffer; global memory is one, since arguments may share bytes, and
// constant tables and a thread's own buffers are none.
//
// Loops around barriers have one region: block form allows scf.for alone
// (BlockForm), so what its end reaches is its own beginning.
//
// What may run before and after each barrier are two data flow problems over
// the structured code (loops: a fixpoint). Needless barriers are erased one
// after another, each judged with those before it gone, since erasing joins the
// code on its sides. B barriers, n operations, depth d of loops: O(B n 2^d),
// all three small.
//
//===----------------------------------------------------------------------===//
#include "BlockToGPU.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::blockform;

namespace {

/// Sets of kinds of memory, a bit each.
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
  Accesses accessesOf(Operation *op) const;
  template <bool Forward> Accesses flow(Block &block, Accesses state);
  llvm::SmallDenseMap<Operation *, Accesses> before, after;
  gpu::GPUFuncOp function;
};

} // namespace

/// The pointer that `address` is an offset of.
static Value baseOf(Value address) {
  while (auto gep = address.getDefiningOp<LLVM::GEPOp>())
    address = gep.getBase();
  return address;
}

Accesses Barriers::accessesOf(Operation *op) const {
  uint64_t memory = 1; // global
  if (Value buffer = bufferOf(op)) {
    auto shared = dyn_cast<BlockArgument>(buffer);
    if (!shared)
      return {}; // a thread's own
    memory = uint64_t(1) << std::min(1 + shared.getArgNumber(), 63u);
  } else if (auto load = dyn_cast<LLVM::LoadOp>(op)) {
    if (baseOf(load.getAddr()).getDefiningOp<LLVM::AddressOfOp>())
      return {}; // a constant table
  } else if (!isStore(op) &&
             !isa<LLVM::MaskedLoadOp, LLVM::masked_gather>(op)) {
    return {};
  }
  return isStore(op) ? Accesses{0, memory} : Accesses{memory, 0};
}

/// The accesses that reach the end of the block (going backward: its start)
/// without a barrier between, those of `state` reaching the other side. Notes
/// what reaches each barrier.
template <bool Forward> Accesses Barriers::flow(Block &block, Accesses state) {
  auto visit = [&](Operation &op) {
    if (isa<gpu::BarrierOp>(op)) {
      (Forward ? before : after)[&op] = state;
      state = {};
      return;
    }
    bool isLoop = isa<LoopLikeOpInterface>(op);
    Accesses out = state; // a branch may be passed by, a loop run no time
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
    state = op.getNumRegions() ? out : state | accessesOf(&op);
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
