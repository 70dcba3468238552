//===- BlockNest.cpp - a row reduced by the threads of a block ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "BlockNest.h"
#include "Emit/MathFunctions.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;
using codegen::Index;

/// The most threads of a block that reduce a row.
static constexpr int64_t kMostThreads = 256;
/// The most elements of a row that a thread keeps.
static constexpr int64_t kMostKept = 32;
/// Vectors that a thread loads before it uses one, in rows that are not kept in
/// registers.
static constexpr int64_t kInFlight = 8;

int64_t BlockNest::threadsFor(int64_t length, int64_t width) {
  int64_t wanted = llvm::divideCeil(std::max<int64_t>(length, 1), width);
  return std::clamp<int64_t>(llvm::PowerOf2Ceil(wanted), kWarp, kMostThreads);
}

std::pair<int64_t, int64_t> BlockNest::keepingRows(int64_t length,
                                                   int64_t width) {
  int64_t vectors = llvm::divideCeil(std::max<int64_t>(length, 1), width);
  int64_t threads = std::clamp<int64_t>(
      llvm::PowerOf2Ceil(llvm::divideCeil(vectors * width, kMostKept)), kWarp,
      kMostThreads);
  int64_t kept = llvm::divideCeil(vectors, threads);
  if (kept * width > kMostKept)
    return {threadsFor(length, width), 0};
  return {threads, kept};
}

SmallVector<Value> BlockNest::keptAt() {
  return {e.threadIndex(), arith::ConstantIndexOp::create(e.b, place * width)};
}

void BlockNest::storeKept(unsigned key, Value v) {
  Value &buffer = buffers[key];
  if (!buffer)
    buffer = e.privateBuffer(getElementTypeOrSelf(v.getType()), threads,
                             kept * width);
  if (width > 1)
    vector::StoreOp::create(e.b, v, buffer, keptAt());
  else
    memref::StoreOp::create(e.b, v, buffer, keptAt());
}

Value BlockNest::keep(unsigned key, function_ref<Value()> make) {
  if (place < 0)
    return make();
  if (filled.insert({key, place}).second) {
    Value made = make(); // may keep other values
    if (width > 1)
      made = e.splat(made);
    storeKept(key, made);
    fresh.push_back(key);
    return made;
  }
  Value buffer = buffers[key];
  if (width == 1)
    return memref::LoadOp::create(e.b, buffer, keptAt());
  Type element = cast<MemRefType>(buffer.getType()).getElementType();
  return vector::LoadOp::create(e.b, VectorType::get({width}, element), buffer,
                                keptAt());
}

SmallVector<Value> BlockNest::keptPoints(Value low, Value high,
                                         ArrayRef<Value> carried, Point point) {
  SmallVector<Value> values(carried);
  int64_t length = domain.loops[reduced.back()].size;
  for (place = 0; place < kept; ++place) {
    Value iv = e.add(low, e.index(place * threads * width));
    auto emit = [&] {
      at[reduced.back()] = e.addDim(iv, /*lane=*/width > 1);
      return point(values);
    };
    if ((place + 1) * threads * width <= length) {
      values = emit();
      continue;
    }
    // Other threads hold zeros, with which unneeded computations are safe.
    fresh.clear();
    auto otherwise = [&] {
      for (unsigned key : fresh) {
        Type type = cast<MemRefType>(buffers[key].getType()).getElementType();
        if (width > 1)
          type = VectorType::get({width}, type);
        storeKept(key, arith::ConstantOp::create(e.b, e.b.getZeroAttr(type)));
      }
      return values;
    };
    values =
        e.ifThen(e.cmpi(arith::CmpIPredicate::slt, iv, high), emit, otherwise);
  }
  place = -1;
  return values;
}

