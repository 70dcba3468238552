//===- ReductionStages.cpp - code of reduction kernels' stages ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stage 0 reduces a chunk (emitPartial in registers, emitWidePartial through a
// buffer of all columns); stage 1 combines chunks in order, or on a GPU by a
// warp: thread t chunks t, t + 32, ..., then a tree (emitCombine).
//
//===----------------------------------------------------------------------===//
#include "Kinds/ReductionKernel.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;
using codegen::Index;

/// Rows that are added in one pass over the columns; more of few columns, since
/// every vector of columns waits for its sums of the tile before.
static constexpr int64_t kTileRows = 8, kNarrowTileRows = 32;
/// The most elements of a tile that is brought near before it is read.
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

void ReductionKernel::chunkRange(Emitter &e, Value chunk, Value &low,
                                 Value &high) {
  int64_t outermost = domain->loops[reduced[0]].size;
  low = e.mul(chunk, e.index(chunkLength));
  high = e.minimum(e.add(low, e.index(chunkLength)), e.index(outermost));
}

Value ReductionKernel::chunkCount(Emitter &e, Value chunk, Type type) {
  if (chunks == 1)
    return e.constant(type, double(count));
  Value low, high;
  chunkRange(e, chunk, low, high);
  int64_t inside = count / domain->loops[reduced[0]].size;
  return arith::SIToFPOp::create(e.b, type,
                                 e.mul(e.sub(high, low), e.index(inside)));
}

AffineExpr ReductionKernel::keptNumber(ArrayRef<AffineExpr> at) {
  AffineExpr number = getAffineConstantExpr(0, ctx);
  for (unsigned l : kept)
    number = number * domain->loops[l].size + at[l];
  return number;
}

static Value addressAt(Emitter &e, int64_t bytes) {
  Type ptr = LLVM::LLVMPointerType::get(e.ctx);
  return LLVM::GEPOp::create(e.b, ptr, e.b.getI8Type(), e.scratch,
                             ArrayRef<LLVM::GEPArg>{e.index(bytes)});
}

void ReductionKernel::emitPartial(Emitter &e, Value t) {
  // Chunks are outside and column blocks inside, so that consecutive steps read
  // the same pages.
  SmallVector<int64_t> sizes(trips);
  sizes.insert(sizes.empty() ? sizes.end() : sizes.end() - 1, chunks);
  size_t chunkAt = trips.empty() ? 0 : trips.size() - 1;
  SmallVector<Value> parts = split(e, t, sizes);
  Value chunk = parts[chunkAt];
  parts.erase(parts.begin() + chunkAt);

  SmallVector<AffineExpr> at(domain->loops.size(), e.c(0));
  AffineExpr lane;
  SmallVector<Value> masks(vectors);
  for (auto [i, l] : llvm::enumerate(kept)) {
    if (rows || !overLanes || l + 1 != domain->loops.size()) {
      at[l] = e.addDim(parts[i]);
      continue;
    }
    int64_t width = vectors * lanes, columns = domain->loops[l].size;
    Value column = e.mul(parts[i], e.index(width));
    at[l] = lane = e.addDim(column, /*lane=*/true);
    for (int64_t u = 0; u < vectors; ++u)
      if (columns % width)
        masks[u] =
            maskBelow(e, e.add(column, e.index(u * lanes)), e.index(columns));
  }
  std::unique_ptr<PointNest> made = makeNest(e, at);
  PointNest &nest = *made;
  if (lane)
    static_cast<Nest &>(nest).setColumns(domain->loops.size() - 1, lane, masks,
                                         e.currentLevel());
  if (chunks > 1) {
    Value low, high;
    chunkRange(e, chunk, low, high);
    int64_t outermost = domain->loops[reduced[0]].size;
    std::optional<int64_t> known;
    if (outermost % chunkLength == 0)
      known = chunkLength;
    nest.setRange(low, high, known);
  }
  if (isOnePass())
    return emitMoments(e, at, chunk, lane, masks);

  SmallVector<Reducer> first, second;
  SmallVector<unsigned> momentItems;
  for (auto [i, item] : llvm::enumerate(items)) {
    first.push_back(item.reducer);
    if (item.moments) {
      second.push_back(item.reducer);
      momentItems.push_back(i);
    }
  }
  SmallVector<Value> sums = nest.reduce(first, [&](Index i, unsigned) {
    SmallVector<Value> elements;
    for (const Item &item : items)
      elements.push_back(e.emit(item.input, i));
    return elements;
  });
  unsigned groups = lane ? masks.size() : 1;
  size_t n = items.size(), m = momentItems.size();
  for (unsigned u = 0; u < groups; ++u)
    for (unsigned i : momentItems) {
      Value &sum = sums[u * n + i];
      sum = e.div(sum, chunkCount(e, chunk, items[i].reducer.type));
    }
  SmallVector<Value> squares;
  if (m)
    squares = nest.reduce(second, [&](Index index, unsigned u) {
      SmallVector<Value> elements;
      for (unsigned i : momentItems) {
        Value d = e.sub(e.emit(items[i].input, index), sums[u * n + i]);
        elements.push_back(e.mul(d, d));
      }
      return elements;
    });
  writePartials(e, sums, squares, chunk, at, lane, masks);
}

