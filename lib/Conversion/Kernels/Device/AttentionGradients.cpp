//===- AttentionGradients.cpp - gradients of attention on a GPU -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Device/AttentionTile.h"
#include "Emit/MathFunctions.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

void AttentionTile::emitDot(Value item) {
  SmallVector<Value> at = split(e, item, {a.batch, a.heads, a.queries});
  Head h = headOf(at[0], at[1]);
  TensorRows o = queriesOf(h, in.o, a.o, a.width),
             grad = queriesOf(h, in.grad, a.grad, a.width);
  unsigned lanes = std::min(o.lanes, grad.lanes);
  Type f32 = e.b.getF32Type();
  Type type = lanes == 1 ? f32 : VectorType::get({int64_t(lanes)}, f32);
  Value zero = number(0);
  if (lanes > 1)
    zero = vector::BroadcastOp::create(e.b, type, zero);
  Value sum =
      e.forLoop(e.index(0), e.index(a.width), lanes, zero,
                [&](Value column, ValueRange before) {
                  auto read = [&](const TensorRows &x) {
                    return formed(e,
                                  x.operand.load(e, x.at(e, at[2], column),
                                                 lanes, /*inside=*/{}),
                                  {f32});
                  };
                  Value x = read(o), y = read(grad);
                  return SmallVector<Value>{
                      math::FmaOp::create(e.b, x, y, before[0])};
                })
          .front();
  if (lanes > 1) {
    Value all;
    for (unsigned i = 0; i < lanes; ++i) {
      Value one = vector::ExtractOp::create(e.b, sum, int64_t(i));
      all = all ? e.add(all, one) : one;
    }
    sum = all;
  }
  LLVM::StoreOp::create(e.b, sum, address(e.scratch, item), 4);
}

/// A row without keys has probabilities of zero, and so has one that does not
/// exist.
AttentionTile::RowNumbers AttentionTile::numbersOf(const Head &h, Value query,
                                                   Value inside) {
  Value row = rowNumber(h, query), pair = e.mul(row, e.index(2));
  Value base = e.argument(in.lse.number);
  RowNumbers numbers{load(base, pair, inside),
                     load(base, e.add(pair, e.index(1)), inside),
                     load(e.scratch, row, inside)};
  float infinity = std::numeric_limits<float>::infinity();
  Value isEmpty =
      e.cmpf(arith::CmpFPredicate::OEQ, numbers.lse, number(-infinity));
  numbers.lse = e.select(isEmpty, number(infinity), numbers.lse);
  if (inside)
    numbers.lse = e.select(inside, numbers.lse, number(infinity));
  return numbers;
}

AttentionTile::Weight AttentionTile::weight(const Head &h, Value query,
                                            Value key, Value sum, Value grad,
                                            const RowNumbers &row) {
  Score s = score(h, query, key, sum);
  Value p = emitExpNonPositive(e, e.sub(e.sub(s.value, row.lse), row.lost));
  Value kept = p;
  if (a.hasDropout) {
    Value keep = keeps(h, query, key);
    kept = e.select(keep, p, number(0));
    grad = e.select(keep, e.mul(grad, number(keptFactor)), number(0));
  }
  Value gradient = e.mul(p, e.sub(grad, row.dot));
  // A fill that is finite may have a probability; it has no gradient.
  if (a.hasMask) {
    Value isNan = e.cmpf(arith::CmpFPredicate::UNO, p, p);
    gradient = e.select(e.ori(s.open, isNan), gradient, number(0));
  }
  return {kept, gradient};
}

static void clearSums(Emitter &e, TileProducts &tile, Value sums,
                      int64_t columns) {
  for (int64_t i = 0; i < TileProducts::sumsOfResult(columns); ++i)
    tile.write(sums, i, e.constant(e.b.getF32Type(), 0.0));
}

void AttentionTile::emitQueryGradient(Value block) {
  int64_t tiles = llvm::divideCeil(a.queries, kTile);
  SmallVector<Value> at = split(e, block, {a.batch, a.heads, tiles});
  TileProducts tile(e, form, in.q.element);
  Head h = headOf(at[0], at[1]);
  Value row = e.mul(a.causal ? e.sub(e.index(tiles - 1), at[2]) : at[2],
                    e.index(kTile));
  Value scores = tile.numbers(TileProducts::kSums),
        grads = tile.numbers(TileProducts::kSums),
        result = tile.numbers(TileProducts::sumsOfResult(a.depth)),
        ofRows = tile.numbers(3 * tile.rowsOfThread());
  e.forThreads(TileProducts::kThreads, [&](Value thread) {
    clearSums(e, tile, result, a.depth);
    for (auto [r, own] : llvm::enumerate(tile.rowsOf(thread))) {
      Value query = e.add(row, own);
      RowNumbers n = numbersOf(h, query, belowUnlessWhole(query, a.queries));
      for (auto [i, x] : llvm::enumerate(ArrayRef<Value>{n.lse, n.lost, n.dot}))
        tile.write(ofRows, int64_t(3 * r + i), x);
    }
  });
  auto weigh = [&](Value thread, Value key) {
    SmallVector<Value> columns = tile.columnsOf(thread, /*ofResult=*/false);
    SmallVector<Value> weights(TileProducts::kSums, Value());
    for (auto [index, own] : llvm::enumerate(tile.rowsOf(thread))) {
      int64_t r = int64_t(index);
      RowNumbers n{tile.read(ofRows, 3 * r), tile.read(ofRows, 3 * r + 1),
                   tile.read(ofRows, 3 * r + 2)};
      for (auto [c, column] : llvm::enumerate(columns)) {
        int64_t sum = tile.sumAt(r, int64_t(c));
        weights[size_t(sum)] =
            weight(h, e.add(row, own), e.add(key, column),
                   tile.read(scores, sum), tile.read(grads, sum), n)
                .gradient;
      }
    }
    tile.storeTile(thread, weights);
  };
  TensorRows q = queriesOf(h, in.q, a.q, a.depth),
             k = keysOf(h, in.k, a.k, a.depth),
             v = keysOf(h, in.v, a.v, a.width),
             grad = queriesOf(h, in.grad, a.grad, a.width);
  tile.run(keyBlocksOf(row), [&](Value number) {
    Value key = e.mul(number, e.index(kTile));
    TileProducts::Steps steps;
    tile.addScores(steps, q, row, k, key, scores);
    tile.addScores(steps, grad, row, v, key, grads);
    steps.back().body =
        [&weigh, key, product = steps.back().body](Value thread, Value buffer) {
          product(thread, buffer);
          weigh(thread, key);
        };
    tile.addResults(steps, k, key, result);
    return steps;
  });
  e.forThreads(TileProducts::kThreads, [&](Value thread) {
    tile.storeResults(
        thread, queriesOf(h, in.qGrad, a.qGrad, a.depth), row, result,
        SmallVector<Value>(tile.rowsOfThread(), number(scale)));
  });
}

