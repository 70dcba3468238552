//===- DeviceGemm.cpp - contractions by the threads of blocks -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Device/DeviceGemm.h"
#include "Device/DeviceContraction.h"
#include "Device/DeviceGemmTile.h"
#include "Kinds/GeneratedKernel.h"
#include "ckopt/Dialect/Block/IR/BlockDialect.h"
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
                      bytes(operand.type), aLanes, bLanes,
                      isCopyable(true) && isCopyable(false)},
                     multiprocessors, variant);
}

bool DeviceGemm::isCopyable(bool isA) const {
  Type element = isA ? aElement : bElement;
  int64_t lanes = isA ? aLanes : bLanes;
  if (element != operand.type || element.isF64() ||
      lanes * element.getIntOrFloatBitWidth() < 32)
    return false;
  // Words may go anywhere; more of them keep their direction.
  return lanes == 1 || onTensorCores() || !isAlongK(isA);
}

Value Place::load(Emitter &e, Type element, unsigned lanes) const {
  Type type = lanes == 1 ? element : VectorType::get({int64_t(lanes)}, element);
  ++(lanes == 1 ? e.report.broadcasts : e.report.unitLoads);
  Value from = address;
  if (inside)
    from = arith::SelectOp::create(e.b, inside, from, e.zeros());
  return LLVM::LoadOp::create(e.b, type, from,
                              element.getIntOrFloatBitWidth() / 8);
}

void DeviceGemm::addCosts(SmallVectorImpl<ContractionShape> &costs) const {
  double products = double(batch) * double(m) * double(n) * double(k);
  double bits = double(shape.m * aElement.getIntOrFloatBitWidth() +
                       shape.n * bElement.getIntOrFloatBitWidth());
  auto add = [&](int64_t count, int64_t parts, int64_t length) {
    ContractionShape cost;
    cost.products =
        products * double(count) / double(std::max<int64_t>(tiles(), 1));
    cost.computed =
        double(count * shape.m * shape.n) * double(llvm::alignTo(k, slice()));
    cost.tileBytes = double(count) * bits / 8 *
                     double(parts * llvm::alignTo(length, slice()));
    cost.blocks = count * parts;
    cost.share = shape.share;
    cost.resident = shape.resident;
    if (parts > 1) // stored, and loaded to be added
      cost.tileBytes += 2 * double(scratchBytes());
    if (addend)
      cost.tileBytes += double(count * shape.m * shape.n) *
                        double(cElement.getIntOrFloatBitWidth()) / 8;
    costs.push_back(cost);
  };
  if (shape.wholeTiles)
    add(shape.wholeTiles, 1, k);
  add(partTiles(), parts(), shape.partLength);
}

int64_t DeviceGemm::scratchBytes() const {
  if (parts() == 1)
    return 0;
  return parts() * partTiles() * shape.m * shape.n *
         (type.getIntOrFloatBitWidth() / 8);
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

/// Returns where a vector of the slice lies whose first depth is `from`.
Place DeviceGemm::placeOf(Emitter &e, const Tile &tile, Value from,
                          const Slice &s, Value depth, Value across) const {
  Value where = e.add(s.origin, across), deep = e.add(from, depth);
  Value inside;
  if (k % slice())
    inside = e.cmpi(arith::CmpIPredicate::slt, deep, tile.high);
  if (s.limit % this->tile(s.isA)) {
    Value fits = below(e, where, s.limit);
    inside = inside ? e.andi(inside, fits) : fits;
  }
  return s.isA ? s.element(e, tile.batch, where, deep, inside)
               : s.element(e, tile.batch, deep, where, inside);
}

/// Begins to load the slice whose first depth is `from`. Nothing here reads
/// what was loaded, so that no load waits for another one.
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

/// Begins to copy the slice whose first depth is `from` to buffer `number`.
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
                               place.address, place.inside, s.lanes);
    ++(s.lanes == 1 ? e.report.broadcasts : e.report.unitLoads);
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

/// Returns one element, or a vector of several.
static Value together(Emitter &e, ArrayRef<Value> sums) {
  if (sums.size() == 1)
    return sums.front();
  Type type = sums.front().getType();
  return vector::FromElementsOp::create(
      e.b, VectorType::get({int64_t(sums.size())}, type), sums);
}

/// Stores adjacent sums of a part of a tile; parts are stored as
/// [part][tile][m][n] of whole tiles.
void DeviceGemm::emitPartial(Emitter &e, const Tile &tile,
                             const Result &result) const {
  Value offset =
      e.add(e.mul(tile.partial, e.index(shape.m)), e.sub(result.row, tile.row));
  offset =
      e.add(e.mul(offset, e.index(shape.n)), e.sub(result.column, tile.column));
  Value address = LLVM::GEPOp::create(e.b, e.scratch.getType(), type, e.scratch,
                                      ArrayRef<LLVM::GEPArg>{offset});
  LLVM::StoreOp::create(e.b, together(e, result.sums), address,
                        type.getIntOrFloatBitWidth() / 8);
}

