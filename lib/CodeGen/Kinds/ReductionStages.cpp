//===- ReductionStages.cpp - code of reduction kernels' stages ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stage 0 reduces a chunk (emitPartial in registers, emitWidePartial through a
// buffer of all columns: ReductionTiles.cpp); stage 1 combines chunks in order,
// or on a GPU by up to 256 threads: thread t of n chunks t, t + n, ..., then a
// tree (emitCombine).
//
//===----------------------------------------------------------------------===//
#include "ReductionKernel.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;
using codegen::Index;

void ReductionKernel::chunkRange(Emitter &e, Value chunk, Value &low,
                                 Value &high) {
  low = e.mul(chunk, e.index(chunkLength));
  high = e.minimum(e.add(low, e.index(chunkLength)), e.index(rowCount()));
}

Value ReductionKernel::chunkCount(Emitter &e, Value chunk, Type type) {
  if (chunks == 1)
    return e.constant(type, double(count));
  Value low, high;
  chunkRange(e, chunk, low, high);
  int64_t inside = count / rowCount();
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
    nest.setRange(low, high, chunkLength, rowCount() % chunkLength == 0);
  }
  if (isOnePass())
    return emitMoments(e, at, chunk, lane, masks);
  if (isTiled())
    return emitSums(e, at, chunk, lane, masks);

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
