//===- DeviceTiles.cpp - how a contraction is cut into blocks -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rates are an H200's: bounds from its data sheet and machine code, and the
// share of the tightest bound that prototypes of such loops reached. Only their
// ratios matter here.
//
//===----------------------------------------------------------------------===//
#include "DeviceTiles.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <initializer_list>
#include <optional>

using namespace ckopt;
using namespace ckopt::codegen;

namespace {

/// A tile that blocks may compute.
struct Tile {
  int64_t m, n;
  int64_t resident; ///< blocks of it that share a multiprocessor
  /// Speed of fused multiply-adds relative to tiles of 128 x 128 (0: no such
  /// code). Small tiles load more bytes for each multiplication.
  double threads;
};

} // namespace

static constexpr Tile kTiles[] = {{128, 128, 2, 1},   {128, 64, 2, 0.85},
                                  {64, 128, 2, 0.85}, {64, 64, 4, 0.68},
                                  {128, 256, 1, 0},   {256, 128, 1, 0}};

/// Cycles of a multiprocessor in a microsecond, and the most that it does in
/// one: multiplications by mma.sync of 32-bit and of 16-bit operands (62 % of
/// the tensor cores' rate in the data sheet, as microbenchmarks of Hopper have
/// found); bytes of shared memory; its share of the L2 cache's bytes (34 were
/// measured).
static constexpr double kCycles = 1755, kWordProducts = 635,
                        kHalfProducts = 1270, kSharedRate = 128,
                        kCacheRate = 34;
/// Measured share of the tightest of these bounds: if two blocks share a
/// multiprocessor, and if one has it to itself, whose warps wait at the same
/// barrier. TF32 operands are rounded when they are read, which takes issue
/// slots in bursts. Matmuls of size 4,096 by TF32: 165 TFLOP/s with two blocks
/// of 128 x 128, 139 with one of 128 x 256; in 16 bits 381 and 409.
static constexpr double kWordsReached = 0.7, kHalvesReached = 0.8,
                        kWordsAlone = 0.56, kHalvesAlone = 0.7;
/// The share of that which remains if slices pass through registers.
static constexpr double kPastRegisters = 0.8;
/// Multiplications of a multiprocessor in a microsecond by fused multiply-adds
/// with tiles of 128 x 128.
static constexpr double kThreadRate = 0.155e6;
static constexpr double kLaunchMicroseconds = 3;
/// Multiplications for which instructions are issued in a cycle in addition to
/// loads (most of the other instructions round TF32), and the instructions of
/// each load of less than 16 bytes: its address, and whether it is inside. A
/// multiprocessor issues 4 instructions of 32 threads in a cycle. Counted in
/// SASS.
static constexpr double kWordsIssued = 546, kHalvesIssued = 2214,
                        kLoadInstructions = 14, kIssued = 128;
/// The share of a multiprocessor's rate that one resident block reaches if
/// several would fit (0.88 and 0.9 were measured with a fourth buffer).
static constexpr double kAlone = 0.8;
/// The cost of starting and ending a block, as a length of k.
static constexpr double kBlockDepth = 48;
/// The shortest part of k that is worth a block.
static constexpr int64_t kLeastPart = 256;
/// Shared memory that the system takes for each block.
static constexpr int64_t kSystemShared = 1024;
/// Registers for elements that are being loaded: with tensor cores and f64, and
/// otherwise. Then the most loads if each has its own address; more would take
/// registers from the sums of a tile of 128 x 128.
static constexpr int64_t kStagedWide = 16, kStagedThread = 12, kMostLoads = 12,
                         kStagedAlone = 24;

namespace {
/// How slices reach shared memory.
struct Pipeline {
  int64_t slice, buffers;
  bool isCopied;
};
} // namespace

/// Returns the bytes of one slice of both operands in shared memory. Rows are
/// padded: by 4 elements if 32-bit words are copied, else by 8.
static int64_t sliceBytes(const TileProblem &p, const Tile &t, int64_t slice,
                          bool isCopied) {
  int64_t pad = isCopied && p.sharedBytes == 4 ? 4 : 8;
  auto side = [&](int64_t tile) {
    return std::max(tile * (slice + pad), slice * (tile + 8));
  };
  return (side(t.m) + side(t.n)) * p.sharedBytes;
}

