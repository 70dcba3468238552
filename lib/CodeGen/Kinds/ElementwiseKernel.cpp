//===- ElementwiseKernel.cpp - fused elementwise and indexed kernels ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elementwise kernels are one loop nest over the results' points. Adjacent
// dimensions merge if every access allows it (Domain); the innermost loop runs
// on lanes, in blocks of at most kBlock, and blocks and outer loops together
// are the parallel dimension. All results of a point are computed before any is
// stored, since stores may go to operands' bytes (reuse). If an operand lies
// along another loop (a transpose), tiles of both loops are computed
// (EmitterTile.cpp). On a GPU, a thread computes one vector of the innermost
// loop, or one element where vectors would be unaligned or gathered.
//
//===----------------------------------------------------------------------===//
#include "Emit/ColumnCache.h"
#include "Emit/MathFunctions.h"
#include "GeneratedKernel.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/RandomSite.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

/// Elements of the innermost loop in one step of the parallel dimension.
static constexpr int64_t kBlock = 4096;

/// Points along the loop of a transposed operand in one step of the parallel
/// dimension. Tiles then touch few pages at a time on both sides, and read and
/// write whole cache lines.
static constexpr int64_t kTilePoints = 64;
/// The least extent of either loop for which tiles pay, and the most ops of a
/// body, whose code a tile repeats for each of its points.
static constexpr int64_t kLeastTile = 4;
static constexpr size_t kTileOps = 16;

/// Number of vectors that one iteration computes if the kernel draws random
/// numbers.
static constexpr unsigned kGroup = 4;

Value codegen::beforeRounding(Value result) {
  auto cast = result.getDefiningOp<CastOp>();
  Type stored = getElementTypeOrSelf(result);
  bool rounds = cast && getElementTypeOrSelf(cast.getInput()).isF32() &&
                (stored.isBF16() || stored.isF16());
  return rounds ? cast.getInput() : result;
}

namespace {

class ElementwiseKernel : public FormedKernel {
public:
  ElementwiseKernel(func::FuncOp kernel, const CodegenOptions &options,
                    bool byRows = false, std::optional<Part> part = {})
      : FormedKernel(kernel, options), byRows(byRows), part(part) {}

protected:
  LogicalResult analyze() override {
    auto results = terminator.getOperands();
    if (results.empty())
      return kernel.emitError("kernel has no results");
    RankedTensorType type = stored(results.front());
    Accesses accesses;
    SmallVector<AffineExpr> point = identityIndex(type.getRank(), ctx);
    for (Value result : results) {
      RankedTensorType other = stored(result);
      if (other.getShape() != type.getShape())
        return kernel.emitError("results of an elementwise kernel must have "
                                "one shape: ")
               << type << " and " << other;
      accesses.addUse(other, point);
      accesses.add(result, point);
    }
    if (accesses.unsupported)
      return accesses.unsupported->emitOpError(
          "has no ElementModel (nor a RowModel, if it is of kind RowWise), and "
          "cannot be part of an elementwise kernel");
    if (!part)
      findReuse(accesses, point);
    SmallVector<int> classes(type.getRank(), 0);
    if (byRows)
      classes.front() = 1;
    if (part) // its loop's positions lie elsewhere in operands
      classes[part->axis] = 1;
    domain.emplace(type.getShape(), getPhysicalOrder(type), classes,
                   openDims(type.getShape()), accesses, ctx);
    if (options.target->traits.form == StageForm::Ranges)
      fillLanes();
    inner = domain->loops.back().size;
    if (!byRows)
      findTransposed(accesses);
    empty = type.getNumElements() == 0;
    return success();
  }

  LogicalResult planRanges() override {
    kernel.walk([&](Operation *op) { random |= randomSite(op).has_value(); });
    cache.plan(*domain, SmallVector<Value>(terminator.getOperands()));
    if (byRows) {
      int64_t rows = domain->loops.front().size, points = 1;
      for (const Domain::Loop &loop : ArrayRef(domain->loops).drop_front())
        points *= loop.size;
      addStage(empty ? 0 : rows, kRangeElements / std::max<int64_t>(points, 1));
      return success();
    }
    bool isOpen = domain->loops.back().open;
    block = isOpen ? inner : std::clamp<int64_t>(inner, 1, kBlock);
    for (const Domain::Loop &loop : ArrayRef(domain->loops).drop_back())
      trips.push_back(loop.size);
    trips.push_back(llvm::divideCeil(inner, block));
    int64_t work = block;
    if (random || lanes == 1)
      across = std::nullopt;
    if (across) {
      work *= kTilePoints;
      trips[*across] = llvm::divideCeil(trips[*across], kTilePoints);
    }
    int64_t trip = 1;
    for (int64_t size : trips)
      trip *= size;
    addStage(empty ? 0 : trip, isOpen ? 1 : kRangeElements / work);
    return success();
  }

