//===- OlderMlir.cpp - what the pass needs and MLIR 19 has not ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Empty but with MLIR 19. There, buffers would live until the function
// returns: later releases free each behind its last use by a pass
// `optimize-allocation-liveness`, which is here under the same name. Method: of
// each allocation that is freed in its own block, the uses of all values that
// may be views of it are followed to that block, and the deallocation moves
// behind the last. Guarantee: none is freed before a use. Complexity: O(uses of
// views), and that of the view analysis.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Interfaces/Compat.h"
#include "mlir/Dialect/Bufferization/Transforms/BufferViewFlowAnalysis.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Pass/PassRegistry.h"

#include <list>
#include <mutex>

#if LLVM_VERSION_MAJOR < 22

using namespace mlir;
using namespace ckopt;

namespace {

struct AllocationLivenessPass
    : PassWrapper<AllocationLivenessPass, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(AllocationLivenessPass)

  StringRef getArgument() const override {
    return "optimize-allocation-liveness";
  }
  StringRef getDescription() const override {
    return "Frees allocations behind their last uses";
  }

  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    BufferViewFlowAnalysis views(getOperation());
    getOperation().walk([&](memref::AllocOp alloc) { shorten(alloc, views); });
  }

private:
  static void shorten(memref::AllocOp alloc,
                      const BufferViewFlowAnalysis &views) {
    Operation *dealloc = nullptr;
    for (Operation *user : alloc->getUsers())
      if (isa<memref::DeallocOp>(user))
        dealloc = user;
    if (!dealloc || dealloc->getBlock() != alloc->getBlock())
      return;
    Operation *last = alloc;
    for (Value view : views.resolve(alloc.getResult()))
      for (Operation *user : view.getUsers()) {
        Operation *here = alloc->getBlock()->findAncestorOpInBlock(*user);
        if (!here || (isa<memref::DeallocOp>(user) && user != dealloc))
          return; // used elsewhere, or freed twice: not understood
        if (user != dealloc && last->isBeforeInBlock(here))
          last = here;
      }
    if (last->isBeforeInBlock(dealloc))
      dealloc->moveAfter(last);
  }
};

} // namespace

std::unique_ptr<Pass> ckopt::compat::createAllocationLivenessPass() {
  return std::make_unique<AllocationLivenessPass>();
}

void ckopt::compat::registerAllocationLivenessPass() {
  PassRegistration<AllocationLivenessPass>();
}

void ckopt::compat::addTo(ArrayRef<std::string> &list,
                          ArrayRef<std::string> added) {
  static std::mutex mutex;
  static std::list<std::vector<std::string>> kept; // few: one for each pass
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<std::string> &all = kept.emplace_back(list);
  all.insert(all.end(), added.begin(), added.end());
  list = all;
}

#endif
