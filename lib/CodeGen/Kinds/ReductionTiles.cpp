//===- ReductionTiles.cpp - many columns reduced in one pass --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Columns that do not fit registers have their sums in buffers. Tiles of rows
// are reduced first, then added to the buffers. If there are many tiles, a
// block of them is summed from zero and then added to the sum before it, so
// that chains of additions are short (see Nest.h). Time: once over the data,
// and over the buffers once for each tile and block.
//
//===----------------------------------------------------------------------===//
#include "ReductionKernel.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

/// Rows that are added in one pass over the columns. There are more of them for
/// few columns, since every vector of columns waits for its sums of the tile
/// before.
static constexpr int64_t kTileRows = 8, kNarrowTileRows = 32;
/// The most elements of a tile that is prefetched.
static constexpr int64_t kFetchedElements = 4096;
/// Additions in a row within a tile.
static constexpr int64_t kChain = 8;

int64_t ReductionKernel::tileRowsOf() {
  // With many concatenated operands, the code for a single row is large
  // already.
  int64_t tileRows = domain->loops.back().size > kColumnVectors * lanes
                         ? kTileRows
                         : kNarrowTileRows;
  kernel.walk([&](ConcatOp op) {
    if (op.getInputs().size() > 2)
      tileRows = 1;
  });
  return tileRows;
}

void ReductionKernel::overColumns(Emitter &e,
                                  function_ref<void(AffineExpr)> body) {
  int64_t columns = domain->loops.back().size;
  vectorLoop(e, e.index(0), e.index(columns), columns, body);
}

void ReductionKernel::startWide(Emitter &e, ArrayRef<AffineExpr> at,
                                Value low) {
  SmallVector<AffineExpr> point(at);
  point[reduced[0]] = e.addDim(low);
  overColumns(e, [&](AffineExpr lane) {
    point.back() = lane;
    for (auto [i, item] : llvm::enumerate(items)) {
      Type type = item.reducer.type;
      Value zero = e.constant(type, 0.0), start = item.reducer.identity(e);
      if (item.moments && count > 0)
        start = e.emit(item.input, domain->index(point));
      e.storeTo(buffers[4 * i], type, lane, start);
      for (unsigned state = 1; item.moments && state < 3; ++state)
        e.storeTo(buffers[4 * i + state], type, lane, zero);
      if (hasBlocks())
        e.storeTo(buffers[4 * i + 3], type, lane, item.reducer.identity(e));
    }
  });
}

void ReductionKernel::endBlock(Emitter &e) {
  overColumns(e, [&](AffineExpr lane) {
    for (auto [i, item] : llvm::enumerate(items)) {
      Type type = item.reducer.type;
      Value own = buffers[4 * i + blockState(item)], all = buffers[4 * i + 3];
      Value sum = e.loadFrom(own, type, lane);
      sum = item.reducer.combine(e, e.loadFrom(all, type, lane), sum);
      e.storeTo(all, type, lane, sum);
      e.storeTo(own, type, lane, item.reducer.identity(e));
    }
  });
}

/// A tile is read column by column, so that the machine sees as many streams as
/// there are rows. Meanwhile the tile after the next is prefetched in memory
/// order, line by line: at vector v of row k, its line v * rows + k. (The
/// machine itself prefetches long rows.)
void ReductionKernel::fetchTile(Emitter &e, AffineExpr row, AffineExpr lane,
                                int64_t k, int64_t rowCount) {
  int64_t columns = domain->loops.back().size;
  if (rowCount > 1 && rowCount * columns <= kFetchedElements)
    e.fetch =
        Emitter::Fetch{lane * (rowCount - 1) + (2 * rowCount - k) * columns +
                           k * int64_t(lanes),
                       row, columns};
}

