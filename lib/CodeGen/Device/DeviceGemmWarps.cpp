//===- DeviceGemmWarps.cpp - contractions by tensor cores -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Multiplies tiles with tensor cores. Each of the eight warps of a block
// computes a part of the tile, made of blocks of 16 x 8.
// DeviceGemm::depthInside decides how slices lie in shared memory; the pitch
// lets the threads that load a fragment together use different banks.
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

static constexpr int64_t kRows = 16, kColumns = 8;

namespace {
/// The part of a tile that a warp computes. The eight warps are 4 x 2, or 2 x 4
/// if the tile is wider than high: square parts load the fewest fragments.
struct WarpTile {
  explicit WarpTile(const TileShape &shape)
      : warpsN(shape.n > shape.m ? 4 : 2), m(shape.m / (8 / warpsN)),
        n(shape.n / warpsN) {}
  int64_t warpsN, m, n;
};
} // namespace

static Value quotient(Emitter &e, Value x, int64_t by) {
  return arith::DivUIOp::create(e.b, x, e.index(by));
}
static Value remainder(Emitter &e, Value x, int64_t by) {
  return arith::RemUIOp::create(e.b, x, e.index(by));
}

/// Returns the first row and column of the thread's warp in the tile.
static std::pair<Value, Value> originOfWarp(Emitter &e, Value thread,
                                            const WarpTile &part) {
  Value warp = quotient(e, thread, kWarp);
  return {e.mul(quotient(e, warp, part.warpsN), e.index(part.m)),
          e.mul(remainder(e, warp, part.warpsN), e.index(part.n))};
}

void DeviceGemm::emitWarpProducts(Emitter &e, const Tile &tile, Value thread,
                                  Value number) const {
  const WarpTile part(shape);
  auto [row, column] = originOfWarp(e, thread, part);
  // Distances in elements between adjacent rows or columns, and between
  // adjacent k.
  struct Strides {
    int64_t line, step;
  };
  auto stridesOf = [&](bool isA) {
    return depthInside(isA) ? Strides{pitch(isA), 1} : Strides{1, pitch(isA)};
  };
  Strides a = stridesOf(true), b = stridesOf(false);
  auto product = [&](Value x, int64_t by) {
    return by == 1 ? x : e.mul(x, e.index(by));
  };
  Value rowStart = e.add(product(row, a.line), bufferStart(e, number, true)),
        columnStart =
            e.add(product(column, b.line), bufferStart(e, number, false));
  SmallVector<Type> fourSums(4, type);
  SmallVector<Value> start;
  for (int64_t i = 0; i < sumsOfThread(); ++i)
    start.push_back(memref::LoadOp::create(e.b, tile.sums, sumAt(e, i)));
  SmallVector<Value> total = e.forLoop(
      e.index(0), e.index(slice()), operand.tf32 ? 8 : 16, start,
      [&](Value depth, ValueRange sums) {
        SmallVector<Value> next;
        for (int64_t i = 0; i < part.m / kRows; ++i)
          for (int64_t j = 0; j < part.n / kColumns; ++j) {
            ValueRange c = sums.slice(next.size(), 4);
            auto place = [&](Value origin, int64_t lines, Strides strides) {
              Value at = e.add(origin, e.index(lines * strides.line));
              return asIndex(e, e.add(at, product(depth, strides.step)));
            };
            auto mma = block::MmaOp::create(
                e.b, fourSums, e.threadIndex(), tile.sharedA,
                place(rowStart, i * kRows, a), a.line, a.step, tile.sharedB,
                place(columnStart, j * kColumns, b), b.line, b.step, c[0], c[1],
                c[2], c[3], /*rounds=*/operand.tf32 && shape.isCopied);
            llvm::append_range(next, mma->getResults());
          }
        return next;
      });
  for (int64_t i = 0; i < sumsOfThread(); ++i)
    memref::StoreOp::create(e.b, total[i], tile.sums, sumAt(e, i));
}