/// Returns whether elements lie inside of the result; null: all do.
Value DeviceGemm::insideOf(Emitter &e, Value row, Value column) const {
  Value inside;
  if (m % shape.m)
    inside = below(e, row, m);
  if (n % shape.n) {
    Value fits = below(e, column, n);
    inside = inside ? e.andi(inside, fits) : fits;
  }
  return inside;
}

/// Loads adjacent elements of what the product is added to, as sums are.
Value DeviceGemm::loadAddend(Emitter &e, const Tile &tile, Value row,
                             Value column, unsigned lanes) const {
  Value loaded = addend(e, tile.batch, row, column, insideOf(e, row, column))
                     .load(e, cElement, lanes);
  return formed(e, loaded, {type});
}

/// Stores adjacent elements where they lie inside of the result.
void DeviceGemm::emitStore(Emitter &e, const Tile &tile, Value row,
                           Value column, Value elements) const {
  auto put = [&] {
    store(e, tile.batch, row, column, elements);
    return SmallVector<Value>();
  };
  if (Value inside = insideOf(e, row, column))
    e.ifThen(inside, put, nullptr);
  else
    put();
}

/// Stores what a thread has of a tile, or of a part of it. The result may lie
/// where the addend does, so that no load can pass a store before it: some are
/// issued together, into registers that slices have left.
void DeviceGemm::emitResults(Emitter &e, const Tile &tile,
                             ArrayRef<Result> results) const {
  // Where a block is alone on its multiprocessor, nobody hides its waiting.
  size_t words = shape.resident == 1 ? 32 : 16;
  size_t most = words * 32 / type.getIntOrFloatBitWidth();
  while (!results.empty()) {
    size_t lanes = results.front().sums.size();
    ArrayRef<Result> some = results.take_front(most / lanes);
    SmallVector<Value> loaded;
    if (addend && !tile.partial)
      for (const Result &r : some)
        loaded.push_back(loadAddend(e, tile, r.row, r.column, lanes));
    for (auto [i, r] : llvm::enumerate(some)) {
      if (tile.partial) {
        emitPartial(e, tile, r);
        continue;
      }
      Value sum = together(e, r.sums);
      if (!loaded.empty())
        sum = arith::AddFOp::create(e.b, loaded[i], sum);
      emitStore(e, tile, r.row, r.column, sum);
    }
    results = results.drop_front(some.size());
  }
}