void ReductionKernel::writePartials(Emitter &e, ArrayRef<Value> sums,
                                    ArrayRef<Value> squares, Value chunk,
                                    ArrayRef<AffineExpr> at, AffineExpr lane,
                                    ArrayRef<Value> masks) {
  size_t n = items.size();
  size_t m =
      llvm::count_if(items, [](const Item &item) { return item.moments; });
  for (unsigned u = 0; u < sums.size() / n; ++u) {
    SmallVector<AffineExpr> place(at);
    if (lane)
      place[domain->loops.size() - 1] = lane + int64_t(u) * int64_t(lanes);
    auto write = [&] {
      size_t nextMoment = 0;
      for (auto [i, item] : llvm::enumerate(items)) {
        SmallVector<Value> states{sums[u * n + i]};
        if (item.moments)
          states.push_back(squares[u * m + nextMoment++]);
        writeStates(e, item, states, chunk, place);
      }
      return Value();
    };
    if (masks[u])
      e.withMask(masks[u], write);
    else
      write();
  }
}

void ReductionKernel::writeStates(Emitter &e, const Item &item,
                                  ArrayRef<Value> states, Value chunk,
                                  ArrayRef<AffineExpr> at) {
  if (chunks == 1)
    return finish(e, item, states, domain->index(at));
  AffineExpr offset = e.addDim(chunk) * keptPoints + keptNumber(at);
  for (auto [s, state] : llvm::enumerate(states))
    e.storeTo(addressAt(e, item.scratch[s]), item.reducer.type, offset, state);
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
      e.storeTo(buffers[3 * i], type, lane, start);
      for (unsigned state = 1; item.moments && state < 3; ++state)
        e.storeTo(buffers[3 * i + state], type, lane, zero);
    }
  });
}

/// A tile is read column by column, so that the machine sees as many streams as
/// there are rows. Meanwhile the tile after the next is asked for as it lies,
/// line by line: at vector v of row k, its line v * rows + k. (Long rows are
/// streams that the machine follows by itself.)
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
        references[i] = e.loadFrom(buffers[3 * i], item.reducer.type, lane);
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
        Value *own = &buffers[3 * i];
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
          item.reducer.combine(e, e.loadFrom(buffers[3 * i], type, lane), sum);
      e.storeTo(buffers[3 * i], type, lane, sum);
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
  loop(low, tiles, tileRows);
  if (tileRows > 1)
    loop(tiles, high, 1);

  overColumns(e, [&](AffineExpr lane) {
    SmallVector<AffineExpr> place = at;
    place.back() = lane;
    for (auto [i, item] : llvm::enumerate(items)) {
      Type type = item.reducer.type;
      SmallVector<Value> states{e.loadFrom(buffers[3 * i], type, lane)};
      if (item.moments) {
        Value rest = e.loadFrom(buffers[3 * i + 1], type, lane);
        Value more = e.div(rest, chunkCount(e, chunk, type));
        states.front() = e.add(states.front(), more);
        states.push_back(e.fma(e.neg(more), rest,
                               e.loadFrom(buffers[3 * i + 2], type, lane)));
      }
      writeStates(e, item, states, chunk, place);
    }
  });
}

