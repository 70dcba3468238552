//===- ElementwiseKernel.cpp - fused pointwise and indexed kernels --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elementwise kernels are one loop nest over the results' points. Adjacent
// dimensions merge where every access allows (Domain); the innermost loop runs
// on lanes, in blocks of at most kBlock, and blocks and outer loops together
// are the parallel dimension. All results of a point are computed before any is
// stored: stores may go where operands lie (reuse). On a GPU, a thread computes
// one vector of the innermost loop, or one element where vectors would be
// unaligned or gathered.
//
//===----------------------------------------------------------------------===//
#include "Emit/ColumnCache.h"
#include "Kinds/GeneratedKernel.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/RandomSite.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

/// Elements of the innermost loop in one step of the parallel dimension.
static constexpr int64_t kBlock = 4096;

/// Number of vectors that one iteration computes if the kernel draws random
/// numbers.
static constexpr unsigned kGroup = 4;

/// Returns what to compute for a result: a store rounds to halves itself, with
/// the bits of a cast.
static Value beforeRounding(Value result) {
  auto cast = result.getDefiningOp<CastOp>();
  Type stored = getElementTypeOrSelf(result);
  bool rounds = cast && getElementTypeOrSelf(cast.getInput()).isF32() &&
                (stored.isBF16() || stored.isF16());
  return rounds ? cast.getInput() : result;
}

namespace {

class ElementwiseKernel : public FormedKernel {
public:
  using FormedKernel::FormedKernel;

protected:
  LogicalResult analyze() override {
    auto results = terminator.getOperands();
    if (results.empty())
      return kernel.emitError("kernel has no results");
    auto type = cast<RankedTensorType>(results.front().getType());
    Accesses accesses;
    SmallVector<AffineExpr> point = identityIndex(type.getRank(), ctx);
    for (Value result : results) {
      auto other = cast<RankedTensorType>(result.getType());
      if (other.getShape() != type.getShape())
        return kernel.emitError("results of an elementwise kernel must have "
                                "one shape: ")
               << type << " and " << other;
      accesses.addUse(other, point);
      accesses.add(result, point);
    }
    if (accesses.unsupported)
      return accesses.unsupported->emitError(
          "cannot be part of an elementwise kernel");
    findReuse(accesses, point);
    SmallVector<int> classes(type.getRank(), 0);
    domain.emplace(type.getShape(), getPhysicalOrder(type), classes, accesses,
                   ctx);
    inner = domain->loops.back().size;
    empty = type.getNumElements() == 0;
    return success();
  }

  LogicalResult planRanges() override {
    kernel.walk([&](Operation *op) { random |= randomSite(op).has_value(); });
    cache.plan(*domain, SmallVector<Value>(terminator.getOperands()));
    block = std::clamp<int64_t>(inner, 1, kBlock);
    for (const Domain::Loop &loop : ArrayRef(domain->loops).drop_back())
      trips.push_back(loop.size);
    trips.push_back(llvm::divideCeil(inner, block));
    int64_t trip = 1;
    for (int64_t size : trips)
      trip *= size;
    addStage(empty ? 0 : trip, kRangeElements / block);
    return success();
  }

  LogicalResult emitBlocks(ModuleOp into) override {
    return emitThreads(into, 0, items,
                       [&](Emitter &e, Value t) { emitItem(e, t); });
  }

  LogicalResult emitRanges(ModuleOp into) override {
    return emitStage(into, 0, [&](Emitter &e) {
      cache.emit(e);
      e.forLoop(e.begin, e.end, 1, {}, [&](Value t, ValueRange) {
        emitBlock(e, t);
        return SmallVector<Value>();
      });
    });
  }

  /// A thread computes one vector if that is one access of 16 bytes.
  LogicalResult planBlocks() override {
    std::string reason;
    width = lanes;
    if (domain->loops.size() > 1 && inner % lanes) {
      reason = "rows of " + std::to_string(inner) + " elements are unaligned";
    } else if (inner < int64_t(lanes)) {
      reason = "only " + std::to_string(inner) + " elements in a row";
    } else {
      planItems();
      OwningOpRef<ModuleOp> probe = ModuleOp::create(kernel.getLoc());
      if (failed(emitBlocks(*probe)))
        return failure();
      if (report.gathers)
        reason = "neighbours lie apart in an operand or a result";
      report = {};
      code.stages.clear();
    }
    if (!reason.empty())
      width = 1;
    planItems(reason);
    return success();
  }

private:
  void planItems(llvm::StringRef reason = {}) {
    trips.clear();
    for (const Domain::Loop &loop : ArrayRef(domain->loops).drop_back())
      trips.push_back(loop.size);
    trips.push_back(llvm::divideCeil(inner, width));
    items = 1;
    for (int64_t size : trips)
      items *= size;
    if (empty)
      items = 0;
    addLaunch(items, kBlockThreads, /*together=*/false, reason);
  }