SmallVector<Value> BlockNest::points(unsigned level, Value thread,
                                     ArrayRef<Value> carried, Point point) {
  bool innermost = level + 1 == reduced.size();
  Value low = e.index(0), high = e.index(domain.loops[reduced[level]].size);
  if (level == 0 && rangeLow) {
    low = rangeLow;
    high = rangeHigh;
  }
  if (!innermost)
    return e.forLoop(low, high, 1, carried, [&](Value iv, ValueRange inner) {
      at[reduced[level]] = e.addDim(iv);
      return points(level + 1, thread, SmallVector<Value>(inner), point);
    });
  low = e.add(low, e.mul(thread, e.index(width)));
  if (kept)
    return keptPoints(low, high, carried, point);
  return e.forLoop(low, high, threads * width, carried,
                   [&](Value iv, ValueRange inner) {
                     at[reduced[level]] = e.addDim(iv, /*lane=*/width > 1);
                     return point(SmallVector<Value>(inner));
                   });
}

Value BlockNest::fold(const Reducer &reducer, Value v) {
  if (width == 1)
    return v;
  SmallVector<Value> lanes;
  for (int64_t i = 0; i < width; ++i)
    lanes.push_back(vector::ExtractOp::create(e.b, v, i));
  for (; lanes.size() > 1; lanes.resize(lanes.size() / 2))
    for (size_t i = 0, half = lanes.size() / 2; i < half; ++i)
      lanes[i] = reducer.combine(e, lanes[i], lanes[i + half]);
  return lanes.front();
}

SmallVector<Value> BlockNest::combineThreads(Emitter &e, int64_t threads,
                                             ArrayRef<Reducer> reducers,
                                             ArrayRef<Value> buffers) {
  auto place = [&](Value thread) -> Value {
    return arith::IndexCastOp::create(e.b, e.b.getIndexType(), thread);
  };
  auto step = [&](Value thread, int64_t distance) {
    Value own = place(thread), other = place(e.add(thread, e.index(distance)));
    for (auto [reducer, buffer] : llvm::zip_equal(reducers, buffers)) {
      Value x = memref::LoadOp::create(e.b, buffer, own);
      Value y = memref::LoadOp::create(e.b, buffer, other);
      memref::StoreOp::create(e.b, reducer.combine(e, x, y), buffer, own);
    }
  };
  int64_t distance = threads / 2;
  for (; distance >= kWarp; distance /= 2)
    e.forThreads(distance, [&](Value thread) { step(thread, distance); });
  for (; distance > 0; distance /= 2)
    e.forThreads(
        kWarp,
        [&](Value thread) {
          e.ifThen(
              e.cmpi(arith::CmpIPredicate::ult, thread, e.index(distance)),
              [&] {
                step(thread, distance);
                return SmallVector<Value>();
              },
              nullptr);
        },
        e.b.getNamedAttr("ckopt.gpu.lane_step",
                         e.b.getI64IntegerAttr(distance)));
  SmallVector<Value> results;
  Value zero = arith::ConstantIndexOp::create(e.b, 0);
  for (Value buffer : buffers)
    results.push_back(memref::LoadOp::create(e.b, buffer, zero));
  return results;
}

SmallVector<Value> BlockNest::reduce(ArrayRef<Reducer> reducers, Body body) {
  SmallVector<Value> buffers;
  for (const Reducer &reducer : reducers)
    buffers.push_back(e.sharedBuffer(reducer.type, threads));
  e.forThreads(threads, [&](Value thread) {
    SmallVector<Value> sums;
    for (const Reducer &reducer : reducers) {
      Value identity = reducer.identity(e);
      sums.push_back(width > 1 ? e.splat(identity) : identity);
    }
    sums = points(0, thread, sums, [&](ArrayRef<Value> carried) {
      SmallVector<Value> next = body(domain.index(at), 0);
      for (auto [r, reducer] : llvm::enumerate(reducers)) {
        next[r] = reducer.combine(e, carried[r], next[r]);
        if (width > 1)
          next[r] = e.splat(next[r]);
      }
      return next;
    });
    Value place = arith::IndexCastOp::create(e.b, e.b.getIndexType(), thread);
    for (auto [r, reducer] : llvm::enumerate(reducers))
      memref::StoreOp::create(e.b, fold(reducer, sums[r]), buffers[r], place);
  });
  return combineThreads(e, threads, reducers, buffers);
}

