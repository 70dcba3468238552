//===- AttentionBounds.cpp - blocks that attention leaves out on a GPU ----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Causality and windows bound blocks of columns by numbers, segments by a loop
// over the ranges of 64 numbers each, which a launch has found before.
//
//===----------------------------------------------------------------------===//
#include "AttentionTile.h"
#include "Kinds/GeneratedKernel.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

bool AttentionTile::leavesOut() const {
  if (!a.causal && !a.hasWindow && !a.hasSegments)
    return false;
  // Between the ends the number of keys is no smaller.
  auto hasKey = [&](int64_t row) {
    int64_t first = a.hasWindow ? std::max<int64_t>(row - a.window + 1, 0) : 0,
            last = a.causal ? std::min(row + a.offset, a.keys - 1) : a.keys - 1;
    return a.hasSegments ? first <= row && row <= last : first <= last;
  };
  return a.zeroEmptyRows || (hasKey(0) && hasKey(a.queries - 1));
}

/// Returns ceil(max(x, 0) / 64), at most `all`.
static Value blocksBelow(Emitter &e, Value x, int64_t all) {
  constexpr int64_t tile = AttentionTile::kTile;
  x = e.add(e.maximum(x, e.index(0)), e.index(tile - 1));
  return e.minimum(arith::DivUIOp::create(e.b, x, e.index(tile)), e.index(all));
}
/// Returns max(x, 0) / 64.
static Value blockOf(Emitter &e, Value x) {
  return arith::DivUIOp::create(e.b, e.maximum(x, e.index(0)),
                                e.index(AttentionTile::kTile));
}

AttentionTile::Blocks AttentionTile::keyBlocksOf(const Head &h, Value row) {
  int64_t all = llvm::divideCeil(a.keys, kTile);
  Value first = e.index(0), end = e.index(all);
  if (!leavesOut())
    return {first, end};
  if (a.causal) // the number of keys of the last row
    end = blocksBelow(e, e.add(row, e.index(kTile + a.offset)), all);
  if (a.hasWindow)
    first = blockOf(e, e.add(row, e.index(1 - a.window)));
  if (a.hasSegments)
    meetSegments(h, row, first, end);
  if (a.hasWindow || a.hasSegments)
    end = e.maximum(e.sub(end, first), e.index(0));
  return {e.minimum(first, e.index(all - 1)), end};
}

AttentionTile::Blocks AttentionTile::queryBlocksOf(const Head &h, Value key) {
  int64_t all = llvm::divideCeil(a.queries, kTile);
  Value first = e.index(0), end = e.index(all);
  if (!leavesOut())
    return {first, end};
  if (a.causal)
    first = blockOf(e, e.sub(key, e.index(a.offset)));
  if (a.hasWindow) // the number of queries that read the last key, or before
    end = blocksBelow(e, e.add(key, e.index(kTile - 1 + a.window)), all);
  if (a.hasSegments)
    meetSegments(h, key, first, end);
  return {e.minimum(first, e.index(all - 1)),
          e.maximum(e.sub(end, first), e.index(0))};
}

Value AttentionTile::segmentAddress(Value base, Value offset) {
  return LLVM::GEPOp::create(e.b, base.getType(), e.b.getI64Type(), base,
                             ArrayRef<LLVM::GEPArg>{offset});
}

Value AttentionTile::segment(const Head &h, Place place) {
  Value at = of(place);
  if (a.keys % kTile)
    at = e.minimum(at, e.index(a.keys - 1));
  at = e.add(e.mul(h.batch, e.index(a.segments)), at);
  return LLVM::LoadOp::create(
      e.b, e.b.getI64Type(), segmentAddress(e.argument(in.segments.number), at),
      8);
}

void AttentionTile::emitRanges(Value block) {
  int64_t tiles = llvm::divideCeil(a.keys, kTile);
  e.forThreads(kDotThreads, [&](Value thread) {
    Value item = e.add(e.mul(block, e.index(kDotThreads)), thread);
    auto emit = [&] {
      SmallVector<Value> at = split(e, item, {ranges(a) / tiles, tiles});
      Head h{at[0], {}, {}};
      Value start = e.mul(at[1], e.index(kTile));
      Value own = segment(h, {start, e.index(0)});
      SmallVector<Value> range =
          e.forLoop(e.index(1), e.index(kTile), 1, {own, own},
                    [&](Value i, ValueRange before) {
                      Value next = segment(h, {start, i});
                      return SmallVector<Value>{e.minimum(before[0], next),
                                                e.maximum(before[1], next)};
                    });
      for (int64_t i = 0; i < 2; ++i) {
        Value to = e.add(e.mul(item, e.index(2)), e.index(i + rangeStart()));
        LLVM::StoreOp::create(e.b, range[size_t(i)],
                              segmentAddress(e.scratch, to), 8);
      }
      return SmallVector<Value>();
    };
    e.ifThen(below(item, ranges(a)), emit, nullptr);
  });
}

void AttentionTile::meetSegments(const Head &h, Value start, Value &first,
                                 Value &end) {
  int64_t tiles = llvm::divideCeil(a.keys, kTile);
  Value sample = a.segments ? e.mul(h.batch, e.index(tiles)) : e.index(0);
  auto bound = [&](Value tile, int64_t i) -> Value {
    Value at = e.add(e.mul(e.add(sample, tile), e.index(2)),
                     e.index(i + rangeStart()));
    return LLVM::LoadOp::create(e.b, e.b.getI64Type(),
                                segmentAddress(e.scratch, at), 8);
  };
  Value own = blockOf(e, start), least = bound(own, 0), most = bound(own, 1);
  SmallVector<Value> met =
      e.forLoop(e.index(0), e.index(tiles), 1, {e.index(tiles), e.index(0)},
                [&](Value tile, ValueRange before) {
                  Value meets = e.andi(
                      e.cmpi(arith::CmpIPredicate::sle, bound(tile, 0), most),
                      e.cmpi(arith::CmpIPredicate::sge, bound(tile, 1), least));
                  return SmallVector<Value>{
                      e.select(meets, e.minimum(before[0], tile), before[0]),
                      e.select(meets, e.add(tile, e.index(1)), before[1])};
                });
  first = e.maximum(first, met[0]);
  end = e.minimum(end, met[1]);
}
