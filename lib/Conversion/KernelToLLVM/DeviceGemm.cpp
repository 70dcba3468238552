//===- DeviceGemm.cpp - contractions by the threads of blocks -------------===//
#include "DeviceGemm.h"
#include "GeneratedKernel.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

/// Blocks that fill a GPU, and the least of k that is worth a part.
static constexpr int64_t kFullBlocks = 256, kLeastPart = 512;

int64_t DeviceGemm::partLength() const {
  int64_t tiles = std::max<int64_t>(batch * tilesM() * tilesN(), 1);
  int64_t most = std::max<int64_t>(k / kLeastPart, 1);
  int64_t wanted = std::clamp<int64_t>(kFullBlocks / tiles, 1, most);
  int64_t length = llvm::divideCeil(std::max<int64_t>(k, 1), wanted);
  return llvm::alignTo(length, kSlice);
}

int64_t DeviceGemm::parts() const {
  return std::max<int64_t>(llvm::divideCeil(k, partLength()), 1);
}

int64_t DeviceGemm::scratchBytes() const {
  if (parts() == 1)
    return 0;
  return parts() * batch * m * n * (type.getIntOrFloatBitWidth() / 8);
}

static Value asIndex(Emitter &e, Value v) {
  return arith::IndexCastOp::create(e.b, e.b.getIndexType(), v);
}

static Value below(Emitter &e, Value x, Value limit) {
  return e.cmpi(arith::CmpIPredicate::slt, x, limit);
}

/// Quotient and remainder of a non-negative number.
static std::pair<Value, Value> divided(Emitter &e, Value x, int64_t by) {
  Value divisor = e.index(by);
  return {arith::DivUIOp::create(e.b, x, divisor),
          arith::RemUIOp::create(e.b, x, divisor)};
}

void DeviceGemm::emitSlice(Emitter &e, Value thread, Value batchIndex,
                           Value row, Value column, Value from, Value to,
                           Value sharedA, Value sharedB) const {
  // Element number `at` of a slice lies at (depth, across) in shared memory.
  auto load = [&](const Element &element, bool isA, bool alongDepth,
                  Value origin, int64_t limit, Value shared) {
    for (int64_t i = 0; i < kTile * kSlice / kThreads; ++i) {
      Value at = e.add(thread, e.index(i * kThreads));
      auto [outer, inner] = divided(e, at, alongDepth ? kSlice : kTile);
      Value depth = alongDepth ? inner : outer,
            across = alongDepth ? outer : inner;
      Value where = e.add(origin, across), slice = e.add(from, depth);
      Value inside = below(e, slice, to);
      if (limit % kTile)
        inside = e.andi(inside, below(e, where, e.index(limit)));
      SmallVector<Value> loaded = e.ifThen(
          inside,
          [&] {
            return SmallVector<Value>{
                isA ? element(e, batchIndex, where, slice)
                    : element(e, batchIndex, slice, where)};
          },
          [&] { return SmallVector<Value>{e.constant(type, 0.0)}; });
      Value place = e.add(e.mul(depth, e.index(kTile)), across);
      memref::StoreOp::create(e.b, loaded.front(), shared, asIndex(e, place));
    }
  };
  load(a, true, aAlongK, row, m, sharedA);
  load(b, false, !bAlongN, column, n, sharedB);
}

void DeviceGemm::emitProducts(Emitter &e, Value thread, Value sharedA,
                              Value sharedB, Value sums) const {
  auto [threadRow, threadColumn] = divided(e, thread, kTile / kSide);
  Value row = e.mul(threadRow, e.index(kSide)),
        column = e.mul(threadColumn, e.index(kSide));
  auto place = [&](int64_t i) {
    return SmallVector<Value>{e.threadIndex(),
                              arith::ConstantIndexOp::create(e.b, i)};
  };
  SmallVector<Value> start;
  for (int64_t i = 0; i < kSide * kSide; ++i)
    start.push_back(memref::LoadOp::create(e.b, sums, place(i)));
  VectorType side = VectorType::get({kSide}, type);
  SmallVector<Value> total = e.forLoop(
      e.index(0), e.index(kSlice), 1, start, [&](Value depth, ValueRange sum) {
        Value base = e.mul(depth, e.index(kTile));
        auto read = [&](Value shared, Value at) {
          Value vector = vector::LoadOp::create(e.b, side, shared,
                                                asIndex(e, e.add(base, at)));
          SmallVector<Value> elements;
          for (int64_t i = 0; i < kSide; ++i)
            elements.push_back(vector::ExtractOp::create(e.b, vector, i));
          return elements;
        };
        SmallVector<Value> x = read(sharedA, row), y = read(sharedB, column);
        SmallVector<Value> next;
        for (int64_t i = 0; i < kSide; ++i)
          for (int64_t j = 0; j < kSide; ++j)
            next.push_back(e.fma(x[i], y[j], sum[i * kSide + j]));
        return next;
      });
  for (int64_t i = 0; i < kSide * kSide; ++i)
    memref::StoreOp::create(e.b, total[i], sums, place(i));
}

