//===- DeviceGemm.cpp - contractions by the threads of blocks -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "DeviceGemm.h"
#include "DeviceContraction.h"
#include "DeviceGemmTile.h"
#include "Kinds/GeneratedKernel.h"
#include "ckopt/Dialect/Block/IR/BlockDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <algorithm>
#include <cmath>
#include <tuple>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

void DeviceGemm::chooseShape(const TileDevice &device,
                             const ContractionVariant &variant) {
  auto bytes = [](Type type) {
    return int64_t(type.getIntOrFloatBitWidth()) / 8;
  };
  shape = chooseTile({batch, m, n, k, onTensorCores(), bytes(type),
                      std::max(bytes(aElement), bytes(bElement)),
                      bytes(operand.type), aLanes, bLanes, aReads, bReads,
                      isCopyable(true) && isCopyable(false)},
                     device, variant);
  rowsGrouped = rowsTogether(device.multiprocessors);
}

int64_t DeviceGemm::rowsTogether(int64_t multiprocessors) const {
  double row = double(shape.m * aElement.getIntOrFloatBitWidth()) / aReads,
         column = double(shape.n * bElement.getIntOrFloatBitWidth()) / bReads,
         atOnce = double(multiprocessors * shape.resident);
  // A given number of tiles loads the fewest bytes if its rows load as much as
  // its columns.
  int64_t rows =
      std::max<int64_t>(std::llround(std::sqrt(atOnce * column / row)), 1);
  // If all columns fit next to each other, nothing is read twice.
  if (double(tilesN()) * double(rows) <= atOnce)
    return 1;
  return std::max<int64_t>(std::min(rows, tilesM()), 1);
}

