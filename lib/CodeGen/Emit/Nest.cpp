//===- Nest.cpp - loops that reduce, with fixed trees ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Nest.h"
#include "Kinds/GeneratedKernel.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;
using codegen::Index;

/// The number of terms of a block, whose sum is one term of the next chain, and
/// the most terms of a chain that is not cut into blocks.
static constexpr int64_t kChainBlock = 32, kMostChain = 64;

/// Accumulators of a row: enough to hide the latency of an addition.
static constexpr int64_t kAccumulators = 4;

Value Reducer::identity(Emitter &e) const {
  bool isFloat = isa<FloatType>(type);
  double inf = std::numeric_limits<double>::infinity();
  unsigned width = type.getIntOrFloatBitWidth();
  auto integer = [&](const APInt &value) -> Value {
    return arith::ConstantOp::create(e.b, IntegerAttr::get(type, value));
  };
  switch (kind) {
  case ReduceKind::Sum:
  case ReduceKind::Mean:
    return e.constant(type, 0.0);
  case ReduceKind::Prod:
    return e.constant(type, 1.0);
  case ReduceKind::Max:
    if (isFloat)
      return e.constant(type, -inf);
    return integer(isSigned ? APInt::getSignedMinValue(width)
                            : APInt::getMinValue(width));
  case ReduceKind::Min:
    if (isFloat)
      return e.constant(type, inf);
    return integer(isSigned ? APInt::getSignedMaxValue(width)
                            : APInt::getMaxValue(width));
  }
  llvm_unreachable("kinds are listed above");
}

Value Reducer::combine(Emitter &e, Value x, Value y) const {
  switch (kind) {
  case ReduceKind::Sum:
  case ReduceKind::Mean:
    return e.add(x, y);
  case ReduceKind::Prod:
    return e.mul(x, y);
  case ReduceKind::Max:
    if (ignoreNaN) // the machine has one instruction for it
      return e.select(e.cmpf(arith::CmpFPredicate::OGT, y, x), y, x);
    return e.maximum(x, y, isSigned);
  case ReduceKind::Min:
    return e.minimum(x, y, isSigned);
  }
  llvm_unreachable("kinds are listed above");
}

void Nest::bounds(unsigned level, Value &low, Value &high,
                  std::optional<int64_t> &count) {
  int64_t size = domain.loops[reduced[level]].size;
  if (level == 0 && rangeLow) {
    low = rangeLow;
    high = rangeHigh;
    count = rangeExact ? std::optional<int64_t>(rangeMost) : std::nullopt;
    return;
  }
  low = e.index(0);
  high = e.index(size);
  count = domain.loops[reduced[level]].count();
}

ChainBlocks codegen::blocksOf(int64_t count, int64_t inner) {
  ChainBlocks blocks;
  blocks.chain = std::max<int64_t>(count, 1) * inner;
  if (blocks.chain <= kMostChain)
    return blocks;
  int64_t size = std::max<int64_t>(kChainBlock / inner, 1);
  for (;; size *= kChainBlock) {
    blocks.sizes.push_back(size);
    blocks.chain = llvm::divideCeil(count, size);
    if (blocks.chain <= kMostChain)
      return blocks;
  }
}

SmallVector<Value> codegen::emitBlocked(
    Emitter &e, const ChainBlocks &blocks, Value low, Value high, int64_t step,
    std::optional<int64_t> count, ArrayRef<Reducer> reducers,
    ArrayRef<Value> carried,
    function_ref<SmallVector<Value>(Value, Value, ArrayRef<Value>)> run) {
  if (blocks.sizes.empty())
    return run(low, high, carried);
  ChainBlocks inside = blocks;
  int64_t size = inside.sizes.pop_back_val(), length = size * step;
  SmallVector<Value> identities;
  for (auto [i, sum] : llvm::enumerate(carried)) {
    Value identity = reducers[i % reducers.size()].identity(e);
    identities.push_back(isa<VectorType>(sum.getType()) ? e.splat(identity)
                                                        : identity);
  }
  return e.forLoop(
      low, high, length, carried, [&](Value from, ValueRange outer) {
        Value to = e.add(from, e.index(length));
        if (length != 1 && (!count || *count % size))
          to = e.minimum(to, high);
        SmallVector<Value> block = emitBlocked(e, inside, from, to, step, count,
                                               reducers, identities, run);
        for (size_t i = 0; i < block.size(); ++i)
          block[i] =
              reducers[i % reducers.size()].combine(e, outer[i], block[i]);
        return block;
      });
}

