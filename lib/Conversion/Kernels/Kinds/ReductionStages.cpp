//===- ReductionStages.cpp - code of reduction kernels' stages ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stage 0 reduces a chunk (emitPartial in registers, emitWidePartial through a
// buffer of all columns); stage 1 combines chunks in order (emitCombine).
//
//===----------------------------------------------------------------------===//
#include "Kinds/ReductionKernel.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;
using codegen::Index;

/// Rows that are added in one pass over the columns.
static constexpr int64_t kTileRows = 8;

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

void ReductionKernel::wideFold(
    Emitter &e, ArrayRef<AffineExpr> at, Value low, Value high,
    ArrayRef<const Item *> folded, ArrayRef<Value> sums,
    function_ref<Value(const Item &, size_t, Index, AffineExpr)> element) {
  int64_t columns = domain->loops.back().size;
  auto overColumns = [&](function_ref<void(AffineExpr)> body) {
    vectorLoop(e, e.index(0), e.index(columns), columns, body);
  };
  auto rowsFrom = [&](AffineExpr row, int64_t count) {
    overColumns([&](AffineExpr lane) {
      SmallVector<AffineExpr> point(at);
      point.back() = lane;
      // Sum the tile first: shorter chains of additions round less.
      SmallVector<Value> tile(folded.size());
      for (int64_t k = 0; k < count; ++k) {
        point[reduced[0]] = row + k;
        SmallVector<AffineExpr> index = domain->index(point);
        for (auto [i, item] : llvm::enumerate(folded)) {
          Value next = element(*item, i, index, lane);
          tile[i] = tile[i] ? item->reducer.combine(e, tile[i], next) : next;
        }
      }
      for (auto [i, item] : llvm::enumerate(folded)) {
        Type type = item->reducer.type;
        Value sum = e.loadFrom(sums[i], type, lane);
        e.storeTo(sums[i], type, lane, item->reducer.combine(e, sum, tile[i]));
      }
    });
  };
  for (auto [i, item] : llvm::enumerate(folded))
    overColumns([&](AffineExpr lane) {
      e.storeTo(sums[i], item->reducer.type, lane, item->reducer.identity(e));
    });
  // With many concatenated operands, the code for a single row is large
  // already.
  int64_t tileRows = kTileRows;
  kernel.walk([&](ConcatOp op) {
    if (op.getInputs().size() > 2)
      tileRows = 1;
  });
  Value tiles = e.sub(high, low), tile = e.index(tileRows);
  tiles = e.add(low, e.mul(arith::DivUIOp::create(e.b, tiles, tile), tile));
  auto loop = [&](Value from, Value to, int64_t step) {
    e.forLoop(from, to, step, {}, [&](Value row, ValueRange) {
      rowsFrom(e.addDim(row), step);
      return SmallVector<Value>();
    });
  };
  loop(low, tiles, tileRows);
  if (tileRows > 1)
    loop(tiles, high, 1);
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

  SmallVector<const Item *> all, withMoments;
  SmallVector<Value> sums, squares, means;
  for (auto [i, item] : llvm::enumerate(items)) {
    all.push_back(&item);
    sums.push_back(buffers[2 * i]);
    if (!item.moments)
      continue;
    withMoments.push_back(&item);
    means.push_back(buffers[2 * i]);
    squares.push_back(buffers[2 * i + 1]);
  }
  wideFold(e, at, low, high, all, sums,
           [&](const Item &item, size_t, Index index, AffineExpr) {
             return e.emit(item.input, index);
           });
  int64_t columns = domain->loops.back().size;
  auto overColumns = [&](function_ref<void(AffineExpr)> body) {
    vectorLoop(e, e.index(0), e.index(columns), columns, body);
  };
  for (auto [i, item] : llvm::enumerate(withMoments)) {
    Type type = item->reducer.type;
    Value count = chunkCount(e, chunk, type);
    overColumns([&](AffineExpr lane) {
      e.storeTo(means[i], type, lane,
                e.div(e.loadFrom(means[i], type, lane), count));
    });
  }
  if (!withMoments.empty())
    wideFold(e, at, low, high, withMoments, squares,
             [&](const Item &item, size_t i, Index index, AffineExpr lane) {
               Value mean = e.loadFrom(means[i], item.reducer.type, lane);
               Value d = e.sub(e.emit(item.input, index), mean);
               return e.mul(d, d);
             });
  overColumns([&](AffineExpr lane) {
    SmallVector<AffineExpr> place = at;
    place.back() = lane;
    for (auto [i, item] : llvm::enumerate(items)) {
      SmallVector<Value> states;
      for (int s = 0; s < (item.moments ? 2 : 1); ++s)
        states.push_back(
            e.loadFrom(buffers[2 * i + s], item.reducer.type, lane));
      writeStates(e, item, states, chunk, place);
    }
  });
}

void ReductionKernel::emitCombine(Emitter &e, Value t) {
  Value start = overLanes ? e.mul(t, e.index(lanes)) : t;
  AffineExpr number = e.addDim(start, /*lane=*/overLanes);
  auto widened = [&](Value v) { return overLanes ? e.splat(v) : v; };
  auto loadState = [&](const Item &item, unsigned state, AffineExpr chunk) {
    return e.loadFrom(addressAt(e, item.scratch[state]), item.reducer.type,
                      chunk * keptPoints + number);
  };
  // Folds `element` of all chunks.
  auto fold = [&](const Reducer &reducer,
                  function_ref<Value(Value, AffineExpr)> element) {
    Value init = widened(reducer.identity(e));
    return e
        .forLoop(e.index(0), e.index(chunks), 1, init,
                 [&](Value iv, ValueRange sum) {
                   AffineExpr chunk = e.addDim(iv);
                   return SmallVector<Value>{
                       widened(reducer.combine(e, sum[0], element(iv, chunk)))};
                 })
        .front();
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
        states.push_back(fold(item.reducer, [&](Value, AffineExpr chunk) {
          return loadState(item, 0, chunk);
        }));
      } else {
        Value sum = fold(item.reducer, [&](Value iv, AffineExpr chunk) {
          return e.mul(loadState(item, 0, chunk), chunkCount(e, iv, type));
        });
        Value mean = e.div(sum, e.constant(type, double(count)));
        Value squares = fold(item.reducer, [&](Value iv, AffineExpr chunk) {
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
  if (overLanes && keptPoints % lanes)
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