bool DeviceGemm::isCopyable(bool isA) const {
  Type element = isA ? aElement : bElement;
  int64_t lanes = isA ? aLanes : bLanes;
  if (element != operand.type || element.isF64() ||
      lanes * element.getIntOrFloatBitWidth() < 32)
    return false;
  // Single words may go anywhere; vectors keep their direction.
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

ContractionShape DeviceGemm::cost() const {
  double area = double(tiles() * shape.m * shape.n);
  double bits = double(shape.m * aElement.getIntOrFloatBitWidth()) / aReads +
                double(shape.n * bElement.getIntOrFloatBitWidth()) / bReads;
  ContractionShape cost;
  cost.products =
      tiles() ? double(batch) * double(m) * double(n) * double(k) : 0;
  cost.computed = area * double(llvm::alignTo(k, slice()));
  cost.tileBytes = double(tiles()) * bits / 8 *
                   double(parts() * llvm::alignTo(shape.partLength, slice()));
  cost.blocks = blocks();
  cost.share = shape.share;
  cost.resident = shape.resident;
  if (parts() > 1) // partial sums are stored, and loaded to be added
    cost.tileBytes += 2 * double(scratchBytes());
  if (addend)
    cost.tileBytes += area * double(cElement.getIntOrFloatBitWidth()) / 8;
  return cost;
}

int64_t DeviceGemm::scratchBytes() const {
  if (parts() == 1)
    return 0;
  return parts() * tiles() * shape.m * shape.n *
         (type.getIntOrFloatBitWidth() / 8);
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// Threads form a square of 16 x 16, and every thread computes 4 x 4 of each
/// square of 64 x 64 elements.
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

/// Stores adjacent sums of a part of k; parts are stored as [part][tile][m][n].
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
    inside = isBelow(e, row, m);
  if (n % shape.n) {
    Value fits = isBelow(e, column, n);
    inside = inside ? e.andi(inside, fits) : fits;
  }
  return inside;
}

DeviceGemm::Added DeviceGemm::loadAdded(Emitter &e, const Tile &tile, Value row,
                                        Value column, unsigned lanes) const {
  auto load = [&](const Element &from) {
    if (!from)
      return Value();
    Value loaded = from(e, tile.batch, row, column, insideOf(e, row, column))
                       .load(e, cElement, lanes);
    return formed(e, loaded, {type});
  };
  return {load(bias), load(addend)};
}

/// Returns addend + (sums + bias), as kernels of their own would add.
Value DeviceGemm::plus(Emitter &e, Value sums, const Added &added) {
  if (added.bias)
    sums = arith::AddFOp::create(e.b, sums, added.bias);
  if (added.addend)
    sums = arith::AddFOp::create(e.b, added.addend, sums);
  return sums;
}

/// Stores adjacent elements if they lie inside of the result.
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

/// Stores a thread's sums of a tile, or of a part of it. The result may lie in
/// the addend's bytes, so that no load can pass a store before it: several
/// loads are issued together, into registers that slices no longer need.
void DeviceGemm::emitResults(Emitter &e, const Tile &tile,
                             ArrayRef<Result> results) const {
  // If a block has a multiprocessor to itself, no other block hides its
  // waiting.
  size_t words = shape.resident == 1 ? 32 : 16;
  size_t most = words * 32 / type.getIntOrFloatBitWidth();
  while (!results.empty()) {
    size_t lanes = results.front().sums.size();
    ArrayRef<Result> some = results.take_front(most / lanes);
    SmallVector<Added> loaded(some.size());
    if (!tile.partial)
      for (auto [r, added] : llvm::zip_equal(some, loaded))
        added = loadAdded(e, tile, r.row, r.column, lanes);
    for (auto [i, r] : llvm::enumerate(some)) {
      if (tile.partial) {
        emitPartial(e, tile, r);
        continue;
      }
      emitStore(e, tile, r.row, r.column,
                plus(e, together(e, r.sums), loaded[i]));
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

SmallVector<Value> DeviceGemm::tileAt(Emitter &e, Value number) const {
  if (rowsGrouped == 1)
    return split(e, number, {batch, tilesM(), tilesN()});
  auto [ofBatch, inBatch] = divided(e, number, tilesM() * tilesN());
  auto [group, inGroup] = divided(e, inBatch, rowsGrouped * tilesN());
  auto [column, row] = divided(e, inGroup, rowsGrouped);
  // The last group may have fewer rows.
  if (int64_t left = tilesM() % rowsGrouped) {
    Value isFull = isBelow(e, group, tilesM() / rowsGrouped);
    auto [lastColumn, lastRow] = divided(e, inGroup, left);
    column = e.select(isFull, column, lastColumn);
    row = e.select(isFull, row, lastRow);
  }
  return {ofBatch, e.add(e.mul(group, e.index(rowsGrouped)), row), column};
}

/// Finds a block's tile and part of k.
DeviceGemm::Tile DeviceGemm::tileOf(Emitter &e, Value block) const {
  Value number = block, part = e.index(0);
  if (parts() > 1)
    std::tie(part, number) = divided(e, block, tiles());
  SmallVector<Value> at = tileAt(e, number);
  Tile tile;
  tile.batch = at[0];
  tile.row = e.mul(at[1], e.index(shape.m));
  tile.column = e.mul(at[2], e.index(shape.n));
  tile.low = e.mul(part, e.index(shape.partLength));
  tile.high = e.minimum(e.add(tile.low, e.index(shape.partLength)), e.index(k));
  if (parts() > 1)
    tile.partial = block;
  return tile;
}

void DeviceGemm::emitTile(Emitter &e, Value block) const {
  Tile tile = tileOf(e, block);
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
  if (!tile.partial && gathersResults())
    return emitGatheredResults(e, tile);
  e.forThreads(kThreads, [&](Value thread) {
    emitResults(e, tile,
                onTensorCores() ? resultsOfWarps(e, tile, thread)
                                : resultsOfThreads(e, tile, thread));
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
  Value pitch = e.index(tiles() * shape.m * shape.n);
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
  SmallVector<Value> in = split(e, first, {tiles(), shape.m, shape.n});
  SmallVector<Value> at = tileAt(e, in[0]);
  Tile tile;
  tile.batch = at[0];
  Value row = e.add(e.mul(at[1], e.index(shape.m)), in[1]),
        column = e.add(e.mul(at[2], e.index(shape.n)), in[2]);
  Added added = loadAdded(e, tile, row, column, unsigned(lanes));
  Value total = arith::ConstantOp::create(e.b, e.b.getZeroAttr(loaded));
  total = e.forLoop(e.index(0), e.index(whole), kInFlight, total,
                    [&](Value part, ValueRange sum) {
                      return SmallVector<Value>{some(part, kInFlight, sum[0])};
                    })
              .front();
  total = some(e.index(whole), parts() - whole, total);
  emitStore(e, tile, row, column, plus(e, total, added));
}