SmallVector<DeviceGemm::Result>
DeviceGemm::resultsOfWarps(Emitter &e, const Tile &tile, Value thread) const {
  const WarpTile part(shape);
  auto [row, column] = originOfWarp(e, thread, part);
  Value lane = remainder(e, thread, kWarp);
  row = e.add(e.add(tile.row, row), quotient(e, lane, 4));
  column = e.add(e.add(tile.column, column),
                 e.mul(remainder(e, lane, 4), e.index(2)));
  // Store two adjacent elements of a row at once if rows have even length.
  bool pairs = tile.partial || (cAlongN && cLanes > 1);
  int64_t number = 0;
  SmallVector<Result> results;
  for (int64_t i = 0; i < part.m / kRows; ++i)
    for (int64_t j = 0; j < part.n / kColumns; ++j)
      for (int64_t half = 0; half < 2; ++half) {
        Value r = e.add(row, e.index(i * kRows + half * 8)),
              c = e.add(column, e.index(j * kColumns));
        Value x = memref::LoadOp::create(e.b, tile.sums, sumAt(e, number++)),
              y = memref::LoadOp::create(e.b, tile.sums, sumAt(e, number++));
        if (pairs) {
          results.push_back({r, c, {x, y}});
        } else {
          results.push_back({r, c, {x}});
          results.push_back({r, e.add(c, e.index(1)), {y}});
        }
      }
  return results;
}

/// Returns the distance of rows of results in shared memory, so that 8 of them
/// use different banks.
static int64_t pitchOfResults(const TileShape &shape) { return shape.n + 8; }

bool DeviceGemm::gathersResults() const {
  if (!onTensorCores() || cElement != operand.type || !cAlongN || addend ||
      cLanes * cElement.getIntOrFloatBitWidth() != 128)
    return false;
  int64_t rows = 8 / WarpTile(shape).warpsN * kRows;
  return rows * pitchOfResults(shape) <= shape.buffers * sharedElements(true);
}

/// Stores a tile in rows of vectors, through the shared memory of a's slices. A
/// fragment has only 16 (16-bit types) or 32 (f32) bytes of a row, less than a
/// memory transaction, so that direct stores dominated matmuls with few
/// channels. Each pass moves the 16 rows of a fragment of all warps.
void DeviceGemm::emitGatheredResults(Emitter &e, const Tile &tile) const {
  const WarpTile part(shape);
  int64_t warpsM = 8 / part.warpsN, blocks = part.n / kColumns;
  int64_t rowPitch = pitchOfResults(shape), vectors = shape.n / int64_t(cLanes);
  VectorType wide = VectorType::get({int64_t(cLanes)}, cElement);
  for (int64_t i = 0; i < part.m / kRows; ++i) {
    e.forThreads(kThreads, [&](Value thread) {
      Value warp = quotient(e, thread, kWarp),
            lane = remainder(e, thread, kWarp);
      Value row = e.add(e.mul(quotient(e, warp, part.warpsN), e.index(kRows)),
                        quotient(e, lane, 4));
      Value column =
          e.add(e.mul(remainder(e, warp, part.warpsN), e.index(part.n)),
                e.mul(remainder(e, lane, 4), e.index(2)));
      Value first = e.add(e.mul(row, e.index(rowPitch)), column);
      for (int64_t j = 0; j < blocks; ++j)
        for (int64_t half = 0; half < 2; ++half) {
          int64_t number = ((i * blocks + j) * 2 + half) * 2;
          Value two[2];
          for (int64_t l = 0; l < 2; ++l)
            two[l] =
                memref::LoadOp::create(e.b, tile.sums, sumAt(e, number + l));
          Value sums = vector::FromElementsOp::create(
              e.b, VectorType::get({2}, type), two);
          Value at = e.add(first, e.index(half * 8 * rowPitch + j * kColumns));
          vector::StoreOp::create(e.b, formed(e, sums, {cElement}),
                                  tile.sharedA, asIndex(e, at));
        }
    });
    e.forThreads(kThreads, [&](Value thread) {
      for (int64_t v = 0; v < kRows * warpsM * vectors; v += kThreads) {
        auto [row, vector] = divided(e, e.add(thread, e.index(v)), vectors);
        auto [warp, inside] = divided(e, row, kRows);
        Value column = e.mul(vector, e.index(cLanes));
        Value at = e.add(e.mul(row, e.index(rowPitch)), column);
        Value elements =
            vector::LoadOp::create(e.b, wide, tile.sharedA, asIndex(e, at));
        Value to = e.add(e.add(tile.row, e.mul(warp, e.index(part.m))),
                         e.add(inside, e.index(i * kRows)));
        emitStore(e, tile, to, e.add(tile.column, column), elements);
      }
    });
  }
}
