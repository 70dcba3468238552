//===- BlockNest.cpp - a row reduced by the threads of a block ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Device/BlockNest.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;
using codegen::Index;

/// The most threads of a block that reduce a row.
static constexpr int64_t kMostThreads = 256;

int64_t BlockNest::threadsFor(int64_t length, int64_t width) {
  int64_t wanted = llvm::divideCeil(std::max<int64_t>(length, 1), width);
  return std::clamp<int64_t>(llvm::PowerOf2Ceil(wanted), kWarp, kMostThreads);
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

void BlockNest::forEach(function_ref<void(Index, unsigned)> body) {
  e.forThreads(threads, [&](Value thread) {
    points(0, thread, {}, [&](ArrayRef<Value>) {
      body(domain.index(at), 0);
      return SmallVector<Value>();
    });
  });
}