ChainBlocks Nest::blocksAt(unsigned level) const {
  int64_t count =
      level == 0 && rangeLow ? rangeMost : domain.loops[reduced[level]].size;
  if (domain.loops[reduced[level]].open)
    count = int64_t(llvm::bit_ceil(uint64_t(count))); // of all sizes near it
  bool innermost = level + 1 == reduced.size();
  if (laneReduced && innermost) {
    int64_t lanes = e.lanes, step = lanes * kAccumulators;
    count = std::max<int64_t>(count / step, 1);
  }
  if (!rounds)
    return ChainBlocks();
  return blocksOf(count, innermost ? 1 : blocksAt(level + 1).chain);
}

SmallVector<Value> Nest::reduce(ArrayRef<Reducer> reducers, Body body) {
  SmallVector<Value> inits;
  rounds = llvm::any_of(reducers, [](const Reducer &r) { return r.rounds(); });
  int64_t copies = laneReduced ? kAccumulators : vectors();
  for (int64_t i = 0; i < copies; ++i)
    for (const Reducer &reducer : reducers)
      inits.push_back(widened(reducer.identity(e)));
  SmallVector<Value> sums = loop(0, inits, reducers, body);
  if (!laneReduced)
    return sums;
  SmallVector<Value> results;
  for (auto [r, reducer] : llvm::enumerate(reducers)) {
    SmallVector<Value> own;
    for (int64_t i = 0; i < kAccumulators; ++i)
      own.push_back(sums[i * reducers.size() + r]);
    results.push_back(tree(reducer, own));
  }
  return results;
}

Value Nest::tree(const Reducer &reducer, SmallVector<Value> accumulators) {
  while (accumulators.size() > 1) {
    SmallVector<Value> next;
    for (size_t i = 0; i < accumulators.size(); i += 2)
      next.push_back(reducer.combine(e, accumulators[i], accumulators[i + 1]));
    accumulators = next;
  }
  Value v = accumulators.front();
  for (int64_t width = e.lanes; width > 1; width /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t i = 0; i < width / 2; ++i) {
      low.push_back(i);
      high.push_back(i + width / 2);
    }
    v = reducer.combine(e, vector::ShuffleOp::create(e.b, v, v, low),
                        vector::ShuffleOp::create(e.b, v, v, high));
  }
  return e.lanes == 1 ? v : vector::ExtractOp::create(e.b, v, int64_t(0));
}

SmallVector<Value> Nest::loop(unsigned level, ArrayRef<Value> carried,
                              ArrayRef<Reducer> reducers, Body body) {
  if (level == reduced.size())
    return columnPoint(carried, reducers, body);
  if (laneReduced && level + 1 == reduced.size())
    return rowLoop(carried, reducers, body);
  Value low, high;
  std::optional<int64_t> count;
  bounds(level, low, high, count);
  auto points = [&](Value from, Value to, ArrayRef<Value> start) {
    return e.forLoop(from, to, 1, start, [&](Value iv, ValueRange inner) {
      at[reduced[level]] = e.addDim(iv);
      return loop(level + 1, SmallVector<Value>(inner), reducers, body);
    });
  };
  return emitBlocked(e, blocksAt(level), low, high, 1, count, reducers, carried,
                     points);
}

SmallVector<Value> Nest::columnPoint(ArrayRef<Value> carried,
                                     ArrayRef<Reducer> reducers, Body body) {
  SmallVector<Value> result;
  for (unsigned u = 0; u < vectors(); ++u) {
    auto point = [&] {
      if (columnLane)
        at[columnLoop] = columnLane + int64_t(u) * int64_t(e.lanes);
      SmallVector<Value> elements = body(domain.index(at), u);
      for (auto [r, reducer] : llvm::enumerate(reducers))
        result.push_back(widened(
            reducer.combine(e, carried[u * reducers.size() + r], elements[r])));
      return Value();
    };
    if (!masks.empty() && masks[u])
      e.withMask(masks[u], point, maskLevel);
    else
      point();
  }
  return result;
}