void DeviceGemm::emitTile(Emitter &e, Value block) const {
  SmallVector<Value> at = split(e, block, {batch, parts(), tilesM(), tilesN()});
  Value row = e.mul(at[2], e.index(kTile)),
        column = e.mul(at[3], e.index(kTile));
  Value low = e.mul(at[1], e.index(partLength()));
  Value high = e.minimum(e.add(low, e.index(partLength())), e.index(k));
  Value sharedA = e.sharedBuffer(type, kTile * kSlice);
  Value sharedB = e.sharedBuffer(type, kTile * kSlice);
  Value sums = e.privateBuffer(type, kThreads, kSide * kSide);
  auto place = [&](int64_t i) {
    return SmallVector<Value>{e.threadIndex(),
                              arith::ConstantIndexOp::create(e.b, i)};
  };
  e.forThreads(kThreads, [&](Value) {
    for (int64_t i = 0; i < kSide * kSide; ++i)
      memref::StoreOp::create(e.b, e.constant(type, 0.0), sums, place(i));
  });
  e.forLoop(low, high, kSlice, {}, [&](Value from, ValueRange) {
    e.forThreads(kThreads, [&](Value thread) {
      emitSlice(e, thread, at[0], row, column, from, high, sharedA, sharedB);
    });
    e.forThreads(kThreads, [&](Value thread) {
      emitProducts(e, thread, sharedA, sharedB, sums);
    });
    return SmallVector<Value>();
  });
  e.forThreads(kThreads, [&](Value thread) {
    auto [threadRow, threadColumn] = divided(e, thread, kTile / kSide);
    Value firstRow = e.add(row, e.mul(threadRow, e.index(kSide)));
    Value firstColumn = e.add(column, e.mul(threadColumn, e.index(kSide)));
    for (int64_t i = 0; i < kSide * kSide; ++i) {
      Value r = e.add(firstRow, e.index(i / kSide)),
            c = e.add(firstColumn, e.index(i % kSide));
      Value sum = memref::LoadOp::create(e.b, sums, place(i));
      Value inside = e.andi(below(e, r, e.index(m)), below(e, c, e.index(n)));
      e.ifThen(
          inside,
          [&] {
            if (parts() == 1) {
              store(e, at[0], r, c, sum);
            } else {
              // [part][batch][m][n]
              Value offset = e.add(e.mul(at[1], e.index(batch)), at[0]);
              offset = e.add(e.mul(offset, e.index(m)), r);
              offset = e.add(e.mul(offset, e.index(n)), c);
              e.storeTo(e.scratch, type, e.addSymbol(offset, true), sum);
            }
            return SmallVector<Value>();
          },
          nullptr);
    }
  });
}

void DeviceGemm::emitSum(Emitter &e, Value item) const {
  Value total = e.constant(type, 0.0);
  total = e.forLoop(e.index(0), e.index(parts()), 1, total,
                    [&](Value part, ValueRange sum) {
                      Value offset =
                          e.add(e.mul(part, e.index(batch * m * n)), item);
                      Value x = e.loadFrom(e.scratch, type,
                                           e.addSymbol(offset, true));
                      return SmallVector<Value>{e.add(sum[0], x)};
                    })
              .front();
  SmallVector<Value> at = split(e, item, {batch, m, n});
  store(e, at[0], at[1], at[2], total);
}
