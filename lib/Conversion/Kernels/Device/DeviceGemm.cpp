//===- DeviceGemm.cpp - contractions by the threads of blocks -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Device/DeviceGemm.h"
#include "Device/DeviceContraction.h"
#include "Device/DeviceGemmTile.h"
#include "Kinds/GeneratedKernel.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

void DeviceGemm::chooseShape(int64_t multiprocessors,
                             const ContractionVariant &variant) {
  auto bytes = [](Type type) {
    return int64_t(type.getIntOrFloatBitWidth()) / 8;
  };
  shape = chooseTile({batch, m, n, k, onTensorCores(), bytes(type),
                      std::max(bytes(aElement), bytes(bElement)),
                      bytes(operand.type), aLanes, bLanes},
                     multiprocessors, variant);
}

ContractionShape DeviceGemm::costShape() const {
  ContractionShape cost;
  double across = double(batch) * double(tilesM()) * double(tilesN());
  double deep = double(parts() * llvm::alignTo(shape.partLength, slice()));
  cost.products = double(batch) * double(m) * double(n) * double(k);
  cost.computed =
      across * double(shape.m * shape.n) * double(llvm::alignTo(k, slice()));
  double bits = double(shape.m * aElement.getIntOrFloatBitWidth() +
                       shape.n * bElement.getIntOrFloatBitWidth());
  cost.tileBytes = across * deep * bits / 8;
  cost.blocks = blocks();
  cost.share = shape.share;
  cost.resident = isLarge() ? 2 : 4;
  return cost;
}

int64_t DeviceGemm::scratchBytes() const {
  if (parts() == 1)
    return 0;
  return parts() * batch * m * n * (type.getIntOrFloatBitWidth() / 8);
}

static Value below(Emitter &e, Value x, int64_t limit) {
  return e.cmpi(arith::CmpIPredicate::slt, x, e.index(limit));
}

/// Returns quotient and remainder of a non-negative number.
static std::pair<Value, Value> divided(Emitter &e, Value x, int64_t by) {
  Value divisor = e.index(by);
  return {arith::DivUIOp::create(e.b, x, divisor),
          arith::RemUIOp::create(e.b, x, divisor)};
}

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

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

/// Begins to load the slice whose first depth is `from`. Nothing here reads
/// what was loaded, so that no load waits for another one.
void DeviceGemm::emitLoads(Emitter &e, const Tile &tile, Value thread,
                           Value from, const Slice &s) const {
  forEachVector(e, thread, s, [&](Value depth, Value across, Value staged) {
    Value where = e.add(s.origin, across), deep = e.add(from, depth);
    Value inside;
    if (k % slice())
      inside = e.cmpi(arith::CmpIPredicate::slt, deep, tile.high);
    if (s.limit % this->tile(s.isA)) {
      Value fits = below(e, where, s.limit);
      inside = inside ? e.andi(inside, fits) : fits;
    }
    Value loaded = s.isA
                       ? s.element(e, tile.batch, where, deep, s.lanes, inside)
                       : s.element(e, tile.batch, deep, where, s.lanes, inside);
    Value to[] = {e.threadIndex(), staged};
    if (s.lanes == 1)
      memref::StoreOp::create(e.b, loaded, s.staged, to);
    else
      vector::StoreOp::create(e.b, loaded, s.staged, to);
  });
}

