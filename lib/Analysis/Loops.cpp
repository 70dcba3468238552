//===- Loops.cpp - how often bodies run, and whether they end -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a loop of unknown length has no cost, and a loop that may never end
// must not move past visible effects. Method: LoopLikeOpInterface gives bounds
// and steps; a loop with induction variables counts to a bound and ends,
// whatever the bound is. Regions of several blocks are not analyzed: they count
// as loops of unknown length that may not end, unless no block can be reached
// from itself. Complexity: O(ops inside).
//
//===----------------------------------------------------------------------===//
#include "Loops.h"
#include "ckopt/Analysis/OpFacts.h"
#include "ckopt/Interfaces/Compat.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/RegionGraphTraits.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "llvm/ADT/SCCIterator.h"

#include <cmath>

using namespace mlir;
using namespace ckopt;

static double steps(double range, int64_t step) {
  return range > 0 ? std::ceil(range / double(step)) : 0;
}

std::optional<double> ckopt::getTripCount(LoopLikeOpInterface loop) {
  if (std::optional<APInt> count = compat::staticTripCount(loop))
    return double(count->getLimitedValue());
  double product = 1;
  if (auto parallel = dyn_cast<affine::AffineParallelOp>(*loop)) {
    auto ranges = parallel.getConstantRanges();
    if (!ranges)
      return std::nullopt;
    for (auto [range, step] : llvm::zip_equal(*ranges, parallel.getSteps()))
      product *= steps(double(range), step);
    return product;
  }
  auto lower = loop.getLoopLowerBounds(), upper = loop.getLoopUpperBounds(),
       step = loop.getLoopSteps();
  if (!lower || !upper || !step || lower->size() != upper->size() ||
      lower->size() != step->size())
    return std::nullopt;
  for (auto [from, to, by] : llvm::zip_equal(*lower, *upper, *step)) {
    std::optional<int64_t> begin = getConstantIntValue(from),
                           end = getConstantIntValue(to),
                           stride = getConstantIntValue(by);
    if (!begin || !end || !stride || *stride <= 0)
      return std::nullopt;
    product *= steps(double(*end) - double(*begin), *stride);
  }
  return product;
}

/// Returns whether a block of the region can be reached from itself.
static bool hasCycle(Region &region) {
  if (region.empty() || region.hasOneBlock())
    return false;
  for (auto scc = llvm::scc_begin(&region); !scc.isAtEnd(); ++scc)
    if (scc.hasCycle())
      return true;
  return false;
}

/// Returns whether the op itself repeats a body without a known bound.
static bool isUnboundedLoop(Operation *op) {
  if (auto loop = dyn_cast<LoopLikeOpInterface>(op))
    return !getTripCount(loop);
  if (facts::isLoop(op))
    return true;
  if (auto branch = dyn_cast<RegionBranchOpInterface>(op);
      branch && branch.hasLoop())
    return true;
  return llvm::any_of(op->getRegions(), hasCycle);
}

bool ckopt::runsUnknownTimes(Operation *op,
                             function_ref<bool(Operation *)> known) {
  if (op->getNumRegions() == 0)
    return false;
  return op
      ->walk<WalkOrder::PreOrder>([&](Operation *inner) {
        if (known(inner))
          return WalkResult::skip();
        return isUnboundedLoop(inner) ? WalkResult::interrupt()
                                      : WalkResult::advance();
      })
      .wasInterrupted();
}

bool ckopt::mayNotEnd(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        auto loop = dyn_cast<LoopLikeOpInterface>(inner);
        bool counts = loop && loop.getLoopInductionVars().has_value();
        auto branch = dyn_cast<RegionBranchOpInterface>(inner);
        bool endless = isa<CallOpInterface>(inner) || facts::isLoop(inner) ||
                       (!counts && (loop || (branch && branch.hasLoop()))) ||
                       llvm::any_of(inner->getRegions(), hasCycle);
        return endless ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}