  LogicalResult emitBlocks(ModuleOp into) override {
    return emitThreads(into, 0, items,
                       [&](Emitter &e, Value t) { emitItem(e, t); });
  }

  LogicalResult emitRanges(ModuleOp into) override {
    return emitStage(into, 0, [&](Emitter &e) {
      cache.emit(e);
      Value first = byRows ? e.callScalar(0) : Value();
      e.forLoop(e.begin, e.end, 1, {}, [&](Value t, ValueRange) {
        if (byRows)
          emitRow(e, {e.addDim(e.add(t, first))});
        else
          emitBlock(e, t);
        return SmallVector<Value>();
      });
    });
  }

  /// A thread computes one vector, if that is one access of 16 bytes.
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
  /// Returns the type in which a result is stored: that of its part.
  RankedTensorType stored(Value result) const {
    auto type = cast<RankedTensorType>(result.getType());
    if (!part)
      return type;
    SmallVector<int64_t> shape(type.getShape());
    shape[part->axis] = part->count;
    return RankedTensorType::get(shape, type.getElementType());
  }

  /// Lets lanes run along the loop around a short innermost one, which would
  /// leave most of them empty: the two numbers of a byte are one each of 64
  /// bytes, and stored two apart.
  void fillLanes() {
    auto &loops = domain->loops;
    size_t count = loops.size();
    if (count < (byRows ? 3u : 2u) || loops[count - 1].size >= kLeastTile ||
        loops[count - 2].size < int64_t(lanes))
      return;
    std::swap(loops[count - 1], loops[count - 2]);
  }

  /// Looks for an operand that is not contiguous along the innermost loop, and
  /// finds the loop along which it is.
  void findTransposed(const Accesses &accesses) {
    unsigned last = domain->loops.size() - 1;
    SmallVector<AffineExpr> at = identityIndex(last + 1, ctx);
    if (domain->loops[last].open || inner < kLeastTile ||
        kernel.front().getOperations().size() > kTileOps)
      return;
    for (const Accesses::Read &read : accesses.reads) {
      SmallVector<AffineExpr> index;
      for (AffineExpr i : read.index)
        index.push_back(i.replaceDims(domain->index(at)));
      auto type = cast<RankedTensorType>(read.arg.getType());
      AffineExpr offset = Emitter::linearize(normalized(type, index),
                                             getElementStrides(type), ctx);
      if (factorOf(offset, at[last]).value_or(1) <= 1)
        continue;
      for (unsigned l = 0; l < last; ++l)
        if (factorOf(offset, at[l]) == 1 && !domain->loops[l].open &&
            domain->loops[l].size >= kLeastTile)
          across = l;
    }
  }

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
    SmallVector<AffineExpr> index = domain->index(positions), whole(index);
    if (part && part->step)
      whole[part->axis] =
          whole[part->axis] +
          e.addSymbol(e.callScalar(0), /*nonNegative=*/true) * part->step;
    SmallVector<Value> elements;
    for (Value result : terminator.getOperands())
      elements.push_back(e.emit(beforeRounding(result), whole));
    for (auto [r, element] : llvm::enumerate(elements))
      e.store(r, stored(terminator.getOperand(r)), index, element);
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

  /// Computes all points at these positions of the outer loops, by loops that
  /// divide nothing; a short innermost loop (the nibbles of a byte) is
  /// unrolled.
  void emitRow(Emitter &e, SmallVector<AffineExpr> at) {
    if (at.size() + 1 < domain->loops.size()) {
      int64_t size = domain->loops[at.size()].size;
      e.forLoop(e.index(0), e.index(size), 1, {}, [&](Value iv, ValueRange) {
        SmallVector<AffineExpr> inside(at);
        inside.push_back(e.addDim(iv));
        emitRow(e, inside);
        return SmallVector<Value>();
      });
      return;
    }
    if (at.size() == domain->loops.size()) { // rows of one number
      AffineExpr last = at.pop_back_val();
      return emitPoint(e, at, last);
    }
    constexpr int64_t kUnrolled = 4;
    if (inner <= kUnrolled) {
      for (int64_t k = 0; k < inner; ++k)
        emitPoint(e, at, getAffineConstantExpr(k, ctx));
      return;
    }
    vectorLoop(e, e.index(0), e.index(inner), domain->loops.back().count(),
               [&](AffineExpr lane) { emitPoint(e, at, lane); });
  }

