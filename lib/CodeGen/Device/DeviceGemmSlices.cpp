//===- DeviceGemmSlices.cpp - slices of operands in shared memory ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Moves slices of both operands to shared memory while others are multiplied:
// through registers, with one or two buffers, or by asynchronous copies, with
// three or four.
//
//===----------------------------------------------------------------------===//
#include "DeviceContraction.h"
#include "DeviceGemm.h"
#include "DeviceGemmTile.h"
#include "ckopt/Dialect/Block/IR/BlockDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

/// Returns depth and position across for element number `at`, the first of its
/// vector, of a slice. Adjacent threads load adjacent elements. If vectors
/// across must be stored along k, consecutive positions across would share few
/// banks: then groups of 4 threads load adjacent vectors, and the 8 groups of a
/// warp load 8 depths, whose elements are adjacent in shared memory.
std::pair<Value, Value> DeviceGemm::placeOf(Emitter &e, Value at,
                                            const Slice &s) const {
  if (s.alongDepth) {
    auto [across, depth] = divided(e, at, slice());
    return {depth, across};
  }
  if (s.lanes == 1 || !depthInside(s.isA))
    return divided(e, at, tile(s.isA));
  constexpr int64_t kTogether = 4, kDepths = 8;
  auto [group, vector] =
      divided(e, arith::DivUIOp::create(e.b, at, e.index(s.lanes)), kTogether);
  auto [rest, depth] = divided(e, group, kDepths);
  auto [depths, groups] = divided(e, rest, tile(s.isA) / (kTogether * s.lanes));
  return {e.add(e.mul(depths, e.index(kDepths)), depth),
          e.mul(e.add(e.mul(groups, e.index(kTogether)), vector),
                e.index(s.lanes))};
}

/// Visits the calling thread's vectors of a slice, with the place of each among
/// its staged elements.
void DeviceGemm::forEachVector(
    Emitter &e, Value thread, const Slice &s,
    function_ref<void(Value, Value, Value)> body) const {
  Value first = e.mul(thread, e.index(s.lanes));
  int64_t elements = elementsOfThread(s.isA);
  assert(elements % s.lanes == 0);
  for (int64_t i = 0; i < elements; i += s.lanes) {
    auto [depth, across] = placeOf(e, e.add(first, e.index(i * kThreads)), s);
    body(depth, across, arith::ConstantIndexOp::create(e.b, i));
  }
}

/// Returns the place of the slice's vector whose first depth is `from`.
Place DeviceGemm::placeOf(Emitter &e, const Tile &tile, Value from,
                          const Slice &s, Value depth, Value across) const {
  Value where = e.add(s.origin, across), deep = e.add(from, depth);
  Value inside;
  if (k % slice())
    inside = e.cmpi(arith::CmpIPredicate::slt, deep, tile.high);
  if (s.limit % this->tile(s.isA)) {
    Value fits = isBelow(e, where, s.limit);
    inside = inside ? e.andi(inside, fits) : fits;
  }
  return s.isA ? s.element(e, tile.batch, where, deep, inside)
               : s.element(e, tile.batch, deep, where, inside);
}

/// Starts to load the slice whose first depth is `from`. Nothing here reads a
/// loaded element, so that no load waits for another one.
void DeviceGemm::emitLoads(Emitter &e, const Tile &tile, Value thread,
                           Value from, const Slice &s) const {
  forEachVector(e, thread, s, [&](Value depth, Value across, Value staged) {
    Value loaded = placeOf(e, tile, from, s, depth, across)
                       .load(e, s.isA ? aElement : bElement, s.lanes);
    Value to[] = {e.threadIndex(), staged};
    if (s.lanes == 1)
      memref::StoreOp::create(e.b, loaded, s.staged, to);
    else
      vector::StoreOp::create(e.b, loaded, s.staged, to);
  });
}

