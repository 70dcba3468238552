//===- AttentionGradients.cpp - gradients of attention on a GPU -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "AttentionTile.h"
#include "Emit/MathFunctions.h"
#include "Kinds/GeneratedKernel.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

/// Returns the thread's part of a row's dot: vectors `first`, first + threads,
/// ...
Value AttentionTile::emitDot(Value item, Value first, int64_t threads) {
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
      e.forLoop(e.mul(first, e.index(lanes)), e.index(a.width),
                threads * int64_t(lanes), zero,
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
  if (lanes == 1)
    return sum;
  Value all;
  for (unsigned i = 0; i < lanes; ++i) {
    Value one = vector::ExtractOp::create(e.b, sum, int64_t(i));
    all = all ? e.add(all, one) : one;
  }
  return all;
}

void AttentionTile::emitDots(Value block) {
  int64_t threads = dotThreads(a), some = kDotThreads / threads;
  int64_t pitch = threads + 1; // rows begin in different banks
  Value parts = e.sharedBuffer(e.b.getF32Type(), some * pitch);
  Value start = e.mul(block, e.index(some));
  auto ifExists = [&](Value row, function_ref<void(Value item)> fn) {
    Value item = e.add(start, row);
    auto emit = [&] {
      fn(item);
      return SmallVector<Value>();
    };
    if (rows(a) % some)
      e.ifThen(below(item, rows(a)), emit, nullptr);
    else
      emit();
  };
  auto place = [&](Value row, Value column) -> Value {
    return arith::IndexCastOp::create(
        e.b, e.b.getIndexType(), e.add(e.mul(row, e.index(pitch)), column));
  };
  e.forThreads(kDotThreads, [&](Value thread) {
    Value row = arith::DivUIOp::create(e.b, thread, e.index(threads)),
          own = arith::RemUIOp::create(e.b, thread, e.index(threads));
    ifExists(row, [&](Value item) {
      memref::StoreOp::create(e.b, emitDot(item, own, threads), parts,
                              place(row, own));
    });
  });
  e.forThreads(some, [&](Value row) {
    ifExists(row, [&](Value item) {
      Value sum;
      for (int64_t i = 0; i < threads; ++i) {
        Value part = memref::LoadOp::create(e.b, parts, place(row, e.index(i)));
        sum = sum ? e.add(sum, part) : part;
      }
      LLVM::StoreOp::create(e.b, sum, address(e.scratch, item), 4);
    });
  });
}

/// Rows without keys have probabilities of zero, as have rows that do not
/// exist.
void AttentionTile::copyNumbers(const Head &h, Value thread, Value row,
                                Value numbers) {
  e.ifThen(
      below(thread, kTile),
      [&] {
        Value query = e.add(row, thread);
        Value inside = belowUnlessWhole(query, a.queries);
        Value number = rowNumber(h, query);
        Value from = e.argument(in.lse.number);
        Value lse = load(from, placeOfLse(number, 0), inside),
              infinity = this->number(std::numeric_limits<float>::infinity());
        Value isEmpty = e.cmpf(arith::CmpFPredicate::OEQ, lse, e.neg(infinity));
        lse = e.select(isEmpty, infinity, lse);
        if (inside)
          lse = e.select(inside, lse, infinity);
        Value lost = load(from, placeOfLse(number, 1), inside),
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

/// Rows are stored one by one, so that only one is in registers.
void AttentionTile::storeScores(
    TileProducts &tile, const Gradient &g, Value thread,
    function_ref<Value(int64_t, Value, Place, Place)> fn, bool reads) {
  SmallVector<Value> columns = tile.columnsOf(thread, /*ofResult=*/false);
  for (auto [index, row] : llvm::enumerate(tile.rowsOf(thread))) {
    int64_t r = int64_t(index);
    auto make = [&] {
      SmallVector<Value> values(columns.size());
      if (reads)
        values = tile.readTile(thread, r);
      for (auto [c, column] : llvm::enumerate(columns))
        values[c] = fn(tile.sumAt(r, int64_t(c)), values[c],
                       {g.row, g.byKeys ? column : row},
                       {g.key, g.byKeys ? row : column});
      return values;
    };
    tile.storeTile(thread, r,
                   ifColumnsExist(tile, thread, g.byKeys ? g.row : g.key,
                                  g.byKeys ? a.queries : a.keys, columns.size(),
                                  0, make));
  }
}

/// Returns number `i` of a query (copyNumbers).
static Value queryNumber(Emitter &e, Value numbers, Value query, int64_t i) {
  Value at = e.add(e.mul(query, e.index(4)), e.index(i));
  at = arith::IndexCastOp::create(e.b, e.b.getIndexType(), at);
  return memref::LoadOp::create(e.b, numbers, at);
}

void AttentionTile::weighScores(TileProducts &tile, const Gradient &g,
                                Value thread) {
  Type i32 = e.b.getI32Type();
  Value allOpen = e.constant(i32, int64_t(0));
  auto weight = [&](int64_t sum, Value, Place query, Place key) {
    auto [s, open, slope] =
        score(g.head, query, key, tile.read(g.products, sum));
    if (slope)
      tile.write(g.slopes, sum, slope);
    if (g.open)
      allOpen =
          e.ori(allOpen, e.select(open, e.constant(i32, int64_t(1) << sum),
                                  e.constant(i32, int64_t(0))));
    s = e.sub(s, queryNumber(e, g.numbers, query.own, 0));
    s = e.sub(s, queryNumber(e, g.numbers, query.own, 1));
    Value p = emitExpNonPositive(e, s);
    if (a.hasDropout) {
      // The sign says which probabilities are dropped.
      Value keep = keeps(g.head, query, key);
      tile.write(g.probabilities, sum, e.select(keep, p, e.neg(p)));
      p = e.select(keep, p, number(0));
    }
    return p;
  };
  ifRowsExist(tile, thread, g,
              [&] { storeScores(tile, g, thread, weight, /*reads=*/false); });
  if (g.open) // so all elements were computed (leavesOutMissing)
    tile.write(g.open, 0, allOpen);
}

void AttentionTile::weighGradients(TileProducts &tile, const Gradient &g,
                                   Value thread) {
  auto gradient = [&](int64_t sum, Value p, Place query, Place) {
    Value grad = tile.read(g.products, sum);
    if (a.hasDropout) {
      Value bits = tile.read(g.probabilities, sum);
      p = e.abs(bits);
      bits = e.bitcast(e.b.getI32Type(), bits);
      grad = e.select(e.cmpi(arith::CmpIPredicate::sge, bits, e.like(bits, 0)),
                      e.mul(grad, number(keptFactor)), number(0));
    }
    Value weight =
        e.mul(p, e.sub(grad, queryNumber(e, g.numbers, query.own, 2)));
    if (g.slopes)
      weight = e.mul(weight, tile.read(g.slopes, sum));
    // A finite fill may have a probability; it has no gradient.
    if (g.open) {
      Value bits = tile.read(g.open, 0);
      bits = e.andi(bits, e.like(bits, int64_t(1) << sum));
      Value open = e.cmpi(arith::CmpIPredicate::ne, bits, e.like(bits, 0));
      Value isNan = e.cmpf(arith::CmpFPredicate::UNO, p, p);
      weight = e.select(e.ori(open, isNan), weight, number(0));
    }
    return weight;
  };
  ifRowsExist(tile, thread, g,
              [&] { storeScores(tile, g, thread, gradient, /*reads=*/true); });
}

static void clearSums(Emitter &e, TileProducts &tile, Value sums,
                      int64_t columns) {
  for (int64_t i = 0; i < TileProducts::sumsOfResult(columns); ++i)
    tile.write(sums, i, e.constant(e.b.getF32Type(), 0.0));
}

AttentionTile::Gradient AttentionTile::gradientOf(TileProducts &tile,
                                                  const Head &h) {
  Gradient g;
  g.head = h;
  g.products = tile.numbers(TileProducts::kSums);
  if (a.hasDropout)
    g.probabilities = tile.numbers(TileProducts::kSums);
  if (a.cap)
    g.slopes = tile.numbers(TileProducts::kSums);
  if (a.hasMask)
    g.open = e.privateBuffer(e.b.getI32Type(), TileProducts::kThreads, 1);
  g.numbers = e.sharedBuffer(e.b.getF32Type(), 4 * kTile);
  return g;
}

/// Runs `then` at the end of the last step.
static void follow(TileProducts::Steps &steps,
                   std::function<void(Value thread)> then) {
  auto &body = steps.back().body;
  body = [then = std::move(then), product = body](Value thread, Value buffer) {
    product(thread, buffer);
    then(thread);
  };
}

void AttentionTile::emitQueryGradient(Value block) {
  int64_t tiles = llvm::divideCeil(a.queries, kTile);
  SmallVector<Value> at = split(e, block, {a.batch, a.heads, tiles});
  TileProducts tile = products(/*withGrad=*/true);
  Gradient own = gradientOf(tile, headOf(at[0], at[1]));
  own.row = e.mul(a.causal ? e.sub(e.index(tiles - 1), at[2]) : at[2],
                  e.index(kTile));
  const Head &h = own.head;
  Value result = tile.numbers(TileProducts::sumsOfResult(a.depth));
  e.forThreads(TileProducts::kThreads, [&](Value thread) {
    clearTile(tile, thread, a.queries);
    clearSums(e, tile, result, a.depth);
    copyNumbers(h, thread, own.row, own.numbers);
  });
  TensorRows q = queriesOf(h, in.q, a.q, a.depth),
             k = keysOf(h, in.k, a.k, a.depth),
             v = keysOf(h, in.v, a.v, a.width),
             grad = queriesOf(h, in.grad, a.grad, a.width);
  Blocks blocks = keyBlocksOf(h, own.row);
  tile.run(blocks.count, [&](Value number) {
    Gradient g = own;
    g.key = blocks.at(e, number);
    TileProducts::Steps steps;
    tile.addScores(steps, q, g.row, k, g.key, g.products);
    follow(steps, [=, this, &tile](Value t) { weighScores(tile, g, t); });
    tile.addScores(steps, grad, g.row, v, g.key, g.products);
    follow(steps, [=, this, &tile](Value t) { weighGradients(tile, g, t); });
    tile.addResults(steps, k, g.key, result);
    return steps;
  });
  e.forThreads(TileProducts::kThreads, [&](Value thread) {
    tile.storeResults(thread, queriesOf(h, in.qGrad, a.qGrad, a.depth), own.row,
                      result,
                      SmallVector<Value>(tile.rowsOfThread(), number(scale)));
  });
}

/// Emits gradients of keys, of values, or of both, for a block of keys.
void AttentionTile::emitKeySums(Value block, bool hasKeys, bool hasValues) {
  int64_t tiles = llvm::divideCeil(a.keys, kTile),
          members = a.heads / a.keyHeads;
  SmallVector<Value> at = split(e, block, {a.batch, a.keyHeads, tiles});
  TileProducts tile = products(/*withGrad=*/true);
  Gradient own =
      gradientOf(tile, {at[0], e.mul(at[1], e.index(members)), at[1]});
  own.byKeys = true;
  own.key = e.mul(at[2], e.index(kTile));
  Value ofKeys, ofValues;
  if (hasKeys)
    ofKeys = tile.numbers(TileProducts::sumsOfResult(a.depth));
  if (hasValues)
    ofValues = tile.numbers(TileProducts::sumsOfResult(a.width));
  e.forThreads(TileProducts::kThreads, [&](Value thread) {
    clearTile(tile, thread, a.keys);
    if (hasKeys)
      clearSums(e, tile, ofKeys, a.depth);
    if (hasValues)
      clearSums(e, tile, ofValues, a.width);
  });
  Blocks blocks = queryBlocksOf(own.head, own.key);
  Value count = blocks.count;
  TensorRows k = keysOf(own.head, in.k, a.k, a.depth),
             v = keysOf(own.head, in.v, a.v, a.width);
  tile.run(e.mul(count, e.index(members)), [&](Value number) {
    Gradient g = own;
    if (members > 1) {
      Value divisor = e.maximum(count, e.index(1));
      g.head.head =
          e.add(g.head.head, arith::DivUIOp::create(e.b, number, divisor));
      number = arith::RemUIOp::create(e.b, number, divisor);
    }
    g.row = blocks.at(e, number);
    TensorRows q = queriesOf(g.head, in.q, a.q, a.depth),
               grad = queriesOf(g.head, in.grad, a.grad, a.width);
    TileProducts::Steps steps;
    tile.addScores(steps, k, g.key, q, g.row, g.products);
    steps.front().body = [=, this, product = steps.front().body](Value thread,
                                                                 Value buffer) {
      copyNumbers(g.head, thread, g.row, g.numbers);
      product(thread, buffer);
    };
    // These are read one interval later.
    if (steps.size() == 1)
      steps.push_back({{}, [](Value, Value) {}});
    follow(steps, [=, this, &tile](Value t) { weighScores(tile, g, t); });
    if (hasValues)
      tile.addResults(steps, grad, g.row, ofValues);
    if (!hasKeys)
      return steps;
    tile.addScores(steps, v, g.key, grad, g.row, g.products);
    follow(steps, [=, this, &tile](Value t) { weighGradients(tile, g, t); });
    tile.addResults(steps, q, g.row, ofKeys);
    return steps;
  });
  e.forThreads(TileProducts::kThreads, [&](Value thread) {
    auto put = [&](const Operand &x, const int64_t (&strides)[3],
                   int64_t columns, Value sums, float factor) {
      tile.storeResults(
          thread, keysOf(own.head, x, strides, columns), own.key, sums,
          SmallVector<Value>(tile.rowsOfThread(), number(factor)));
    };
    if (hasKeys)
      put(in.kGrad, a.kGrad, a.depth, ofKeys, scale);
    if (hasValues)
      put(in.vGrad, a.vGrad, a.width, ofValues, keptFactor);
  });
}
