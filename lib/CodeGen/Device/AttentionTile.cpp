//===- AttentionTile.cpp - scores, and attention forward ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "AttentionTile.h"
#include "Emit/MathFunctions.h"
#include "Emit/Philox.h"
#include "Kinds/GeneratedKernel.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <cmath>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

static constexpr float kEmpty = -std::numeric_limits<float>::infinity();

AttentionTile::AttentionTile(Emitter &e, const runtime::AttentionDesc &desc,
                             const AttentionOperands &operands,
                             OperandForm form, bool isGradient)
    : e(e), a(desc), in(operands), form(form), isGradient(isGradient),
      scale(float(llvm::bit_cast<double>(a.scale))),
      fill(float(llvm::bit_cast<double>(a.fill))),
      keptFactor(1 / (1 - float(llvm::bit_cast<double>(a.ratio)))),
      cap(llvm::bit_cast<double>(a.cap)) {
  e.approximates = form.tf32 || (e.approximates && !in.q.element.isF32());
  if (!a.hasDropout)
    return;
  Type i64 = e.b.getI64Type();
  auto word = [&](Value x, int64_t shift) -> Value {
    return arith::TruncIOp::create(e.b, e.b.getI32Type(),
                                   shift ? e.shr(x, shift) : x);
  };
  auto read = [&](const Operand &x) -> Value {
    return LLVM::LoadOp::create(e.b, i64, e.argument(x.number), 8);
  };
  Value seed = read(in.seed), number = read(in.step);
  key0 = word(seed, 0);
  key1 = word(seed, 32);
  step = word(number, 0);
  site = word(e.callScalar(in.site), 0);
  // Elements of a rank, the upper half of the step, are numbered after those of
  // the ranks before.
  firstBlock = e.mul(e.shr(number, 32), e.index(rows(a) * a.keys / 4));
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

AttentionTile::Head AttentionTile::headOf(Value batch, Value head) {
  int64_t members = a.heads / a.keyHeads;
  return {
      batch, head,
      members == 1
          ? head
          : arith::DivUIOp::create(e.b, head, e.index(members)).getResult()};
}

TensorRows AttentionTile::rowsOf(const Operand &x, const int64_t (&strides)[3],
                                 Value batch, Value head, int64_t rows,
                                 int64_t columns) {
  return {
      x,          linear(e, {batch, head}, {strides[0], strides[1]}),
      strides[2], rows,
      columns,    x.lanes(true, {columns, strides[0], strides[1], strides[2]})};
}

unsigned AttentionTile::leastLanes(bool withGrad) const {
  auto lanes = [](const Operand &x, const int64_t (&s)[3], int64_t columns) {
    return x.lanes(true, {columns, s[0], s[1], s[2]});
  };
  unsigned least =
      std::min({lanes(in.q, a.q, a.depth), lanes(in.k, a.k, a.depth),
                lanes(in.v, a.v, a.width)});
  return withGrad ? std::min(least, lanes(in.grad, a.grad, a.width)) : least;
}

Value AttentionTile::rowNumber(const Head &h, Value row) {
  Value n = e.add(e.mul(h.batch, e.index(a.heads)), h.head);
  return e.add(e.mul(n, e.index(a.queries)), row);
}

Value AttentionTile::placeOfLse(Value number, int64_t which) {
  if (a.planes)
    return e.add(number, e.index(which * a.batch * a.heads * a.queries));
  return e.add(e.mul(number, e.index(2)), e.index(which));
}

Value AttentionTile::address(Value base, Value offset) {
  return LLVM::GEPOp::create(e.b, base.getType(), e.b.getF32Type(), base,
                             ArrayRef<LLVM::GEPArg>{offset});
}

Value AttentionTile::load(Value base, Value offset, Value inside) {
  Value from = address(base, offset);
  if (inside)
    from = arith::SelectOp::create(e.b, inside, from, e.zeros());
  return LLVM::LoadOp::create(e.b, e.b.getF32Type(), from, 4);
}

Value AttentionTile::apart(Value x, Value from) {
  constexpr int64_t kFar = 4 * kTile;
  Value distance =
      e.minimum(e.maximum(e.sub(x, from), e.index(-kFar)), e.index(kFar));
  return arith::TruncIOp::create(e.b, e.b.getI32Type(), distance);
}

/// Returns the part of `places` that all elements of a thread share, as i32,
/// and the rest.
static std::pair<Value, int64_t> divided(Emitter &e, Value own) {
  int64_t rest = 0;
  APInt number;
  if (auto sum = own.getDefiningOp<arith::AddIOp>())
    if (matchPattern(sum.getRhs(), m_ConstantInt(&number))) {
      own = sum.getLhs();
      rest = number.getSExtValue();
    }
  return {arith::TruncIOp::create(e.b, e.b.getI32Type(), own), rest};
}

/// One number for all of a thread's elements is compared with a constant for
/// each.
AttentionTile::Score AttentionTile::score(const Head &h, Place query, Place key,
                                          Value sum) {
  auto [ownQuery, queryRest] = divided(e, query.own);
  auto [ownKey, keyRest] = divided(e, key.own);
  Value exists;
  if (a.keys % kTile) {
    Value behind = e.sub(apart(e.index(a.keys), key.start), ownKey);
    exists = e.cmpi(arith::CmpIPredicate::sgt, behind, e.like(behind, keyRest));
  }
  // Queries and keys that do not exist read the last one's element, on which
  // nothing depends. So each of a thread's rows has one address, not each
  // element.
  auto offset = [&](const int64_t (&strides)[4]) {
    auto within = [&](Place at, int64_t extent) {
      return extent % kTile ? e.minimum(of(at), e.index(extent - 1)) : of(at);
    };
    Value row = linear(e, {h.batch, h.head, within(query, a.queries)},
                       {strides[0], strides[1], strides[2]});
    return e.add(row, e.mul(within(key, a.keys), e.index(strides[3])));
  };
  Value s = e.mul(sum, number(scale)), open, slope;
  if (cap != 0) {
    Value t = emitTanh(e, e.mul(s, number(1 / cap)));
    s = e.mul(t, number(cap));
    if (isGradient)
      slope = e.fma(e.neg(t), t, number(1));
  }
  if (a.hasBias)
    s = e.add(s, in.bias.load(e, offset(a.bias), 1, /*inside=*/{}));
  if (a.causal) {
    Value last = apart(e.add(query.start, e.index(a.offset)), key.start);
    last = e.add(e.sub(last, ownKey), ownQuery);
    open = e.cmpi(arith::CmpIPredicate::sge, last,
                  e.like(last, keyRest - queryRest));
  }
  auto also = [&](Value more) { open = open ? e.andi(open, more) : more; };
  if (a.hasWindow) {
    Value last = apart(e.sub(query.start, e.index(a.window)), key.start);
    last = e.add(e.sub(last, ownKey), ownQuery);
    also(e.cmpi(arith::CmpIPredicate::slt, last,
                e.like(last, keyRest - queryRest)));
  }
  if (a.hasSegments)
    also(e.cmpi(arith::CmpIPredicate::eq, segment(h, query), segment(h, key)));
  if (a.hasMask) {
    Value mask = in.mask.load(e, offset(a.mask), 1, /*inside=*/{});
    mask = e.cmpi(arith::CmpIPredicate::ne, mask, e.like(mask, 0));
    also(mask);
  }
  if (open)
    s = e.select(open, s, number(fill));
  if (exists)
    s = e.select(exists, s, number(kEmpty));
  return {s, open, slope};
}

Value AttentionTile::keeps(const Head &h, Place query, Place key) {
  Value element =
      e.add(e.mul(rowNumber(h, of(query)), e.index(a.keys)), of(key));
  Value block = e.add(e.shr(element, 2), firstBlock);
  auto word = [&](Value x) -> Value {
    return arith::TruncIOp::create(e.b, e.b.getI32Type(), x);
  };
  SmallVector<Value> words = Philox(e).rounds(
      {word(block), word(e.shr(block, 32)), step, site}, key0, key1);
  Value which = word(element), own = words[3];
  which = e.andi(which, e.like(which, 3));
  for (int i = 2; i >= 0; --i)
    own = e.select(e.cmpi(arith::CmpIPredicate::eq, which, e.like(which, i)),
                   words[size_t(i)], own);
  double least = std::ceil(std::ldexp(llvm::bit_cast<double>(a.ratio), 24));
  return e.cmpi(arith::CmpIPredicate::uge, e.shr(own, 8), e.like(own, least));
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

/// Registers and buffers of a thread for a block of queries.
struct AttentionTile::Forward {
  Head head;
  Value row; ///< the first one
  /// Private: scores of a block of keys, sums of values; for each of a thread's
  /// rows the maximum score and the sum of the thread's exponentials.
  Value scores, result, greatest, sum;
  Value parts; ///< shared: one number for each thread, by row
  /// `sum` is shared, by thread: wide heads need the registers for fused
  /// multiply-adds.
  bool isSumShared = false;

  Value sumAt(Emitter &e, TileProducts &tile, Value thread, int64_t r) const {
    Value at = e.add(e.mul(thread, e.index(tile.rowsOfThread())), e.index(r));
    return arith::IndexCastOp::create(e.b, e.b.getIndexType(), at);
  }
  Value readSum(Emitter &e, TileProducts &tile, Value thread, int64_t r) const {
    if (!isSumShared)
      return tile.read(sum, r);
    return memref::LoadOp::create(e.b, sum, sumAt(e, tile, thread, r));
  }
  void writeSum(Emitter &e, TileProducts &tile, Value thread, int64_t r,
                Value v) const {
    if (!isSumShared)
      return tile.write(sum, r, v);
    memref::StoreOp::create(e.b, v, sum, sumAt(e, tile, thread, r));
  }
};

/// Combines the numbers of all threads that have elements of a row.
static Value combineParts(Emitter &e, TileProducts &tile, Value parts,
                          Value row, Value start,
                          function_ref<Value(Value, Value)> fn) {
  VectorType four = VectorType::get({4}, e.b.getF32Type());
  for (int64_t i = 0; i < tile.partsOfRow(); i += 4) {
    Value at = e.add(e.mul(row, e.index(tile.partsOfRow())), e.index(i));
    at = arith::IndexCastOp::create(e.b, e.b.getIndexType(), at);
    Value some = vector::LoadOp::create(e.b, four, parts, at);
    for (int64_t j = 0; j < 4; ++j) {
      Value one = vector::ExtractOp::create(e.b, some, j);
      start = start ? fn(start, one) : one;
    }
  }
  return start;
}

static void storePart(Emitter &e, TileProducts &tile, Value parts, Value thread,
                      Value row, Value v) {
  Value at = e.add(e.mul(row, e.index(tile.partsOfRow())), tile.partOf(thread));
  at = arith::IndexCastOp::create(e.b, e.b.getIndexType(), at);
  memref::StoreOp::create(e.b, v, parts, at);
}

void AttentionTile::ifRowsExist(TileProducts &tile, Value thread, Value start,
                                int64_t limit, function_ref<void()> fn) {
  Value exists = existsFrom(tile, start, tile.rowsOf(thread), limit);
  auto then = [&] {
    fn();
    return SmallVector<Value>();
  };
  if (exists)
    e.ifThen(exists, then, nullptr);
  else
    then();
}

void AttentionTile::clearTile(TileProducts &tile, Value thread, int64_t limit) {
  if (!leavesOutMissing(tile, limit))
    return;
  SmallVector<Value> zeros(size_t(tile.columnsOfThread()), number(0));
  for (int64_t r = 0; r < tile.rowsOfThread(); ++r)
    tile.storeTile(thread, r, zeros);
}

SmallVector<Value>
AttentionTile::ifColumnsExist(TileProducts &tile, Value thread, Value start,
                              int64_t limit, size_t count, float otherwise,
                              function_ref<SmallVector<Value>()> fn) {
  Value exists = existsFrom(tile, start,
                            tile.columnsOf(thread, /*ofResult=*/false), limit);
  if (!exists)
    return fn();
  return e.ifThen(exists, fn,
                  [&] { return SmallVector<Value>(count, number(otherwise)); });
}

/// Applies masks to a thread's scores; stores each row's maximum for the row's
/// other threads.
void AttentionTile::scaleScores(TileProducts &tile, const Forward &f,
                                Value thread, Value key) {
  SmallVector<Value> columns = tile.columnsOf(thread, /*ofResult=*/false),
                     rows = tile.rowsOf(thread);
  auto scaled = [&] {
    SmallVector<Value> all;
    for (auto [r, row] : llvm::enumerate(rows)) {
      Value greatest;
      for (auto [c, column] : llvm::enumerate(columns)) {
        int64_t at = tile.sumAt(int64_t(r), int64_t(c));
        Value s =
            score(f.head, {f.row, row}, {key, column}, tile.read(f.scores, at))
                .value;
        tile.write(f.scores, at, s);
        greatest = greatest ? e.maximum(greatest, s) : s;
      }
      all.push_back(greatest);
    }
    return all;
  };
  ifRowsExist(tile, thread, f.row, a.queries, [&] {
    SmallVector<Value> greatest =
        ifColumnsExist(tile, thread, key, a.keys, rows.size(), kEmpty, scaled);
    for (auto [row, most] : llvm::zip_equal(rows, greatest))
      storePart(e, tile, f.parts, thread, row, most);
  });
}

/// Computes a thread's exponentials, the tile by which values are multiplied.
void AttentionTile::weigh(TileProducts &tile, const Forward &f, Value thread,
                          Value key) {
  ifRowsExist(tile, thread, f.row, a.queries, [&] {
    for (auto [r, row] : llvm::enumerate(tile.rowsOf(thread)))
      weighRow(tile, f, thread, key, int64_t(r), row);
  });
}

void AttentionTile::weighRow(TileProducts &tile, const Forward &f, Value thread,
                             Value key, int64_t r, Value row) {
  SmallVector<Value> columns = tile.columnsOf(thread, /*ofResult=*/false);
  Value before = tile.read(f.greatest, r);
  Value greatest =
      combineParts(e, tile, f.parts, row, before,
                   [&](Value x, Value y) { return e.maximum(x, y); });
  Value base =
      e.select(e.cmpf(arith::CmpFPredicate::OEQ, greatest, number(kEmpty)),
               number(0), greatest);
  Value factor = emitExpNonPositive(e, e.sub(before, base));
  // The last number is their sum.
  auto exponentials = [&] {
    SmallVector<Value> weights;
    Value sum;
    for (auto [c, column] : llvm::enumerate(columns)) {
      int64_t at = tile.sumAt(r, int64_t(c));
      Value p = emitExpNonPositive(e, e.sub(tile.read(f.scores, at), base));
      sum = sum ? e.add(sum, p) : p;
      if (a.hasDropout)
        p = e.select(keeps(f.head, {f.row, row}, {key, column}), p, number(0));
      weights.push_back(p);
    }
    weights.push_back(sum);
    return weights;
  };
  SmallVector<Value> weights = ifColumnsExist(
      tile, thread, key, a.keys, columns.size() + 1, 0, exponentials);
  Value sum = weights.pop_back_val();
  tile.storeTile(thread, r, weights);
  tile.write(f.greatest, r, greatest);
  f.writeSum(e, tile, thread, r,
             e.fma(f.readSum(e, tile, thread, r), factor, sum));
  for (int64_t first = 0; first < a.width; first += kTile)
    for (int64_t c = 0; c < tile.columnsOfThread(); ++c) {
      int64_t at = first / kTile * TileProducts::kSums + tile.sumAt(r, c);
      tile.write(f.result, at, e.mul(tile.read(f.result, at), factor));
    }
}

/// Divides rows by their sums, and stores lse with its rounding error.
void AttentionTile::finish(TileProducts &tile, const Forward &f) {
  e.forThreads(TileProducts::kThreads, [&](Value thread) {
    for (auto [r, row] : llvm::enumerate(tile.rowsOf(thread)))
      storePart(e, tile, f.parts, thread, row,
                f.readSum(e, tile, thread, int64_t(r)));
  });
  e.forThreads(TileProducts::kThreads, [&](Value thread) {
    SmallVector<Value> factors;
    for (auto [r, own] : llvm::enumerate(tile.rowsOf(thread))) {
      Value row = e.add(f.row, own),
            greatest = tile.read(f.greatest, int64_t(r));
      Value sum = combineParts(e, tile, f.parts, own, {},
                               [&](Value x, Value y) { return e.add(x, y); });
      Value log = emitLog(e, sum), lse = e.add(greatest, log);
      // The rounding error of a sum is a number itself.
      Value added = e.sub(lse, greatest);
      Value lost = e.add(e.sub(greatest, e.sub(lse, added)), e.sub(log, added));
      Value isEmpty =
          e.cmpf(arith::CmpFPredicate::OEQ, greatest, number(kEmpty));
      Value nothing = number(a.zeroEmptyRows ? kEmpty : NAN);
      lse = e.select(isEmpty, nothing, lse);
      Value isFinite =
          e.cmpf(arith::CmpFPredicate::OLT, e.abs(lse), number(-kEmpty));
      lost = e.select(isFinite, lost, number(0));
      Value factor = e.quotient(number(keptFactor), sum);
      factors.push_back(
          e.select(isEmpty, number(a.zeroEmptyRows ? 0 : NAN), factor));
      Value isFirst =
          e.cmpi(arith::CmpIPredicate::eq, tile.partOf(thread), e.index(0));
      if (Value exists = belowUnlessWhole(row, a.queries))
        isFirst = e.andi(isFirst, exists);
      e.ifThen(
          isFirst,
          [&] {
            Value number = rowNumber(f.head, row);
            if (a.planes) {
              in.lse.store(e, placeOfLse(number, 0), lse);
              in.lse.store(e, placeOfLse(number, 1), lost);
              return SmallVector<Value>();
            }
            Value pair = vector::FromElementsOp::create(
                e.b, VectorType::get({2}, lse.getType()),
                ValueRange{lse, lost});
            in.lse.store(e, placeOfLse(number, 0), pair);
            return SmallVector<Value>();
          },
          nullptr);
    }
    tile.storeResults(thread, queriesOf(f.head, in.o, a.o, a.width), f.row,
                      f.result, factors);
  });
}

void AttentionTile::emitForward(Value block) {
  int64_t tiles = llvm::divideCeil(a.queries, kTile);
  SmallVector<Value> at = split(e, block, {a.batch, a.heads, tiles});
  TileProducts tile = products(/*withGrad=*/false);
  Forward f;
  f.head = headOf(at[0], at[1]);
  // Blocks with the most keys start first.
  f.row = e.mul(a.causal ? e.sub(e.index(tiles - 1), at[2]) : at[2],
                e.index(kTile));
  f.scores = tile.numbers(TileProducts::kSums);
  f.result = tile.numbers(TileProducts::sumsOfResult(a.width));
  f.greatest = tile.numbers(tile.rowsOfThread());
  f.isSumShared = !tile.onTensorCores() && a.width > kTile;
  f.sum = f.isSumShared
              ? e.sharedBuffer(e.b.getF32Type(),
                               TileProducts::kThreads * tile.rowsOfThread())
              : tile.numbers(tile.rowsOfThread());
  f.parts = e.sharedBuffer(e.b.getF32Type(), kTile * tile.partsOfRow());
  e.forThreads(TileProducts::kThreads, [&](Value thread) {
    clearTile(tile, thread, a.queries);
    for (int64_t i = 0; i < TileProducts::sumsOfResult(a.width); ++i)
      tile.write(f.result, i, number(0));
    for (int64_t r = 0; r < tile.rowsOfThread(); ++r) {
      tile.write(f.greatest, r, number(kEmpty));
      f.writeSum(e, tile, thread, r, number(0));
    }
  });
  TensorRows q = queriesOf(f.head, in.q, a.q, a.depth),
             k = keysOf(f.head, in.k, a.k, a.depth),
             v = keysOf(f.head, in.v, a.v, a.width);
  Blocks blocks = keyBlocksOf(f.head, f.row);
  tile.run(blocks.count, [&](Value number) {
    Value key = blocks.at(e, number);
    TileProducts::Steps steps;
    tile.addScores(steps, q, f.row, k, key, f.scores);
    steps.back().body = [this, &tile, f, key, product = steps.back().body](
                            Value thread, Value buffer) {
      product(thread, buffer);
      scaleScores(tile, f, thread, key);
    };
    steps.push_back({{}, [this, &tile, f, key](Value thread, Value) {
                       weigh(tile, f, thread, key);
                     }});
    tile.addResults(steps, v, key, f.result);
    return steps;
  });
  finish(tile, f);
}