SmallVector<Value> Nest::rowLoop(ArrayRef<Value> carried,
                                 ArrayRef<Reducer> reducers, Body body) {
  unsigned loopNumber = reduced.back();
  size_t n = reducers.size();
  int64_t lanes = e.lanes, step = lanes * kAccumulators;
  Value low, high;
  std::optional<int64_t> count;
  bounds(reduced.size() - 1, low, high, count);
  // Adds the vector at `lane` to accumulator `copy`.
  auto accumulate = [&](SmallVector<Value> &sums, AffineExpr lane,
                        int64_t copy) {
    at[loopNumber] = lane;
    SmallVector<Value> elements = body(domain.index(at), 0);
    for (size_t r = 0; r < n; ++r) {
      Value &sum = sums[copy * n + r];
      Value next = reducers[r].combine(e, sum, e.splat(elements[r]));
      sum = e.getMask() ? e.select(e.getMask(), next, sum) : next;
    }
  };
  auto roundDown = [&](int64_t multiple) -> Value {
    if (count)
      return e.add(low, e.index(*count / multiple * multiple));
    Value size = e.sub(high, low), by = e.index(multiple);
    return e.add(low, e.mul(arith::DivUIOp::create(e.b, size, by), by));
  };

  SmallVector<Value> sums(carried);
  Value blocks = roundDown(step), vectors = roundDown(lanes);
  auto run = [&](Value from, Value to, ArrayRef<Value> start) {
    return e.forLoop(from, to, step, start, [&](Value iv, ValueRange inner) {
      AffineExpr lane = e.addDim(iv, /*lane=*/true);
      SmallVector<Value> next(inner);
      for (int64_t u = 0; u < kAccumulators; ++u) {
        e.group = {unsigned(u), unsigned(kAccumulators)};
        accumulate(next, lane + u * lanes, u);
      }
      e.group = {};
      return next;
    });
  };
  std::optional<int64_t> steps;
  if (count)
    steps = *count / step;
  if (!steps || *steps)
    sums = emitBlocked(e, blocksAt(reduced.size() - 1), low, blocks, step,
                       steps, reducers, sums, run);
  if (!count || *count % step >= lanes)
    sums = e.forLoop(blocks, vectors, lanes, sums,
                     [&](Value iv, ValueRange inner) {
                       SmallVector<Value> next(inner);
                       accumulate(next, e.addDim(iv, /*lane=*/true), 0);
                       return next;
                     });
  if (lanes == 1 || (count && *count % lanes == 0))
    return sums;
  auto rest = [&] {
    SmallVector<Value> next = sums;
    AffineExpr lane = e.addDim(vectors, /*lane=*/true);
    e.withMask(maskBelow(e, vectors, high), [&] {
      accumulate(next, lane, 1);
      return Value();
    });
    return next;
  };
  if (count)
    return rest();
  return e.ifThen(e.cmpi(arith::CmpIPredicate::slt, vectors, high), rest,
                  [&] { return sums; });
}

void Nest::forEach(function_ref<void(Index, unsigned)> body) {
  std::function<void(unsigned)> run = [&](unsigned level) {
    if (level == reduced.size()) {
      columnPoint({}, {}, [&](Index index, unsigned u) {
        body(index, u);
        return SmallVector<Value>();
      });
      return;
    }
    Value low, high;
    std::optional<int64_t> count;
    bounds(level, low, high, count);
    if (laneReduced && level + 1 == reduced.size()) {
      vectorLoop(e, low, high, count, [&](AffineExpr lane) {
        at[reduced[level]] = lane;
        body(domain.index(at), 0);
      });
      return;
    }
    e.forLoop(low, high, 1, {}, [&](Value iv, ValueRange) {
      at[reduced[level]] = e.addDim(iv);
      run(level + 1);
      return SmallVector<Value>();
    });
  };
  run(0);
}