/// A thread takes kInFlight vectors at a time, and finds their maximum before
/// it computes an exponential; the sum so far is scaled to it. As long as all
/// elements are -inf, exponentials are those of differences to 0.
std::optional<std::pair<Value, Value>>
BlockNest::reduceExponentials(Type type, function_ref<Value(Index)> body) {
  if (kept || reduced.size() != 1 || rangeLow)
    return std::nullopt;
  Reducer most{ReduceKind::Max, type}, sum{ReduceKind::Sum, type};
  most.ignoreNaN = true;
  Value tops = e.sharedBuffer(type, threads),
        sums = e.sharedBuffer(type, threads),
        own = e.privateBuffer(type, threads, 2);
  auto ownAt = [&](int64_t i) {
    return SmallVector<Value>{e.threadIndex(),
                              arith::ConstantIndexOp::create(e.b, i)};
  };
  auto widened = [&](Value v) { return width > 1 ? e.splat(v) : v; };
  int64_t step = threads * width, length = domain.loops[reduced[0]].size;
  int64_t whole = length / (kInFlight * step) * (kInFlight * step);
  auto advance = [&](Value from, int64_t count, ArrayRef<Value> before) {
    SmallVector<Value> values;
    for (int64_t i = 0; i < count; ++i) {
      at[reduced[0]] =
          e.addDim(e.add(from, e.index(i * step)), /*lane=*/width > 1);
      values.push_back(widened(body(domain.index(at))));
    }
    Value top = before[0];
    for (Value v : values)
      top = most.combine(e, top, v);
    Value none =
        e.cmpf(arith::CmpFPredicate::OEQ, top, widened(most.identity(e)));
    Value base = e.select(none, e.like(top, 0), top);
    Value total =
        e.mul(before[1], emitExpNonPositive(e, e.sub(before[0], base)));
    for (Value v : values)
      total = e.add(total, emitExpNonPositive(e, e.sub(v, base)));
    return SmallVector<Value>{top, total};
  };
  e.forThreads(threads, [&](Value thread) {
    Value first = e.mul(thread, e.index(width));
    SmallVector<Value> state{widened(most.identity(e)),
                             widened(sum.identity(e))};
    auto loop = [&](int64_t low, Value high, int64_t count) {
      state =
          e.forLoop(e.add(first, e.index(low)), high, count * step, state,
                    [&](Value from, ValueRange before) {
                      return advance(from, count, SmallVector<Value>(before));
                    });
    };
    // Full steps end at the same iteration for all threads.
    loop(0, e.add(first, e.index(whole)), kInFlight);
    loop(whole, e.index(length), 1);
    Value top = fold(most, state[0]);
    Value total =
        e.mul(state[1], emitExpNonPositive(e, e.sub(state[0], widened(top))));
    // A lane or thread that has only seen -inf has added nothing.
    Value none =
        e.cmpf(arith::CmpFPredicate::OEQ, state[0], widened(most.identity(e)));
    total = fold(sum, e.select(none, state[1], total));
    memref::StoreOp::create(e.b, top, tops, e.threadIndex());
    memref::StoreOp::create(e.b, top, own, ownAt(0));
    memref::StoreOp::create(e.b, total, own, ownAt(1));
  });
  Value top = combineThreads(e, threads, most, tops).front();
  e.forThreads(threads, [&](Value) {
    Value own0 = memref::LoadOp::create(e.b, own, ownAt(0));
    Value own1 = memref::LoadOp::create(e.b, own, ownAt(1));
    Value scaled = e.mul(own1, emitExpNonPositive(e, e.sub(own0, top)));
    memref::StoreOp::create(e.b, scaled, sums, e.threadIndex());
  });
  return std::pair(top, combineThreads(e, threads, sum, sums).front());
}

void BlockNest::forEach(function_ref<void(Index, unsigned)> body) {
  e.forThreads(threads, [&](Value thread) {
    points(0, thread, {}, [&](ArrayRef<Value>) {
      body(domain.index(at), 0);
      return SmallVector<Value>();
    });
  });
}
