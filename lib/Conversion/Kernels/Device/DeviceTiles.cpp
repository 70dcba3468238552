//===- DeviceTiles.cpp - how a contraction is cut into blocks -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rates are estimates for an H100, from data sheets and machine code; nothing
// has been measured. Only their proportions matter here.
//
//===----------------------------------------------------------------------===//
#include "Device/DeviceTiles.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <initializer_list>
#include <optional>

using namespace ckopt::codegen;

namespace {

/// What a tile's kernel is worth.
struct TileRate {
  int64_t m, n;
  /// Products in a given time by blocks of this tile, over those of 128 x 128:
  /// by tensor cores, and by fused multiply-adds. Small tiles load more bytes a
  /// product.
  double tensorCores, threads;
};

} // namespace

static constexpr TileRate kTiles[] = {{128, 128, 1, 1},
                                      {128, 64, 0.78, 0.85},
                                      {64, 128, 0.78, 0.85},
                                      {64, 64, 0.5, 0.68}};

/// A multiprocessor's products in a microsecond with tiles of 128 x 128.
static constexpr double kTensorRate = 0.45e6, kThreadRate = 0.155e6;
/// Its share of the device's rate, in bytes a microsecond, for partial results.
static constexpr double kByteRate = 25e3;
static constexpr double kLaunchMicroseconds = 3;
/// What of a multiprocessor's rate a block reaches that is alone on it.
static constexpr double kAlone = 0.6;
/// What starting and ending a block costs, as a length of k.
static constexpr double kBlockDepth = 48;
/// The shortest part of k that is worth a block.
static constexpr int64_t kLeastPart = 256;
static constexpr int64_t kMostSharedBytes = 48 * 1024;
/// Registers for elements on their way, of tensor cores and f64, and else, and
/// the most loads: where each has an address of its own, more take what
/// registers the sums of a tile of 128 x 128 leave.
static constexpr int64_t kStagedWide = 16, kStagedThread = 12, kMostLoads = 12;

/// Returns whether a kernel with such slices can be written: threads load whole
/// vectors, the buffers fit into shared memory.
static bool isPossible(const TileProblem &p, int64_t m, int64_t n,
                       int64_t slice, int64_t buffers) {
  int64_t a = m * slice / kTileThreads, b = n * slice / kTileThreads;
  // Rows are padded by 4 to 8 elements.
  int64_t bytes = buffers *
                  std::max((m + n) * (slice + 8), slice * (m + n + 8)) *
                  p.sharedBytes;
  // An instruction of tensor cores takes 16 halves, or 8 words.
  int64_t step = p.onTensorCores && p.sharedBytes < 4 ? 16 : 8;
  return a >= p.aLanes && b >= p.bLanes && bytes <= kMostSharedBytes &&
         slice >= step;
}

/// Returns whether its elements on their way fit into registers, too.
static bool isFast(const TileProblem &p, int64_t m, int64_t n, int64_t slice) {
  int64_t a = m * slice / kTileThreads, b = n * slice / kTileThreads;
  int64_t staged = (a + b) * p.memoryBytes / 4;
  if (staged >
          (p.onTensorCores || p.sumBytes > 4 ? kStagedWide : kStagedThread) ||
      (p.onTensorCores && slice < 16))
    return false;
  return m * n <= 64 * 64 || a / p.aLanes + b / p.bLanes <= kMostLoads;
}

/// Returns the longest slice that is fast for a tile of m x n, or what the
/// variant asks for; none: this tile does not fit.
static std::optional<int64_t> sliceOf(const TileProblem &p, int64_t m,
                                      int64_t n,
                                      const ContractionVariant &variant) {
  if (p.sumBytes > 4 && m * n > 64 * 64)
    return std::nullopt;
  if (variant.slice &&
      isPossible(p, m, n, variant.slice, variant.stages == 1 ? 1 : 2))
    return variant.slice;
  for (int64_t slice : {32, 16, 8})
    if (isPossible(p, m, n, slice, 2) && isFast(p, m, n, slice))
      return slice;
  if (variant.tile)
    for (int64_t slice : {32, 16, 8})
      if (isPossible(p, m, n, slice, 2))
        return slice;
  return std::nullopt;
}

/// Returns whether a variant leaves this tile to choose.
static bool isChoice(const TileProblem &p, const TileRate &tile,
                     const ContractionVariant &variant) {
  return !variant.tile || !sliceOf(p, variant.tile, variant.tile, variant) ||
         (tile.m == variant.tile && tile.n == variant.tile);
}

TileShape ckopt::codegen::chooseTile(const TileProblem &p,
                                     int64_t multiprocessors,
                                     const ContractionVariant &variant) {
  double rate = p.onTensorCores ? kTensorRate : kThreadRate;
  double results = double(p.batch) * double(p.m) * double(p.n);
  auto microseconds = [&](const TileRate &tile, int64_t parts,
                          int64_t partLength) {
    double share = p.onTensorCores ? tile.tensorCores : tile.threads;
    double block = double(tile.m * tile.n) *
                   (double(std::min(partLength, p.k)) + kBlockDepth) /
                   (rate * share);
    double blocks = double(p.batch) * double(llvm::divideCeil(p.m, tile.m)) *
                    double(llvm::divideCeil(p.n, tile.n)) * double(parts);
    // Blocks of the multiprocessor that has most; in turn, two at a time.
    int64_t most =
        int64_t(std::min(1e15, (blocks + double(multiprocessors) - 1) /
                                   double(multiprocessors)));
    double time =
        double(most / 2 * 2) * block + double(most % 2) * block / kAlone;
    if (parts > 1)
      time += kLaunchMicroseconds + double(2 * parts + 1) * results *
                                        double(p.sumBytes) /
                                        (kByteRate * double(multiprocessors));
    return time;
  };
  TileShape best;
  double least = -1;
  for (const TileRate &tile : kTiles) {
    std::optional<int64_t> slice = sliceOf(p, tile.m, tile.n, variant);
    if (!slice || !isChoice(p, tile, variant))
      continue;
    for (int64_t wanted = std::max<int64_t>(variant.parts, 1);; ++wanted) {
      int64_t length = llvm::alignTo(
          llvm::divideCeil(std::max<int64_t>(p.k, 1), wanted), kPartStep);
      int64_t parts = std::max<int64_t>(llvm::divideCeil(p.k, length), 1);
      if (wanted > 1 && !variant.parts &&
          (length < kLeastPart ||
           double(parts) * results * double(p.sumBytes) > kMostPartialBytes))
        break;
      double time = microseconds(tile, parts, length);
      if (least < 0 || time < least) {
        least = time;
        best = {tile.m, tile.n, *slice, parts, length};
        best.share = p.onTensorCores ? tile.tensorCores : tile.threads;
      }
      if (variant.parts || wanted > 4 * multiprocessors)
        break;
    }
  }
  // A part of one slice needs no second buffer.
  best.buffers =
      variant.stages == 1 || std::min(best.partLength, p.k) <= best.slice ? 1
                                                                          : 2;
  return best;
}
