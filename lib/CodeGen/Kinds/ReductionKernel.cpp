//===- ReductionKernel.cpp - sums, means, moments of a shape --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All reduce and moments ops of the kernel share the loops. If the kept
// dimensions do not give enough work for many threads, or the data of one
// column block would not fit the caches, the outermost reduced loop is split
// into chunks (for columns on a GPU all reduced loops, as one range of rows).
// The split depends on the shape, on a GPU also on the number of
// multiprocessors, and never on the number of threads: stage 0 leaves a partial
// result for each chunk in scratch, stage 1 combines them in order.
//
// moments of columns: one pass over a chunk, tile by tile of rows, that adds
// deviations from a reference and their squares; the reference starts as the
// first row and moves to the mean of the rows so far after each tile, exactly
// (addRows); on a GPU tiles are merged by the formula for chunks (emitMoments).
// Rows, and on the CPU columns whose reduced loops do not merge, take two
// passes over a chunk (mean, then squares around it; the second from cache).
// Chunks are combined by Chan, Golub and LeVeque's formula, so that nothing
// cancels, whatever the mean.
//
// On a GPU, a block reduces a chunk of rows, or a thread one of columns (16
// bytes of them if they are contiguous). A thread, or a block if there are
// many, combines the chunks of a kept point.
//
// Time: the data is read from memory once. Scratch: chunks * kept points *
// states.
//
//===----------------------------------------------------------------------===//
#include "ReductionKernel.h"
#include "Device/BlockNest.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

/// Elements of one chunk, which fit a second-level cache.
static constexpr int64_t kChunkElements = 65536;
/// For a GPU: blocks of rows that fill it, columns that fill a multiprocessor
/// (two blocks of 256 threads with 4 columns each: 64 KiB of loads in flight,
/// where 4.8 TB/s of an H200 need 33), and the least number of points for each.
static constexpr int64_t kFullBlocks = 512, kFullColumns = 2048;
static constexpr int64_t kLeastBlockPoints = 4096, kLeastThreadPoints = 16;
/// The most threads that combine the chunks of a point, and the least number of
/// chunks for each thread beyond a warp.
static constexpr int64_t kMostCombiners = 256, kLeastCombined = 4;
/// The most columns whose sums are kept in a buffer on the stack.
static constexpr int64_t kWideColumns = 4096;

LogicalResult ReductionKernel::collect() {
  llvm::SmallDenseSet<Operation *> seen;
  for (Value result : terminator.getOperands()) {
    Operation *op = result.getDefiningOp();
    if (!op || !isa<ReduceOp, MomentsOp>(op))
      return kernel.emitError("results of a reduction kernel must be those of "
                              "reduce or moments");
    if (!seen.insert(op).second)
      continue;
    Item item{op, op->getOperand(0), {}, false, false, {}};
    Type element = getElementTypeOrSelf(item.input);
    SmallVector<int64_t> own;
    item.reducer.type = computeType(element);
    item.reducer.kind = ReduceKind::Sum;
    if (auto reduce = dyn_cast<ReduceOp>(op)) {
      item.reducer.kind = reduce.getKind();
      item.mean = reduce.getKind() == ReduceKind::Mean;
      own.assign(reduce.getAxes().begin(), reduce.getAxes().end());
      if (auto integer = dyn_cast<IntegerType>(element))
        item.reducer.isSigned = !integer.isUnsigned();
    } else {
      auto moments = cast<MomentsOp>(op);
      item.moments = true;
      own.assign(moments.getAxes().begin(), moments.getAxes().end());
    }
    llvm::sort(own);
    auto type = cast<RankedTensorType>(item.input.getType());
    if (items.empty())
      axes = own;
    else if (own != axes ||
             type.getShape() !=
                 cast<RankedTensorType>(items[0].input.getType()).getShape())
      return op->emitError("reductions of one kernel must share shape and "
                           "axes");
    items.push_back(item);
  }
  if (items.empty())
    return kernel.emitError("kernel has no results");
  return success();
}