/// Returns whether threads load whole vectors of such slices, and instructions
/// of tensor cores take whole ones.
static bool isPossible(const TileProblem &p, const Tile &t, int64_t slice) {
  int64_t a = t.m * slice / kTileThreads, b = t.n * slice / kTileThreads;
  // An instruction of tensor cores takes 16 elements of 16 bits, or 8 of 32.
  int64_t step = p.onTensorCores && p.sharedBytes < 4 ? 16 : 8;
  return a >= p.aLanes && b >= p.bLanes && a % p.aLanes == 0 &&
         b % p.bLanes == 0 && slice >= step &&
         (p.onTensorCores || t.threads > 0) &&
         (p.sumBytes <= 4 || t.resident == 4);
}

/// Returns whether the elements being loaded also fit into registers.
static bool isFast(const TileProblem &p, const Tile &t, int64_t slice,
                   bool isCopied) {
  int64_t a = t.m * slice / kTileThreads, b = t.n * slice / kTileThreads;
  int64_t staged = isCopied ? 0 : (a + b) * p.memoryBytes / 4;
  int64_t most = t.resident == 1                     ? kStagedAlone
                 : p.onTensorCores || p.sumBytes > 4 ? kStagedWide
                                                     : kStagedThread;
  if (staged > most || (p.onTensorCores && slice < 16))
    return false;
  // ptxas gives kernels with so few sums 32 registers, and spills the loads of
  // deeper slices.
  if (t.resident == 4 && slice > 32)
    return false;
  return t.resident == 4 || a / p.aLanes + b / p.bLanes <= kMostLoads;
}

/// Returns the shared memory for each of this number of blocks on a
/// multiprocessor.
static int64_t sharedOfBlock(const TileDevice &device, int64_t resident) {
  // A block alone may not always have all of it: up to four share the rest.
  if (device.sharedBytes + kSystemShared < device.processorShared)
    return std::min(device.sharedBytes,
                    (device.processorShared - 4 * kSystemShared) / resident);
  return device.processorShared / resident - kSystemShared;
}

/// Returns the longest slices that are fast for a tile, copied ahead if
/// possible, or those that the variant asks for; none: this tile does not fit.
/// Slices of 128 bytes a row halve the barriers, and load whole cache lines.
static std::optional<Pipeline> pipelineOf(const TileProblem &p, const Tile &t,
                                          const TileDevice &device,
                                          const ContractionVariant &variant) {
  auto fits = [&](int64_t slice, int64_t buffers, bool isCopied, int64_t most) {
    return isPossible(p, t, slice) &&
           buffers * sliceBytes(p, t, slice, isCopied) <= most;
  };
  auto choose = [&](int64_t buffers, bool isCopied,
                    int64_t most) -> std::optional<Pipeline> {
    for (int64_t slice : {64, 32, 16, 8})
      if (fits(slice, buffers, isCopied, most) && isFast(p, t, slice, isCopied))
        return Pipeline{slice, buffers, isCopied};
    if (variant.tile)
      for (int64_t slice : {32, 16, 8})
        if (fits(slice, buffers, isCopied, most))
          return Pipeline{slice, buffers, isCopied};
    return std::nullopt;
  };
  if (p.isCopyable && (!variant.stages || variant.stages > 2)) {
    if (variant.stages)
      if (auto asked = choose(variant.stages, true, device.sharedBytes))
        return asked;
    int64_t most = sharedOfBlock(device, t.resident);
    if (auto copied = choose(3, true, most)) {
      if (fits(copied->slice, 4, true, most))
        copied->buffers = 4;
      return copied;
    }
  }
  return choose(variant.stages == 1 ? 1 : 2, false, device.sharedBytes);
}

/// Returns whether a tile is one that the variant asks for.
static bool isWanted(const Tile &t, int64_t tile) {
  return std::max(t.m, t.n) == tile && (t.m == t.n || tile > 128);
}

/// Returns the extra cycles, for one k of a tile, of loads of less than 16
/// bytes.
static double cyclesOfNarrowLoads(const TileProblem &p, const Tile &t) {
  double wide = 16 / double(p.memoryBytes);
  auto more = [&](int64_t length, int64_t lanes) {
    return double(length) * std::max(1 / double(lanes) - 1 / wide, 0.0);
  };
  return (more(t.m, p.aLanes) + more(t.n, p.bLanes)) * kLoadInstructions /
         kIssued;
}