/// Copies what emitLoads loaded to buffer `number`, in the form of operands.
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

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Threads form a square of 16 x 16, and of each square of 64 x 64 elements
/// every thread computes 4 x 4.
void DeviceGemm::emitProducts(Emitter &e, const Tile &tile, Value thread,
                              Value number) const {
  auto [threadRow, threadColumn] = divided(e, thread, 16);
  Value row = e.add(e.mul(threadRow, e.index(4)), bufferStart(e, number, true)),
        column = e.add(e.mul(threadColumn, e.index(4)),
                       bufferStart(e, number, false));
  int64_t rows = 4 * squaresM(), columns = 4 * squaresN();
  SmallVector<Value> start;
  for (int64_t i = 0; i < rows * columns; ++i)
    start.push_back(memref::LoadOp::create(e.b, tile.sums, sumAt(e, i)));
  VectorType four = VectorType::get({4}, type);
  SmallVector<Value> total = e.forLoop(
      e.index(0), e.index(slice()), 1, start, [&](Value depth, ValueRange sum) {
        // Both operands have the form [k][m or n].
        auto read = [&](Value shared, Value at, bool isA) {
          Value base = e.mul(depth, e.index(pitch(isA)));
          SmallVector<Value> elements;
          for (int64_t s = 0; s < this->tile(isA) / 64; ++s) {
            Value from = e.add(e.add(base, at), e.index(64 * s));
            Value vector =
                vector::LoadOp::create(e.b, four, shared, asIndex(e, from));
            for (int64_t i = 0; i < 4; ++i)
              elements.push_back(vector::ExtractOp::create(e.b, vector, i));
          }
          return elements;
        };
        SmallVector<Value> x = read(tile.sharedA, row, true),
                           y = read(tile.sharedB, column, false);
        SmallVector<Value> next;
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < columns; ++j)
            next.push_back(e.fma(x[i], y[j], sum[i * columns + j]));
        return next;
      });
  for (int64_t i = 0; i < rows * columns; ++i)
    memref::StoreOp::create(e.b, total[i], tile.sums, sumAt(e, i));
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// Stores adjacent elements where they lie inside of the result.
void DeviceGemm::emitResult(Emitter &e, const Tile &tile, Value row,
                            Value column, ArrayRef<Value> sums) const {
  Value elements = sums.front();
  if (sums.size() > 1)
    elements = vector::FromElementsOp::create(
        e.b, VectorType::get({int64_t(sums.size())}, type), sums);
  auto inside = [&]() -> Value {
    Value result;
    if (m % shape.m)
      result = below(e, row, m);
    if (n % shape.n) {
      Value fits = below(e, column, n);
      result = result ? e.andi(result, fits) : fits;
    }
    return result;
  };
  auto put = [&] {
    if (parts() == 1) {
      store(e, tile.batch, row, column, elements);
      return SmallVector<Value>();
    }
    // Partial sums are stored as [part][batch][m][n].
    Value offset = e.add(e.mul(tile.part, e.index(batch)), tile.batch);
    offset = e.add(e.mul(offset, e.index(m)), row);
    offset = e.add(e.mul(offset, e.index(n)), column);
    Value address =
        LLVM::GEPOp::create(e.b, e.scratch.getType(), type, e.scratch,
                            ArrayRef<LLVM::GEPArg>{offset});
    LLVM::StoreOp::create(e.b, elements, address,
                          type.getIntOrFloatBitWidth() / 8);
    return SmallVector<Value>();
  };
  if (Value condition = inside())
    e.ifThen(condition, put, nullptr);
  else
    put();
}

void DeviceGemm::emitResults(Emitter &e, const Tile &tile, Value thread) const {
  // Parts are stored row by row.
  bool alongN = parts() > 1 || cAlongN;
  int64_t lanes = std::min<int64_t>(cLanes, 4);
  if (parts() > 1)
    lanes = n % 4 ? 1 : 4;
  auto [threadRow, threadColumn] = divided(e, thread, 16);
  Value firstRow = e.add(tile.row, e.mul(threadRow, e.index(4)));
  Value firstColumn = e.add(tile.column, e.mul(threadColumn, e.index(4)));
  int64_t rows = 4 * squaresM(), columns = 4 * squaresN();
  // Element i of a thread's side is at position 64 * (i / 4) + i % 4.
  auto place = [](int64_t i) { return i / 4 * 64 + i % 4; };
  for (int64_t outer = 0; outer < (alongN ? rows : columns); ++outer)
    for (int64_t inner = 0; inner < (alongN ? columns : rows); inner += lanes) {
      int64_t i = alongN ? outer : inner, j = alongN ? inner : outer;
      SmallVector<Value> sums;
      for (int64_t l = 0; l < lanes; ++l)
        sums.push_back(memref::LoadOp::create(
            e.b, tile.sums,
            sumAt(e, alongN ? i * columns + j + l : (i + l) * columns + j)));
      emitResult(e, tile, e.add(firstRow, e.index(place(i))),
                 e.add(firstColumn, e.index(place(j))), sums);
    }
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// Multiplies the slice in the only buffer while the next one is loaded, which
/// takes its place when all threads have read it.
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
    if (onTensorCores())
      emitWarpProducts(e, tile, thread, e.index(0));
    else
      emitProducts(e, tile, thread, e.index(0));
  });
  e.forThreads(kThreads, [&](Value thread) {
    ifMore([&] { return copy(thread, e.index(0)); });
  });
}