/// Starts to copy the slice whose first depth is `from` to buffer `number`.
void DeviceGemm::emitCopiesAsync(Emitter &e, const Tile &tile, Value thread,
                                 Value from, Value number,
                                 const Slice &s) const {
  bool depthInside = this->depthInside(s.isA);
  Value start = bufferStart(e, number, s.isA),
        pitch = e.index(this->pitch(s.isA));
  forEachVector(e, thread, s, [&](Value depth, Value across, Value) {
    Place place = placeOf(e, tile, from, s, depth, across);
    if (!place.inside)
      place.inside = arith::ConstantIntOp::create(e.b, 1, 1);
    Value to = depthInside ? e.add(e.mul(across, pitch), depth)
                           : e.add(e.mul(depth, pitch), across);
    block::CopyAsyncOp::create(e.b, s.shared, asIndex(e, e.add(start, to)),
                               place.address, place.inside, s.lanes,
                               place.isShared);
    ++(s.lanes == 1 ? e.report.broadcasts : e.report.unitLoads);
  });
}

/// Copies the elements that emitLoads loaded to buffer `number`, in the form of
/// operands.
void DeviceGemm::emitCopies(Emitter &e, Value thread, Value number,
                            const Slice &s) const {
  bool depthInside = this->depthInside(s.isA);
  int64_t pitch = this->pitch(s.isA);
  Value start = bufferStart(e, number, s.isA);
  forEachVector(e, thread, s, [&](Value depth, Value across, Value staged) {
    Value from[] = {e.threadIndex(), staged};
    Type element = s.isA ? aElement : bElement;
    Value loaded = s.lanes == 1
                       ? memref::LoadOp::create(e.b, s.staged, from).getResult()
                       : vector::LoadOp::create(
                             e.b, VectorType::get({int64_t(s.lanes)}, element),
                             s.staged, from);
    loaded = formed(e, loaded, operand);
    Value place = depthInside ? e.add(e.mul(across, e.index(pitch)), depth)
                              : e.add(e.mul(depth, e.index(pitch)), across);
    place = e.add(start, place);
    if (s.lanes == 1) {
      memref::StoreOp::create(e.b, loaded, s.shared, asIndex(e, place));
    } else if (s.alongDepth == depthInside) {
      vector::StoreOp::create(e.b, loaded, s.shared, asIndex(e, place));
    } else {
      for (unsigned i = 0; i < s.lanes; ++i) {
        Value to = e.add(place, e.index(i * pitch));
        memref::StoreOp::create(e.b, vector::ExtractOp::create(e.b, loaded, i),
                                s.shared, asIndex(e, to));
      }
    }
  });
}

Value DeviceGemm::bufferStart(Emitter &e, Value number, bool isA) const {
  return e.mul(number, e.index(sharedElements(isA)));
}
/// Multiplies the slice in the only buffer while the next one is loaded. That
/// replaces it when all threads have read it.
void DeviceGemm::emitOneBuffer(Emitter &e, const Tile &tile, Value from,
                               const SliceStep &load,
                               const SliceStep &copy) const {
  Value next = e.add(from, e.index(slice()));
  auto ifMore = [&](llvm::function_ref<SmallVector<Value>()> body) {
    Value more = e.cmpi(arith::CmpIPredicate::slt, next, tile.high);
    e.ifThen(more, body, nullptr);
  };
  e.forThreads(kThreads, [&](Value thread) {
    ifMore([&] { return load(thread, next); });
    emitSliceProducts(e, tile, thread, e.index(0));
  });
  e.forThreads(kThreads, [&](Value thread) {
    ifMore([&] { return copy(thread, e.index(0)); });
  });
}

