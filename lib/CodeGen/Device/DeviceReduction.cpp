//===- DeviceReduction.cpp - reductions on a GPU --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "BlockNest.h"
#include "Kinds/ReductionKernel.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

/// Rows that a thread loads before it uses one.
static constexpr int64_t kRowsInFlight = 8;

/// Lets a thread take 128 registers. Otherwise ptxas takes half as many to have
/// more threads, and then waits for some loads before it issues the others.
static void letLoadsFly(Emitter &e) {
  e.stage->setAttr("ckopt.gpu.resident", e.b.getI32IntegerAttr(2));
}

/// Gives a thread as many columns as 16 bytes hold, if all its loads and stores
/// then are vectors. Chunks, and with them the order of sums, stay the same.
void ReductionKernel::planColumns() {
  int64_t columns = domain->loops.back().size;
  if (lanes == 1 || columns == 0 || columns % int64_t(lanes))
    return;
  overLanes = true;
  trips.back() = columns / int64_t(lanes);
  work /= int64_t(lanes);
  if (chunks > 1)
    planScratch();
  addLaunch(work, kBlockThreads, /*together=*/false);
  OwningOpRef<ModuleOp> probe = ModuleOp::create(kernel.getLoc());
  if (failed(emitPartials(*probe)) || report.gathers) {
    overLanes = false;
    trips.back() = columns;
    work *= int64_t(lanes);
  }
  report = {};
  code.stages.clear();
}

SmallVector<AffineExpr> ReductionKernel::atRow(Emitter &e,
                                               ArrayRef<AffineExpr> at,
                                               Value row, AffineExpr first,
                                               int64_t k) {
  SmallVector<AffineExpr> own(at);
  if (reduced.size() == 1) {
    own[reduced[0]] = first + k;
    return own;
  }
  SmallVector<int64_t> sizes;
  for (unsigned l : reduced)
    sizes.push_back(domain->loops[l].size);
  SmallVector<Value> parts = split(e, e.add(row, e.index(k)), sizes);
  for (auto [l, part] : llvm::zip_equal(reduced, parts))
    own[l] = e.addDim(part);
  return own;
}

/// Reduces a chunk of columns to means and sums of squares around them in one
/// pass: a tile of rows, all loaded before one is used, has its own mean and
/// squares around that, which Chan, Golub and LeVeque's formula merges into
/// those of the rows before it. So nothing cancels, whatever the mean.
void ReductionKernel::emitMoments(Emitter &e, ArrayRef<AffineExpr> point,
                                  Value chunk, AffineExpr lane,
                                  ArrayRef<Value> masks) {
  letLoadsFly(e);
  Value low, high;
  chunkRange(e, chunk, low, high);
  auto widened = [&](Value v) { return lane ? e.splat(v) : v; };
  size_t n = items.size();
  SmallVector<Value> states; // means, then squares
  for (int state = 0; state < 2; ++state)
    for (const Item &item : items)
      states.push_back(widened(e.constant(item.reducer.type, 0.0)));
  auto merge = [&](const Item &item, Value row, int64_t count, Value &mean,
                   Value &squares) {
    Type type = item.reducer.type;
    AffineExpr first = e.addDim(row);
    SmallVector<Value> values;
    for (int64_t k = 0; k < count; ++k)
      values.push_back(widened(
          e.emit(item.input, domain->index(atRow(e, point, row, first, k)))));
    Value own = pairwise(e, item.reducer, values), spread;
    own = e.mul(own, e.like(own, 1.0 / double(count)));
    for (Value v : values) {
      Value d = e.sub(v, own);
      spread = spread ? e.fma(d, d, spread) : e.mul(d, d);
    }
    Value before = arith::SIToFPOp::create(e.b, type, e.sub(row, low));
    Value rows = e.constant(type, double(count));
    Value share = e.div(rows, e.add(before, rows));
    Value apart = e.sub(own, mean);
    mean = e.fma(apart, widened(share), mean);
    squares = e.add(squares, e.fma(e.mul(apart, apart),
                                   widened(e.mul(before, share)), spread));
  };
  auto loop = [&](Value from, Value to, int64_t step) {
    states = e.forLoop(from, to, step, states, [&](Value row, ValueRange old) {
      SmallVector<Value> next(old);
      for (auto [i, item] : llvm::enumerate(items))
        merge(item, row, step, next[i], next[n + i]);
      return next;
    });
  };
  Value tile = e.index(kRowsInFlight), size = e.sub(high, low);
  Value tiles =
      e.add(low, e.mul(arith::DivUIOp::create(e.b, size, tile), tile));
  loop(low, tiles, kRowsInFlight);
  loop(tiles, high, 1);
  writePartials(e, ArrayRef(states).take_front(n),
                ArrayRef(states).drop_front(n), chunk, point, lane, masks);
}