void AttentionTile::emitKeyGradients(Value block) {
  int64_t tiles = llvm::divideCeil(a.keys, kTile),
          rowTiles = llvm::divideCeil(a.queries, kTile),
          members = a.heads / a.keyHeads;
  SmallVector<Value> at = split(e, block, {a.batch, a.keyHeads, tiles});
  TileProducts tile(e, form, in.q.element);
  Value key = e.mul(at[2], e.index(kTile));
  Value scores = tile.numbers(TileProducts::kSums),
        grads = tile.numbers(TileProducts::kSums),
        ofKeys = tile.numbers(TileProducts::sumsOfResult(a.depth)),
        ofValues = tile.numbers(TileProducts::sumsOfResult(a.width));
  e.forThreads(TileProducts::kThreads, [&](Value) {
    clearSums(e, tile, ofKeys, a.depth);
    clearSums(e, tile, ofValues, a.width);
  });
  auto weigh = [&](const Head &h, Value thread, Value row) {
    SmallVector<Value> rows = tile.rowsOf(thread);
    SmallVector<Value> weights(TileProducts::kSums, Value());
    for (auto [c, column] :
         llvm::enumerate(tile.columnsOf(thread, /*ofResult=*/false))) {
      Value query = e.add(row, column);
      RowNumbers n = numbersOf(h, query, belowUnlessWhole(query, a.queries));
      for (auto [r, own] : llvm::enumerate(rows)) {
        int64_t sum = tile.sumAt(int64_t(r), int64_t(c));
        Weight w = weight(h, query, e.add(key, own), tile.read(scores, sum),
                          tile.read(grads, sum), n);
        weights[size_t(sum)] = w.kept;
        tile.write(scores, sum, w.gradient);
      }
    }
    tile.storeTile(thread, weights);
  };
  // The first block of queries that read the first key.
  Value first = e.index(0);
  if (leavesOut()) {
    first = e.maximum(e.sub(key, e.index(a.offset)), first);
    first = arith::DivUIOp::create(e.b, first, e.index(kTile));
  }
  Value count = e.maximum(e.sub(e.index(rowTiles), first), e.index(0));
  Head own{at[0], e.mul(at[1], e.index(members)), at[1]};
  TensorRows k = keysOf(own, in.k, a.k, a.depth),
             v = keysOf(own, in.v, a.v, a.width);
  auto stepsOf = [&](Value number) {
    Head h = own;
    if (members > 1) {
      Value divisor = e.maximum(count, e.index(1));
      h.head = e.add(h.head, arith::DivUIOp::create(e.b, number, divisor));
      number = arith::RemUIOp::create(e.b, number, divisor);
    }
    Value row = e.minimum(e.add(first, number), e.index(rowTiles - 1));
    row = e.mul(row, e.index(kTile));
    TensorRows q = queriesOf(h, in.q, a.q, a.depth),
               grad = queriesOf(h, in.grad, a.grad, a.width);
    TileProducts::Steps steps;
    tile.addScores(steps, k, key, q, row, scores);
    tile.addScores(steps, v, key, grad, row, grads);
    steps.back().body = [&weigh, h, row, product = steps.back().body](
                            Value thread, Value buffer) {
      product(thread, buffer);
      weigh(h, thread, row);
    };
    tile.addResults(steps, grad, row, ofValues);
    steps.push_back({{}, [&tile, scores](Value thread, Value) {
                       SmallVector<Value> weights;
                       for (int64_t i = 0; i < TileProducts::kSums; ++i)
                         weights.push_back(tile.read(scores, i));
                       tile.storeTile(thread, weights);
                     }});
    tile.addResults(steps, q, row, ofKeys);
    return steps;
  };
  tile.run(e.mul(count, e.index(members)), stepsOf);
  e.forThreads(TileProducts::kThreads, [&](Value thread) {
    auto put = [&](const Operand &x, const int64_t (&strides)[3],
                   int64_t columns, Value sums, float factor) {
      tile.storeResults(
          thread, keysOf(own, x, strides, columns), key, sums,
          SmallVector<Value>(tile.rowsOfThread(), number(factor)));
    };
    put(in.kGrad, a.kGrad, a.depth, ofKeys, scale);
    put(in.vGrad, a.vGrad, a.width, ofValues, keptFactor);
  });
}