/// Multiplies and adds all slices. Each interval multiplies one while the next
/// one is loaded, and stores that to the other buffer, which no thread reads.
void DeviceGemm::emitSlices(Emitter &e, const Tile &tile) const {
  auto stage = [&](bool isA) {
    return e.privateBuffer(isA ? aElement : bElement, kThreads,
                           elementsOfThread(isA));
  };
  const Slice slices[] = {
      {a, true, aAlongK, aLanes, tile.row, m, stage(true), tile.sharedA},
      {b, false, !bAlongN, bLanes, tile.column, n, stage(false), tile.sharedB}};
  auto load = [&](Value thread, Value from) {
    for (const Slice &s : slices)
      emitLoads(e, tile, thread, from, s);
    return SmallVector<Value>();
  };
  auto copy = [&](Value thread, Value number) {
    for (const Slice &s : slices)
      emitCopies(e, thread, number, s);
    return SmallVector<Value>();
  };
  e.forThreads(kThreads, [&](Value thread) {
    load(thread, tile.low);
    copy(thread, e.index(0));
  });
  e.forLoop(tile.low, tile.high, slice(), {}, [&](Value from, ValueRange) {
    if (shape.buffers == 1 && std::min(shape.partLength, k) > slice()) {
      emitOneBuffer(e, tile, from, load, copy);
      return SmallVector<Value>();
    }
    e.forThreads(kThreads, [&](Value thread) {
      Value number = arith::RemUIOp::create(
          e.b,
          arith::DivUIOp::create(e.b, e.sub(from, tile.low), e.index(slice())),
          e.index(2));
      Value next = e.add(from, e.index(slice()));
      Value more = e.cmpi(arith::CmpIPredicate::slt, next, tile.high);
      e.ifThen(more, [&] { return load(thread, next); }, nullptr);
      emitSliceProducts(e, tile, thread, number);
      e.ifThen(
          more, [&] { return copy(thread, e.sub(e.index(1), number)); },
          nullptr);
    });
    return SmallVector<Value>();
  });
}

/// Multiplies and adds all slices; all buffers but one are filled ahead. A
/// buffer is filled again behind the barrier that follows the wait for the next
/// slice, when all threads have read it.
void DeviceGemm::emitSlicesAsync(Emitter &e, const Tile &tile) const {
  const Slice slices[] = {
      {a, true, aAlongK, aLanes, tile.row, m, {}, tile.sharedA},
      {b, false, !bAlongN, bLanes, tile.column, n, {}, tile.sharedB}};
  int64_t ahead = shape.buffers - 1;
  auto copy = [&](Value thread, Value from, Value number) {
    Value more = e.cmpi(arith::CmpIPredicate::slt, from, tile.high);
    e.ifThen(
        more,
        [&] {
          for (const Slice &s : slices)
            emitCopiesAsync(e, tile, thread, from, number, s);
          return SmallVector<Value>();
        },
        nullptr);
    block::CommitCopiesOp::create(e.b);
  };
  e.forLoop(e.index(0), e.index(ahead), 1, {}, [&](Value number, ValueRange) {
    Value from = e.add(tile.low, e.mul(number, e.index(slice())));
    e.forThreads(kThreads, [&](Value thread) { copy(thread, from, number); });
    return SmallVector<Value>();
  });
  // The buffers that are multiplied and filled. They are counted, since a
  // remainder by three or four would be a chain of instructions that all warps
  // wait for at each barrier.
  auto after = [&](Value number) {
    Value next = e.add(number, e.index(1));
    Value isEnd =
        e.cmpi(arith::CmpIPredicate::eq, next, e.index(shape.buffers));
    return e.select(isEnd, e.index(0), next);
  };
  e.forLoop(tile.low, tile.high, slice(), {e.index(0), e.index(ahead)},
            [&](Value from, ValueRange numbers) {
              e.forThreads(kThreads, [&](Value) {
                block::WaitCopiesOp::create(e.b, ahead - 1);
              });
              e.forThreads(kThreads, [&](Value thread) {
                copy(thread, e.add(from, e.index(ahead * slice())), numbers[1]);
                emitSliceProducts(e, tile, thread, numbers[0]);
              });
              return SmallVector<Value>{after(numbers[0]), after(numbers[1])};
            });
}