LogicalResult ReductionKernel::analyze() {
  if (failed(collect()))
    return failure();
  auto type = cast<RankedTensorType>(items[0].input.getType());
  Accesses accesses;
  SmallVector<AffineExpr> point = identityIndex(type.getRank(), ctx);
  for (const Item &item : items)
    accesses.add(item.input, point);
  if (accesses.unsupported)
    return accesses.unsupported->emitError(
        "cannot be part of a reduction kernel");
  SmallVector<int> classes(type.getRank(), 0);
  for (int64_t axis : axes) {
    classes[axis] = 1;
    count *= type.getDimSize(axis);
  }
  // Loops follow the order in which the largest operand lies in memory.
  SmallVector<int64_t> order = getPhysicalOrder(type);
  for (const Accesses::Read &read : accesses.reads) {
    auto own = cast<RankedTensorType>(read.arg.getType());
    if (own.getShape() == type.getShape() && read.index == point) {
      order = getPhysicalOrder(own);
      break;
    }
  }
  domain.emplace(type.getShape(), order, classes, openDims(type.getShape()),
                 accesses, ctx);
  LoopRoles::operator=(domain->roles(classes));
  for (int64_t trip : trips)
    keptPoints *= trip;
  return success();
}

LogicalResult ReductionKernel::planRanges() {
  combinesLanes = true;
  overLanes = rows || !domain->loops.back().open;
  int64_t outermost = reduced.empty() ? 1 : domain->loops[reduced[0]].size;
  int64_t inside =
      std::max<int64_t>(count / std::max<int64_t>(outermost, 1), 1);
  int64_t keptSteps = keptPoints, width = 1;
  if (!rows && overLanes) {
    int64_t columns = domain->loops.back().size;
    vectors = lanes == 1 ? 1
                         : std::clamp<int64_t>(llvm::divideCeil(columns, lanes),
                                               1, kColumnVectors);
    width = vectors * lanes;
    bool moments = llvm::any_of(items, [](auto &item) { return item.moments; });
    wide = (columns > width || moments) && columns <= kWideColumns &&
           reduced.size() == 1 && !domain->loops[reduced[0]].open;
    if (wide)
      width = columns;
    trips.back() = llvm::divideCeil(columns, width);
    keptSteps = keptPoints / std::max<int64_t>(columns, 1) * trips.back();
  }
  // A chunk of all columns stays in cache while one block of columns after
  // another reads it.
  int64_t side = rows ? 1 : domain->loops.back().size;
  chunkLength = std::max<int64_t>(
      kChunkElements / std::max<int64_t>(inside * side, 1), 1);
  if (rows && reduced.size() == 1)
    chunkLength = llvm::alignTo(chunkLength, lanes * 4);
  else
    chunkLength = std::max<int64_t>(chunkLength, 8);
  if (wide) {
    SmallVector<Value> inputs;
    for (const Item &item : items)
      inputs.push_back(item.input);
    cache.plan(*domain, inputs);
  }
  bool enough = rows ? keptSteps >= 64 : keptSteps >= 64 && count < 4096;
  if (enough || count * width < 2 * kRangeElements || domain->isOpen())
    chunkLength = std::max<int64_t>(outermost, 1);
  chunks = std::max<int64_t>(llvm::divideCeil(outermost, chunkLength), 1);

  int64_t work = std::max<int64_t>(chunkLength * inside * width, 1);
  int64_t trip = chunks;
  for (int64_t size : trips)
    trip *= size;
  addStage(trip, kRangeElements / work);
  if (chunks == 1)
    return success();
  planScratch();
  addStage(llvm::divideCeil(keptPoints, lanes), 16);
  return success();
}

void ReductionKernel::planScratch() {
  // No padding at the end, because a step must write every byte below its
  // planned peak.
  int64_t end = 0;
  for (Item &item : items)
    for (int state = 0; state < (item.moments ? 2 : 1); ++state) {
      item.scratch.push_back(llvm::alignTo(end, 64));
      end =
          item.scratch.back() +
          chunks * keptPoints * (item.reducer.type.getIntOrFloatBitWidth() / 8);
    }
  code.workspaceBytes = end;
}