/// Returns a multiprocessor's multiplications in a microsecond.
static double rateOf(const TileProblem &p, const Tile &t, bool isCopied) {
  double m = double(t.m), n = double(t.n), products = m * n;
  double narrow = cyclesOfNarrowLoads(p, t);
  if (!p.onTensorCores) {
    double rate = kThreadRate * t.threads;
    return products / (products / rate + narrow / kCycles);
  }
  // Warps form 2 x 4 or 4 x 2, the longer side divided by 4.
  bool ofWords = p.sharedBytes >= 4;
  double fragments = 8 * (std::max(m, n) / 4 + std::min(m, n) / 2);
  double bytes = (fragments + m + n) * double(p.sharedBytes);
  double cycles = std::max(
      {products / (ofWords ? kWordProducts : kHalfProducts),
       bytes / kSharedRate,
       (m / p.aReads + n / p.bReads) * double(p.memoryBytes) / kCacheRate,
       products / (ofWords ? kWordsIssued : kHalvesIssued) + narrow});
  bool isAlone = t.resident == 1;
  double reached = ofWords ? (isAlone ? kWordsAlone : kWordsReached)
                           : (isAlone ? kHalvesAlone : kHalvesReached);
  return products / cycles * kCycles * reached *
         (isCopied ? 1 : kPastRegisters);
}

namespace {

/// Estimates the time of the ways to cut a contraction into tiles of one kind.
class Waves {
public:
  Waves(const TileProblem &p, const Tile &t, bool isCopied,
        int64_t multiprocessors)
      : p(p), t(t), processors(double(multiprocessors)),
        rate(rateOf(p, t, isCopied)),
        tiles(double(p.batch) * double(llvm::divideCeil(p.m, t.m)) *
              double(llvm::divideCeil(p.n, t.n))) {}

  /// Microseconds if each tile has this number of blocks.
  double microseconds(int64_t parts, int64_t partLength) const {
    double time = blocks(tiles * double(parts), std::min(partLength, p.k));
    if (parts > 1)
      time += kLaunchMicroseconds +
              partialBytes(parts) * 2 / (kCacheRate * kCycles * processors);
    return time;
  }
  double partialBytes(int64_t parts) const {
    return tiles * double(t.m * t.n * parts * p.sumBytes);
  }

private:
  double blocks(double count, int64_t depth) const {
    double block = double(t.m * t.n) * (double(depth) + kBlockDepth) / rate;
    // Blocks of the multiprocessor with most blocks; two of them run at a time.
    double most = std::ceil(count / processors);
    if (t.resident == 1)
      return most * block;
    double pairs = std::floor(most / 2) * 2;
    return pairs * block + (most - pairs) * block / kAlone;
  }

  const TileProblem &p;
  const Tile &t;
  double processors, rate, tiles;
};

} // namespace

TileShape ckopt::codegen::chooseTile(const TileProblem &p,
                                     const TileDevice &device,
                                     const ContractionVariant &variant) {
  TileShape best;
  double least = -1;
  // Rates of devices are for the widest loads.
  TileProblem wide = p;
  wide.aLanes = wide.bLanes = 16 / p.memoryBytes;
  wide.aReads = wide.bReads = 1;
  bool hasWanted = llvm::any_of(kTiles, [&](const Tile &t) {
    return isWanted(t, variant.tile) && pipelineOf(p, t, device, variant);
  });
  auto consider = [&](const Tile &t, const Pipeline &pipeline, int64_t wanted) {
    int64_t length = llvm::alignTo(
        llvm::divideCeil(std::max<int64_t>(p.k, 1), wanted), kPartStep);
    int64_t parts = std::max<int64_t>(llvm::divideCeil(p.k, length), 1);
    Waves waves(p, t, pipeline.isCopied, device.multiprocessors);
    if (wanted > 1 && !variant.parts &&
        (length < kLeastPart || waves.partialBytes(parts) > kMostPartialBytes))
      return false;
    double time = waves.microseconds(parts, length);
    if (least < 0 || time < least) {
      least = time;
      best = {t.m, t.n, pipeline.slice, parts, length};
      best.resident = t.resident;
      best.buffers = pipeline.buffers;
      best.isCopied = pipeline.isCopied;
      best.share =
          rateOf(p, t, pipeline.isCopied) / rateOf(wide, kTiles[0], false);
    }
    return true;
  };
  for (const Tile &t : kTiles) {
    std::optional<Pipeline> pipeline = pipelineOf(p, t, device, variant);
    if (!pipeline || (hasWanted && !isWanted(t, variant.tile)))
      continue;
    int64_t first = std::max<int64_t>(variant.parts, 1), last = first;
    if (!variant.parts)
      last = 4 * device.multiprocessors + 1;
    for (int64_t wanted = first; wanted <= last; ++wanted)
      if (!consider(t, *pipeline, wanted))
        break;
  }
  // A part of one slice needs no second buffer.
  if (std::min(best.partLength, p.k) <= best.slice)
    best.buffers = 1, best.isCopied = false;
  return best;
}