/// Returns how many rows of columns a thread loads before it uses one. They are
/// fewer if registers are needed for elements of several tensors, for functions
/// whose polynomials are computed for all rows side by side, or for an index of
/// several loops.
int64_t ReductionKernel::rowsInFlight() {
  int64_t elements = 1;
  for (const Domain::Loop &loop : domain->loops)
    elements *= loop.size;
  int64_t large = llvm::count_if(kernel.getArgumentTypes(), [&](Type type) {
    return cast<RankedTensorType>(type).getNumElements() >= elements;
  });
  constexpr double kFunctionFlops = 8;
  bool hasFunction =
      llvm::any_of(kernel.front().without_terminator(), [](Operation &op) {
        auto kind = dyn_cast<KernelOpInterface>(op);
        return kind && kind.getFlopsPerElement() >= kFunctionFlops;
      });
  return large > 2 || reduced.size() > 1 || (large > 1 && hasFunction)
             ? kRowsInFlight / 2
             : kRowsInFlight;
}

/// Reduces a chunk of columns in tiles of rows, all loaded before one is used.
/// It adds pairs of rows, pairs of these, then the tiles in order, in blocks if
/// there are many.
void ReductionKernel::emitSums(Emitter &e, ArrayRef<AffineExpr> point,
                               Value chunk, AffineExpr lane,
                               ArrayRef<Value> masks) {
  letLoadsFly(e);
  Value low, high;
  chunkRange(e, chunk, low, high);
  auto widened = [&](Value v) { return lane ? e.splat(v) : v; };
  SmallVector<Reducer> reducers;
  SmallVector<Value> sums;
  bool rounds = false;
  for (const Item &item : items) {
    reducers.push_back(item.reducer);
    sums.push_back(widened(item.reducer.identity(e)));
    rounds |= item.reducer.rounds();
  }
  auto loop = [&](Value from, Value to, int64_t step, ArrayRef<Value> start) {
    return e.forLoop(from, to, step, start, [&](Value row, ValueRange before) {
      AffineExpr first = e.addDim(row);
      SmallVector<Value> next;
      for (auto [item, sum] : llvm::zip(items, before)) {
        SmallVector<Value> values;
        for (int64_t k = 0; k < step; ++k)
          values.push_back(widened(e.emit(
              item.input, domain->index(atRow(e, point, row, first, k)))));
        next.push_back(widened(item.reducer.combine(
            e, sum, widened(pairwise(e, item.reducer, values)))));
      }
      return next;
    });
  };
  int64_t step = rowsInFlight();
  Value tile = e.index(step), size = e.sub(high, low);
  Value tiles =
      e.add(low, e.mul(arith::DivUIOp::create(e.b, size, tile), tile));
  int64_t most = chunks > 1 ? chunkLength : rowCount();
  sums = emitBlocked(e, rounds ? blocksOf(most / step, 1) : ChainBlocks(), low,
                     tiles, step, std::nullopt, reducers, sums,
                     [&](Value from, Value to, ArrayRef<Value> start) {
                       return loop(from, to, step, start);
                     });
  sums = loop(tiles, high, 1, sums);
  writePartials(e, sums, {}, chunk, point, lane, masks);
}

Value ReductionKernel::foldChunks(
    Emitter &e, const Reducer &reducer,
    function_ref<Value(Value, AffineExpr)> element) {
  auto widened = [&](Value v) { return combinesLanes ? e.splat(v) : v; };
  Value identity = widened(reducer.identity(e)), all = e.index(chunks);
  auto some = [&](Value first, Value end, int64_t step, Value start) {
    return e.forLoop(first, end, step, start, [&](Value iv, ValueRange sum) {
      AffineExpr chunk = e.addDim(iv);
      return SmallVector<Value>{
          widened(reducer.combine(e, sum[0], element(iv, chunk)))};
    });
  };
  if (combiners == 1)
    return emitBlocked(e,
                       reducer.rounds() ? blocksOf(chunks, 1) : ChainBlocks(),
                       e.index(0), all, 1, chunks, reducer, identity,
                       [&](Value from, Value to, ArrayRef<Value> start) {
                         return some(from, to, 1, start.front());
                       })
        .front();
  Value buffer = e.sharedBuffer(reducer.type, combiners);
  e.forThreads(combiners, [&](Value thread) {
    Value sum = some(thread, all, combiners, identity).front();
    memref::StoreOp::create(e.b, sum, buffer, e.threadIndex());
  });
  return BlockNest::combineThreads(e, combiners, reducer, buffer).front();
}