LogicalResult ReductionKernel::planBlocks() {
  onDevice = true;
  together = rows && count > kThreadRow;
  // Use enough chunks to fill a GPU, unless they would be too short.
  int64_t wanted =
      together ? kFullBlocks : kFullColumns * options.multiprocessors;
  int64_t least = together ? kLeastBlockPoints : kLeastThreadPoints;
  int64_t parts = std::max<int64_t>(
      std::min(wanted / std::max<int64_t>(keptPoints, 1), count / least), 1);
  chunkLength = std::max<int64_t>(llvm::divideCeil(rowCount(), parts), 1);
  int64_t inner = domain->loops.back().size;
  laneRows = together && inner % int64_t(lanes) == 0;
  if (laneRows && reduced.size() == 1)
    chunkLength = llvm::alignTo(chunkLength, lanes);
  chunks = std::max<int64_t>(llvm::divideCeil(rowCount(), chunkLength), 1);
  work = chunks;
  for (int64_t size : trips)
    work *= size;
  if (!rows)
    planColumns();
  std::string reason;
  if (!together)
    reason = rows        ? "a thread does a whole short row"
             : overLanes ? ""
                         : "a thread does a column";
  else if (!laneRows)
    reason = "rows of " + std::to_string(inner) + " elements are unaligned";
  if (together)
    threads = BlockNest::threadsFor(
        reduced.size() == 1 ? std::min(chunkLength, inner) : inner,
        laneRows ? lanes : 1);
  addLaunch(work, together ? threads : kBlockThreads, together, reason);
  if (!rows)
    code.bytesInFlight = work * bytesOfTile();
  if (chunks == 1)
    return success();
  if (code.workspaceBytes == 0)
    planScratch();
  if (chunks >= kWarp)
    combiners =
        std::clamp<int64_t>(llvm::bit_floor(uint64_t(chunks / kLeastCombined)),
                            kWarp, kMostCombiners);
  addLaunch(keptPoints, combiners > 1 ? combiners : kBlockThreads,
            combiners > 1, "a thread combines the chunks of a point");
  return success();
}

/// Returns the bytes that a thread loads before it uses one, of operands that
/// are not much smaller than the reduced tensor.
int64_t ReductionKernel::bytesOfTile() {
  return bytesOfPoint(kernel.getArgumentTypes(), keptPoints * count) *
         rowsInFlight() * (overLanes ? int64_t(lanes) : 1);
}

std::unique_ptr<PointNest> ReductionKernel::makeNest(Emitter &e,
                                                     ArrayRef<AffineExpr> at) {
  if (together)
    return std::make_unique<BlockNest>(e, *domain, reduced, at, threads,
                                       laneRows);
  auto nest =
      std::make_unique<Nest>(e, *domain, reduced, rows && overLanes, at);
  if (!overLanes)
    nest->setScalar();
  return nest;
}

LogicalResult ReductionKernel::emitPartials(ModuleOp into) {
  auto partial = [&](Emitter &e, Value t) { emitPartial(e, t); };
  return together ? emitLaunch(into, 0, partial)
                  : emitThreads(into, 0, work, partial);
}

LogicalResult ReductionKernel::emitBlocks(ModuleOp into) {
  if (failed(emitPartials(into)))
    return failure();
  if (chunks == 1)
    return success();
  auto combine = [&](Emitter &e, Value t) { emitCombine(e, t); };
  return combiners > 1 ? emitLaunch(into, 1, combine)
                       : emitThreads(into, 1, keptPoints, combine);
}

LogicalResult ReductionKernel::emitRanges(ModuleOp into) {
  auto loopOver = [](Emitter &e, function_ref<void(Value)> body) {
    e.forLoop(e.begin, e.end, 1, {}, [&](Value t, ValueRange) {
      body(t);
      return SmallVector<Value>();
    });
  };
  if (failed(emitStage(into, 0, [&](Emitter &e) {
        if (wide) {
          cache.emit(e);
          for (const Item &item : items)
            for (int i = 0; i < 4; ++i)
              buffers.push_back((i == 3 ? hasBlocks() : i == 0 || item.moments)
                                    ? stackBuffer(e, item.reducer.type,
                                                  domain->loops.back().size)
                                    : Value());
        }
        loopOver(e, [&](Value t) {
          wide ? emitWidePartial(e, t) : emitPartial(e, t);
        });
      })))
    return failure();
  if (chunks == 1)
    return success();
  return emitStage(into, 1, [&](Emitter &e) {
    loopOver(e, [&](Value t) { emitCombine(e, t); });
  });
}

std::unique_ptr<GeneratedKernel>
codegen::makeReductionKernel(func::FuncOp kernel,
                             const CodegenOptions &options) {
  return std::make_unique<ReductionKernel>(kernel, options);
}