  void emitBlock(Emitter &e, Value t) {
    SmallVector<Value> outer = split(e, t, trips);
    SmallVector<AffineExpr> at;
    for (Value iv : ArrayRef(outer).drop_back())
      at.push_back(e.addDim(iv));
    Value low = e.index(0), high = e.index(inner);
    std::optional<int64_t> count = domain->loops.back().count();
    if (block != inner) {
      low = e.mul(outer.back(), e.index(block));
      high = e.minimum(e.add(low, e.index(block)), high);
      count = inner % block == 0 ? std::optional(block) : std::nullopt;
    }
    if (across)
      return emitTiles(e, at, outer[*across], low, high);
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

  /// Calls `body` at every lanes-th position of [low, high) with the number of
  /// points there; the range is the whole loop of `size` points, or an aligned
  /// part.
  void overVectors(Emitter &e, Value low, Value high, int64_t size,
                   function_ref<void(Value at, int64_t count)> body) {
    int64_t rest = size % lanes;
    Value middle = high;
    if (rest) {
      Value vectors = arith::DivUIOp::create(e.b, e.sub(high, low),
                                             e.index(int64_t(lanes)));
      middle = e.add(low, e.mul(vectors, e.index(int64_t(lanes))));
    }
    if (size >= int64_t(lanes))
      e.forLoop(low, middle, lanes, {}, [&](Value iv, ValueRange) {
        body(iv, lanes);
        return SmallVector<Value>();
      });
    if (rest)
      e.ifThen(
          e.cmpi(arith::CmpIPredicate::slt, middle, high),
          [&] {
            body(middle, rest);
            return SmallVector<Value>();
          },
          nullptr);
  }

  /// Computes columns [low, high) of the points of tiles number `row`.
  void emitTiles(Emitter &e, SmallVector<AffineExpr> at, Value row, Value low,
                 Value high) {
    int64_t size = domain->loops[*across].size;
    Value first = e.mul(row, e.index(kTilePoints));
    Value last = e.minimum(e.add(first, e.index(kTilePoints)), e.index(size));
    overVectors(e, low, high, inner, [&](Value column, int64_t columns) {
      // A single column is computed by scalars, as vectorLoop does.
      AffineExpr lane = e.addDim(column, /*lane=*/columns > 1);
      auto tile = [&](Value point, int64_t points) {
        AffineExpr dim = e.addDim(point);
        e.beginTile(dim, points, columns);
        for (int64_t k = 0; k < points; ++k) {
          e.tile->point = k;
          at[*across] = dim + k;
          emitPoint(e, at, lane);
        }
        e.tile.reset();
      };
      auto tiles = [&] {
        overVectors(e, first, last, size, tile);
        return Value();
      };
      if (columns > 1 && columns < int64_t(lanes))
        e.withMask(maskBelow(e, column, e.index(inner)), tiles);
      else
        tiles();
    });
  }

  std::optional<Domain> domain;
  /// Loop along which transposed operands are contiguous, if there are any.
  std::optional<unsigned> across;
  ColumnCache cache;
  SmallVector<int64_t> trips;
  int64_t inner = 1, block = 1;
  /// For a launch: the number of items, and elements of a thread.
  int64_t items = 0, width = 1;
  bool byRows; ///< the first dimension has a loop of its own
  std::optional<Part> part;
  bool empty = false;  ///< there are no elements
  bool random = false; ///< some op draws random numbers
};

} // namespace

std::unique_ptr<GeneratedKernel>
codegen::makeElementwiseKernel(func::FuncOp kernel,
                               const CodegenOptions &options) {
  auto ops = kernel.front().getOps<AssignCodesOp>();
  if (!ops.empty())
    return makeCodedUpdate(kernel, options);
  return std::make_unique<ElementwiseKernel>(kernel, options);
}

std::unique_ptr<GeneratedKernel>
codegen::makeRowsKernel(func::FuncOp kernel, const CodegenOptions &options) {
  return std::make_unique<ElementwiseKernel>(kernel, options, /*byRows=*/true);
}

std::unique_ptr<GeneratedKernel>
codegen::makePartKernel(func::FuncOp kernel, const CodegenOptions &options,
                        Part part) {
  return std::make_unique<ElementwiseKernel>(kernel, options, /*byRows=*/false,
                                             part);
}