  /// Computes and stores all results at the logical index of the loops'
  /// positions `outer` and `last`.
  void emitPoint(Emitter &e, ArrayRef<AffineExpr> outer, AffineExpr last) {
    SmallVector<AffineExpr> positions(outer);
    positions.push_back(last);
    SmallVector<AffineExpr> index = domain->index(positions);
    SmallVector<Value> elements;
    for (Value result : terminator.getOperands())
      elements.push_back(e.emit(beforeRounding(result), index));
    for (auto [r, element] : llvm::enumerate(elements))
      e.store(r, cast<RankedTensorType>(terminator.getOperand(r).getType()),
              index, element);
  }

  /// Emits the code of one thread.
  void emitItem(Emitter &e, Value t) {
    SmallVector<Value> parts = split(e, t, trips);
    SmallVector<AffineExpr> outer;
    for (Value iv : ArrayRef(parts).drop_back())
      outer.push_back(e.addDim(iv));
    if (width == 1)
      return emitPoint(e, outer, e.addDim(parts.back()));
    Value low = e.mul(parts.back(), e.index(width));
    auto vector = [&] {
      emitPoint(e, outer, e.addDim(low, /*lane=*/true));
      return SmallVector<Value>();
    };
    if (inner % width == 0) {
      vector();
      return;
    }
    Value end = e.add(low, e.index(width)), high = e.index(inner);
    e.ifThen(e.cmpi(arith::CmpIPredicate::sle, end, high), vector, [&] {
      e.forLoop(low, high, 1, {}, [&](Value iv, ValueRange) {
        emitPoint(e, outer, e.addDim(iv));
        return SmallVector<Value>();
      });
      return SmallVector<Value>();
    });
  }

  void emitBlock(Emitter &e, Value t) {
    SmallVector<Value> outer = split(e, t, trips);
    SmallVector<AffineExpr> at;
    for (Value iv : ArrayRef(outer).drop_back())
      at.push_back(e.addDim(iv));
    Value low = e.index(0), high = e.index(inner);
    std::optional<int64_t> count = inner;
    if (block != inner) {
      low = e.mul(outer.back(), e.index(block));
      high = e.minimum(e.add(low, e.index(block)), high);
      count = inner % block == 0 ? std::optional(block) : std::nullopt;
    }
    auto point = [&](AffineExpr lane) { emitPoint(e, at, lane); };
    if (random) {
      // Random numbers are made for several vectors at once.
      int64_t width = kGroup * int64_t(lanes);
      Value groups = e.sub(high, low), by = e.index(width);
      groups = e.add(low, e.mul(arith::DivUIOp::create(e.b, groups, by), by));
      e.forLoop(low, groups, width, {}, [&](Value iv, ValueRange) {
        AffineExpr lane = e.addDim(iv, /*lane=*/true);
        for (unsigned u = 0; u < kGroup; ++u) {
          e.group = {u, kGroup};
          point(lane + int64_t(u) * int64_t(lanes));
        }
        e.group = {};
        return SmallVector<Value>();
      });
      low = groups;
      if (count)
        count = *count % width;
    }
    if (!count || *count)
      vectorLoop(e, low, high, count, point);
  }

  std::optional<Domain> domain;
  ColumnCache cache;
  SmallVector<int64_t> trips;
  int64_t inner = 1, block = 1;
  /// Of a launch: items, and elements of a thread.
  int64_t items = 0, width = 1;
  bool empty = false;  ///< there are no elements
  bool random = false; ///< some op draws random numbers
};

} // namespace

std::unique_ptr<GeneratedKernel>
codegen::makeElementwiseKernel(func::FuncOp kernel,
                               const CodegenOptions &options) {
  return std::make_unique<ElementwiseKernel>(kernel, options);
}