SmallVector<DeviceGemm::Result>
DeviceGemm::resultsOfThreads(Emitter &e, const Tile &tile, Value thread) const {
  // Parts are stored row by row.
  bool alongN = tile.partial || cAlongN;
  int64_t lanes = tile.partial ? 4 : std::min<int64_t>(cLanes, 4);
  auto [threadRow, threadColumn] = divided(e, thread, 16);
  Value firstRow = e.add(tile.row, e.mul(threadRow, e.index(4)));
  Value firstColumn = e.add(tile.column, e.mul(threadColumn, e.index(4)));
  int64_t rows = 4 * squaresM(), columns = 4 * squaresN();
  // Element i of a thread's side is at position 64 * (i / 4) + i % 4.
  auto place = [](int64_t i) { return i / 4 * 64 + i % 4; };
  SmallVector<Result> results;
  for (int64_t outer = 0; outer < (alongN ? rows : columns); ++outer)
    for (int64_t inner = 0; inner < (alongN ? columns : rows); inner += lanes) {
      int64_t i = alongN ? outer : inner, j = alongN ? inner : outer;
      Result result{e.add(firstRow, e.index(place(i))),
                    e.add(firstColumn, e.index(place(j))),
                    {}};
      for (int64_t l = 0; l < lanes; ++l)
        result.sums.push_back(memref::LoadOp::create(
            e.b, tile.sums,
            sumAt(e, alongN ? i * columns + j + l : (i + l) * columns + j)));
      results.push_back(result);
    }
  return results;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

void DeviceGemm::emitSliceProducts(Emitter &e, const Tile &tile, Value thread,
                                   Value number) const {
  if (onTensorCores())
    emitWarpProducts(e, tile, thread, number);
  else
    emitProducts(e, tile, thread, number);
}

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
    emitSliceProducts(e, tile, thread, e.index(0));
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
    if (shape.buffers == 1 && shape.depth(k) > slice()) {
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

/// Adds the products of all slices, of which all buffers but one are filled
/// ahead. A buffer is filled again behind the barrier that follows the wait for
/// the next slice, when all threads have read it.
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
  e.forLoop(tile.low, tile.high, slice(), {}, [&](Value from, ValueRange) {
    e.forThreads(kThreads,
                 [&](Value) { block::WaitCopiesOp::create(e.b, ahead - 1); });
    e.forThreads(kThreads, [&](Value thread) {
      auto numberOf = [&](Value first) -> Value {
        Value done = arith::DivUIOp::create(e.b, e.sub(first, tile.low),
                                            e.index(slice()));
        return arith::RemUIOp::create(e.b, done, e.index(shape.buffers));
      };
      Value next = e.add(from, e.index(ahead * slice()));
      copy(thread, next, numberOf(next));
      emitSliceProducts(e, tile, thread, numberOf(from));
    });
    return SmallVector<Value>();
  });
}

/// Finds the tile of a block, and its part of k.
DeviceGemm::Tile DeviceGemm::tileOf(Emitter &e, Value block, Value &isWhole,
                                    Value &partial) const {
  Value number = block, part = e.index(0);
  if (parts() > 1) {
    Value past = e.sub(block, e.index(shape.wholeTiles));
    if (shape.wholeTiles)
      isWhole = below(e, block, shape.wholeTiles);
    auto [inParts, ofTile] = divided(e, past, partTiles());
    part = inParts, partial = past;
    number = e.add(ofTile, e.index(shape.wholeTiles));
    if (isWhole) {
      number = e.select(isWhole, block, number);
      part = e.select(isWhole, e.index(0), part);
    }
  }
  SmallVector<Value> at = split(e, number, {batch, tilesM(), tilesN()});
  Tile tile;
  tile.batch = at[0];
  tile.row = e.mul(at[1], e.index(shape.m));
  tile.column = e.mul(at[2], e.index(shape.n));
  tile.low = e.mul(part, e.index(shape.partLength));
  tile.high = e.minimum(e.add(tile.low, e.index(shape.partLength)), e.index(k));
  if (isWhole)
    tile.high = e.select(isWhole, e.index(k), tile.high);
  return tile;
}

void DeviceGemm::emitTile(Emitter &e, Value block) const {
  Value isWhole, partial;
  Tile tile = tileOf(e, block, isWhole, partial);
  auto shared = [&](bool isA) {
    return e.sharedBuffer(operand.type, shape.buffers * sharedElements(isA));
  };
  tile.sharedA = shared(/*isA=*/true);
  tile.sharedB = shared(/*isA=*/false);
  tile.sums = e.privateBuffer(type, kThreads, sumsOfThread());
  // With 128 registers a thread, two blocks fit a multiprocessor at once.
  if (shape.resident == 2)
    e.stage->setAttr("ckopt.gpu.resident", e.b.getI32IntegerAttr(2));
  e.forThreads(kThreads, [&](Value) {
    for (int64_t i = 0; i < sumsOfThread(); ++i)
      memref::StoreOp::create(e.b, e.constant(type, 0.0), tile.sums,
                              sumAt(e, i));
  });
  if (k > 0)
    shape.isCopied ? emitSlicesAsync(e, tile) : emitSlices(e, tile);
  auto results = [&](Value partial) {
    Tile to = tile;
    to.partial = partial;
    e.forThreads(kThreads, [&](Value thread) {
      emitResults(e, to,
                  onTensorCores() ? resultsOfWarps(e, to, thread)
                                  : resultsOfThreads(e, to, thread));
    });
    return SmallVector<Value>();
  };
  if (isWhole)
    e.ifThen(
        isWhole, [&] { return results({}); }, [&] { return results(partial); });
  else
    results(partial);
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
  Value pitch = e.index(partTiles() * shape.m * shape.n);
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
  SmallVector<Value> in = split(e, first, {partTiles(), shape.m, shape.n});
  SmallVector<Value> at = split(e, e.add(in[0], e.index(shape.wholeTiles)),
                                {batch, tilesM(), tilesN()});
  Tile tile;
  tile.batch = at[0];
  Value row = e.add(e.mul(at[1], e.index(shape.m)), in[1]),
        column = e.add(e.mul(at[2], e.index(shape.n)), in[2]);
  Value before;
  if (addend)
    before = loadAddend(e, tile, row, column, unsigned(lanes));
  Value total = arith::ConstantOp::create(e.b, e.b.getZeroAttr(loaded));
  total = e.forLoop(e.index(0), e.index(whole), kInFlight, total,
                    [&](Value part, ValueRange sum) {
                      return SmallVector<Value>{some(part, kInFlight, sum[0])};
                    })
              .front();
  total = some(e.index(whole), parts() - whole, total);
  if (before)
    total = arith::AddFOp::create(e.b, before, total);
  emitStore(e, tile, row, column, total);
}
