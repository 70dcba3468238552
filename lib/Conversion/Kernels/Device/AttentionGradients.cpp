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
void AttentionTile::copyNumbers(const Head &h, Value thread, Value row,
                                Value numbers) {
  e.ifThen(
      below(thread, kTile),
      [&] {
        Value query = e.add(row, thread);
        Value inside = belowUnlessWhole(query, a.queries);
        Value number = rowNumber(h, query), pair = e.mul(number, e.index(2));
        Value from = e.argument(in.lse.number);
        Value lse = load(from, pair, inside),
              infinity = this->number(std::numeric_limits<float>::infinity());
        Value isEmpty = e.cmpf(arith::CmpFPredicate::OEQ, lse, e.neg(infinity));
        lse = e.select(isEmpty, infinity, lse);
        if (inside)
          lse = e.select(inside, lse, infinity);
        Value lost = load(from, e.add(pair, e.index(1)), inside),
              dot = load(e.scratch, number, inside);
        Value first = e.mul(thread, e.index(4));
        first = arith::IndexCastOp::create(e.b, e.b.getIndexType(), first);
        Value all = vector::FromElementsOp::create(
            e.b, VectorType::get({4}, lse.getType()),
            ValueRange{lse, lost, dot, dot});
        vector::StoreOp::create(e.b, all, numbers, first);
        return SmallVector<Value>();
      },
      nullptr);
}

AttentionTile::Weight AttentionTile::weight(const Head &h, Place query,
                                            Place key, Value sum, Value grad,
                                            Value numbers) {
  Score s = score(h, query, key, sum);
  Value at = e.mul(query.own, e.index(4));
  at = arith::IndexCastOp::create(e.b, e.b.getIndexType(), at);
  Value row = vector::LoadOp::create(
      e.b, VectorType::get({4}, e.b.getF32Type()), numbers, at);
  auto take = [&](int64_t i) -> Value {
    return vector::ExtractOp::create(e.b, row, i);
  };
  Value p = emitExpNonPositive(e, e.sub(e.sub(s.value, take(0)), take(1)));
  Value kept = p;
  if (a.hasDropout) {
    Value keep = keeps(h, query, key);
    kept = e.select(keep, p, number(0));
    grad = e.select(keep, e.mul(grad, number(keptFactor)), number(0));
  }
  Value gradient = e.mul(p, e.sub(grad, take(2)));
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
        numbers = e.sharedBuffer(e.b.getF32Type(), 4 * kTile);
  e.forThreads(TileProducts::kThreads, [&](Value thread) {
    clearSums(e, tile, result, a.depth);
    copyNumbers(h, thread, row, numbers);
  });
  auto weigh = [&](Value thread, Value key) {
    SmallVector<Value> columns = tile.columnsOf(thread, /*ofResult=*/false);
    SmallVector<Value> weights(TileProducts::kSums, Value());
    for (auto [r, own] : llvm::enumerate(tile.rowsOf(thread)))
      for (auto [c, column] : llvm::enumerate(columns)) {
        int64_t sum = tile.sumAt(int64_t(r), int64_t(c));
        weights[size_t(sum)] =
            weight(h, {row, own}, {key, column}, tile.read(scores, sum),
                   tile.read(grads, sum), numbers)
                .gradient;
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
    tile.storeResults(thread, queriesOf(h, in.qGrad, a.qGrad, a.depth), row,
                      result,
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
        ofValues = tile.numbers(TileProducts::sumsOfResult(a.width)),
        numbers = e.sharedBuffer(e.b.getF32Type(), 4 * kTile);
  e.forThreads(TileProducts::kThreads, [&](Value) {
    clearSums(e, tile, ofKeys, a.depth);
    clearSums(e, tile, ofValues, a.width);
  });
  auto weigh = [&](const Head &h, Value thread, Value row) {
    SmallVector<Value> rows = tile.rowsOf(thread);
    SmallVector<Value> weights(TileProducts::kSums, Value());
    for (auto [c, column] :
         llvm::enumerate(tile.columnsOf(thread, /*ofResult=*/false))) {
      for (auto [r, own] : llvm::enumerate(rows)) {
        int64_t sum = tile.sumAt(int64_t(r), int64_t(c));
        Weight w = weight(h, {row, column}, {key, own}, tile.read(scores, sum),
                          tile.read(grads, sum), numbers);
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
    steps.front().body = [this, h, row, numbers, product = steps.front().body](
                             Value thread, Value buffer) {
      copyNumbers(h, thread, row, numbers);
      product(thread, buffer);
    };
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