/// Adds the products of all slices. Each interval multiplies one while the next
/// one is loaded, and stores that to the other buffer, which nobody reads.
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
      if (onTensorCores())
        emitWarpProducts(e, tile, thread, number);
      else
        emitProducts(e, tile, thread, number);
      e.ifThen(
          more, [&] { return copy(thread, e.sub(e.index(1), number)); },
          nullptr);
    });
    return SmallVector<Value>();
  });
}

void DeviceGemm::emitTile(Emitter &e, Value block) const {
  SmallVector<Value> at = split(e, block, {batch, parts(), tilesM(), tilesN()});
  Tile tile;
  tile.batch = at[0];
  tile.part = at[1];
  tile.row = e.mul(at[2], e.index(shape.m));
  tile.column = e.mul(at[3], e.index(shape.n));
  tile.low = e.mul(at[1], e.index(shape.partLength));
  tile.high = e.minimum(e.add(tile.low, e.index(shape.partLength)), e.index(k));
  auto shared = [&](bool isA) {
    return e.sharedBuffer(operand.type, shape.buffers * sharedElements(isA));
  };
  tile.sharedA = shared(/*isA=*/true);
  tile.sharedB = shared(/*isA=*/false);
  tile.sums = e.privateBuffer(type, kThreads, sumsOfThread());
  // Two blocks fit a multiprocessor at once, with 128 registers a thread.
  if (isLarge())
    e.stage->setAttr("ckopt.gpu.resident", e.b.getI32IntegerAttr(2));
  e.forThreads(kThreads, [&](Value) {
    for (int64_t i = 0; i < sumsOfThread(); ++i)
      memref::StoreOp::create(e.b, e.constant(type, 0.0), tile.sums,
                              sumAt(e, i));
  });
  if (k > 0)
    emitSlices(e, tile);
  e.forThreads(kThreads, [&](Value thread) {
    if (onTensorCores())
      emitWarpResults(e, tile, thread);
    else
      emitResults(e, tile, thread);
  });
}

int64_t DeviceGemm::sumLanes() const {
  int64_t wide = 128 / int64_t(type.getIntOrFloatBitWidth());
  return n % wide == 0 && cAlongN && int64_t(cLanes) >= wide ? wide : 1;
}

/// Loads of kInFlight parts are issued before the first one is added.
void DeviceGemm::emitSum(Emitter &e, Value first) const {
  constexpr int64_t kInFlight = 8;
  int64_t lanes = sumLanes(), whole = parts() / kInFlight * kInFlight;
  Type loaded = lanes == 1 ? type : VectorType::get({lanes}, type);
  Value pitch = e.index(batch * m * n);
  auto load = [&](Value part) -> Value {
    Value offset = e.add(e.mul(part, pitch), first);
    Value address =
        LLVM::GEPOp::create(e.b, e.scratch.getType(), type, e.scratch,
                            ArrayRef<LLVM::GEPArg>{offset});
    return LLVM::LoadOp::create(e.b, loaded, address,
                                type.getIntOrFloatBitWidth() / 8);
  };
  auto some = [&](Value part, int64_t count, Value total) {
    SmallVector<Value> values;
    for (int64_t i = 0; i < count; ++i)
      values.push_back(load(e.add(part, e.index(i))));
    for (Value value : values)
      total = arith::AddFOp::create(e.b, total, value);
    return total;
  };
  Value total = arith::ConstantOp::create(e.b, e.b.getZeroAttr(loaded));
  total = e.forLoop(e.index(0), e.index(whole), kInFlight, total,
                    [&](Value part, ValueRange sum) {
                      return SmallVector<Value>{some(part, kInFlight, sum[0])};
                    })
              .front();
  total = some(e.index(whole), parts() - whole, total);
  SmallVector<Value> at = split(e, first, {batch, m, n});
  store(e, at[0], at[1], at[2], total);
}