void ReductionKernel::addRows(Emitter &e, ArrayRef<AffineExpr> at, Value low,
                              Value row, int64_t rowCount) {
  AffineExpr first = e.addDim(row);
  Value rowsSoFar = e.sub(e.add(row, e.index(rowCount)), low);
  SmallVector<Value> counts(items.size()), shares(items.size());
  for (auto [i, item] : llvm::enumerate(items))
    if (item.moments) {
      Type type = item.reducer.type;
      counts[i] = arith::SIToFPOp::create(e.b, type, rowsSoFar);
      shares[i] = e.div(e.constant(type, 1.0), counts[i]);
    }
  overColumns(e, [&](AffineExpr lane) {
    SmallVector<AffineExpr> point(at);
    point.back() = lane;
    // Sum the tile first: shorter chains of additions round less.
    SmallVector<SmallVector<Value>> sums(items.size()), squares(items.size());
    SmallVector<Value> references(items.size());
    for (auto [i, item] : llvm::enumerate(items))
      if (item.moments)
        references[i] = e.loadFrom(buffers[4 * i], item.reducer.type, lane);
    for (int64_t k = 0; k < rowCount; ++k) {
      point[reduced[0]] = first + k;
      fetchTile(e, first, lane, k, rowCount);
      SmallVector<AffineExpr> index = domain->index(point);
      for (auto [i, item] : llvm::enumerate(items)) {
        Value next = e.emit(item.input, index);
        if (item.moments)
          next = e.sub(next, references[i]);
        if (k % kChain == 0) {
          sums[i].push_back(next);
          squares[i].push_back(item.moments ? e.mul(next, next) : Value());
          continue;
        }
        sums[i].back() = item.reducer.combine(e, sums[i].back(), next);
        if (item.moments)
          squares[i].back() = e.fma(next, next, squares[i].back());
      }
    }
    e.fetch.reset();
    for (auto [i, item] : llvm::enumerate(items)) {
      Type type = item.reducer.type;
      Value sum = pairwise(e, item.reducer, sums[i]);
      if (item.moments) {
        Value square = pairwise(e, item.reducer, squares[i]);
        Value *own = &buffers[4 * i];
        sum = e.add(e.loadFrom(own[1], type, lane), sum);
        square = e.add(e.loadFrom(own[2], type, lane), square);
        // With N numbers so far, s the sum and q the sum of squares of x - r:
        // if r becomes r + h, they become s - N h and q - h (s + (s - N h)),
        // whatever h is.
        Value moved = e.fma(sum, shares[i], references[i]);
        Value by = e.neg(e.sub(moved, references[i]));
        Value rest = e.fma(by, counts[i], sum);
        e.storeTo(own[0], type, lane, moved);
        e.storeTo(own[1], type, lane, rest);
        e.storeTo(own[2], type, lane, e.fma(by, e.add(sum, rest), square));
        continue;
      }
      sum =
          item.reducer.combine(e, e.loadFrom(buffers[4 * i], type, lane), sum);
      e.storeTo(buffers[4 * i], type, lane, sum);
    }
  });
}

void ReductionKernel::emitWidePartial(Emitter &e, Value t) {
  SmallVector<int64_t> sizes(trips);
  sizes.back() = chunks; // instead of column blocks, of which there is one
  SmallVector<Value> parts = split(e, t, sizes);
  Value chunk = parts.back(), low = e.index(0),
        high = e.index(domain->loops[reduced[0]].size);
  SmallVector<AffineExpr> at(domain->loops.size(), e.c(0));
  for (auto [i, l] : llvm::enumerate(ArrayRef(kept).drop_back()))
    at[l] = e.addDim(parts[i]);
  if (chunks > 1)
    chunkRange(e, chunk, low, high);

  startWide(e, at, low);
  int64_t tileRows = tileRowsOf();
  Value tiles = e.sub(high, low), tile = e.index(tileRows);
  tiles = e.add(low, e.mul(arith::DivUIOp::create(e.b, tiles, tile), tile));
  auto loop = [&](Value from, Value to, int64_t step) {
    e.forLoop(from, to, step, {}, [&](Value row, ValueRange) {
      addRows(e, at, low, row, step);
      return SmallVector<Value>();
    });
  };
  if (hasBlocks()) {
    int64_t block = kBlockTiles * tileRows;
    e.forLoop(low, tiles, block, {}, [&](Value from, ValueRange) {
      loop(from, e.minimum(e.add(from, e.index(block)), tiles), tileRows);
      endBlock(e);
      return SmallVector<Value>();
    });
  } else {
    loop(low, tiles, tileRows);
  }
  if (tileRows > 1)
    loop(tiles, high, 1);
  if (hasBlocks())
    endBlock(e);

  overColumns(e, [&](AffineExpr lane) {
    SmallVector<AffineExpr> place = at;
    place.back() = lane;
    for (auto [i, item] : llvm::enumerate(items)) {
      Type type = item.reducer.type;
      // The sums of endBlock.
      auto bufferOf = [&](int state) {
        return buffers[4 * i +
                       (hasBlocks() && state == blockState(item) ? 3 : state)];
      };
      SmallVector<Value> states{e.loadFrom(bufferOf(0), type, lane)};
      if (item.moments) {
        Value rest = e.loadFrom(buffers[4 * i + 1], type, lane);
        Value more = e.div(rest, chunkCount(e, chunk, type));
        states.front() = e.add(states.front(), more);
        states.push_back(
            e.fma(e.neg(more), rest, e.loadFrom(bufferOf(2), type, lane)));
      }
      writeStates(e, item, states, chunk, place);
    }
  });
}