Value codegen::pairwise(Emitter &e, const Reducer &reducer,
                        SmallVector<Value> values) {
  for (; values.size() > 1;) {
    SmallVector<Value> next;
    for (size_t i = 0; i + 1 < values.size(); i += 2)
      next.push_back(reducer.combine(e, values[i], values[i + 1]));
    if (values.size() % 2)
      next.push_back(values.back());
    values = next;
  }
  return values.front();
}

void ReductionKernel::emitCombine(Emitter &e, Value t) {
  Value start = combinesLanes ? e.mul(t, e.index(lanes)) : t;
  AffineExpr number = e.addDim(start, /*lane=*/combinesLanes);
  auto loadState = [&](const Item &item, unsigned state, AffineExpr chunk) {
    return e.loadFrom(addressAt(e, item.scratch[state]), item.reducer.type,
                      chunk * keptPoints + number);
  };
  auto all = [&] {
    SmallVector<AffineExpr> at(domain->loops.size(), e.c(0));
    AffineExpr rest = number;
    for (size_t i = kept.size(); i-- > 0;) {
      int64_t size = domain->loops[kept[i]].size;
      at[kept[i]] = i == 0 ? rest : rest % size;
      rest = rest.floorDiv(size);
    }
    for (const Item &item : items) {
      SmallVector<Value> states;
      Type type = item.reducer.type;
      if (!item.moments) {
        states.push_back(
            foldChunks(e, item.reducer, [&](Value, AffineExpr chunk) {
              return loadState(item, 0, chunk);
            }));
      } else {
        Value sum =
            foldChunks(e, item.reducer, [&](Value iv, AffineExpr chunk) {
              return e.mul(loadState(item, 0, chunk), chunkCount(e, iv, type));
            });
        Value mean = e.div(sum, e.constant(type, double(count)));
        Value squares =
            foldChunks(e, item.reducer, [&](Value iv, AffineExpr chunk) {
              Value d = e.sub(loadState(item, 0, chunk), mean);
              Value between = e.mul(e.mul(d, d), chunkCount(e, iv, type));
              return e.add(loadState(item, 1, chunk), between);
            });
        states.append({mean, squares});
      }
      finish(e, item, states, domain->index(at));
    }
    return Value();
  };
  if (combinesLanes && keptPoints % lanes)
    e.withMask(maskBelow(e, start, e.index(keptPoints)), all);
  else
    all();
}

void ReductionKernel::finish(Emitter &e, const Item &item,
                             ArrayRef<Value> states, Index point) {
  SmallVector<Value> values(states);
  if (item.moments)
    values[1] = e.div(values[1], e.like(values[1], double(count)));
  else if (item.mean && Emitter::isFloat(values[0]))
    values[0] = e.div(values[0], e.like(values[0], double(count)));
  else if (item.mean) // integers are divided toward zero
    values[0] = arith::DivSIOp::create(
        e.b, values[0], e.like(values[0], double(std::max<int64_t>(count, 1))));
  bool keepdims = false;
  if (auto reduce = dyn_cast<ReduceOp>(item.op))
    keepdims = reduce.getKeepdims();
  SmallVector<AffineExpr> index;
  for (auto [d, position] : llvm::enumerate(point)) {
    if (!llvm::is_contained(axes, int64_t(d)))
      index.push_back(position);
    else if (keepdims)
      index.push_back(e.c(0));
  }
  for (auto [r, value] : llvm::enumerate(terminator.getOperands()))
    if (value.getDefiningOp() == item.op)
      e.store(r, cast<RankedTensorType>(value.getType()), index,
              values[cast<OpResult>(value).getResultNumber()]);
}
