//===- DeviceTiles.h - how a contraction is cut into blocks -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a tile of 128 x 128 loads the fewest bytes for each multiplication.
// But few such tiles leave multiprocessors without work, and the last of many
// run when most multiprocessors are idle. Smaller tiles, and parts of k that
// are added up afterwards, make more blocks of less work each. Method: this
// file estimates the time of every choice by waves of blocks over the device's
// multiprocessors, and takes the shortest. A variant for tests leaves fewer
// choices. Guarantee: the choice depends only on shape, types, the number of
// multiprocessors and a block's shared memory, so a contraction has the same
// bits in every plan. Complexity: O(parts) for each shape of tile.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CODEGEN_DEVICE_DEVICETILES_H
#define CKOPT_LIB_CODEGEN_DEVICE_DEVICETILES_H

#include "ckopt/Target/TargetInfo.h"

#include <algorithm>
#include <cstdint>

namespace ckopt::codegen {

/// Properties of the device that a contraction is cut for.
struct TileDevice {
  int64_t multiprocessors;
  int64_t sharedBytes;     ///< shared memory that a block may have
  int64_t processorShared; ///< that of all blocks on a multiprocessor
};

/// Properties of a contraction that decide how it is cut.
struct TileProblem {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  bool onTensorCores = false;
  int64_t sumBytes = 4;    ///< bytes of an element of the sums
  int64_t memoryBytes = 4; ///< bytes of an operand's element, the larger one
  int64_t sharedBytes = 4; ///< bytes of an operand's element in shared memory
  /// The number of an operand's elements in one load.
  int64_t aLanes = 1, bLanes = 1;
  /// How often a block reads an operand's elements for each time that they come
  /// from the L2 cache.
  double aReads = 1, bReads = 1;
  /// Both operands may be copied to shared memory unchanged.
  bool isCopyable = false;
};

/// The tile that a block computes, over a part of k, slice by slice.
struct TileShape {
  int64_t m = 64, n = 64;
  /// The part of k that one buffer in shared memory holds.
  int64_t slice = 16;
  int64_t parts = 1, partLength = 1; ///< number of parts of k, and their length
  int64_t resident = 4;              ///< blocks that share a multiprocessor
  int64_t buffers = 2;   ///< number in shared memory, for each operand
  bool isCopied = false; ///< copied asynchronously, without registers
  /// Speed relative to tiles of 128 x 128, for costs.
  double share = 1;

  bool operator==(const TileShape &) const = default;
};

/// Threads of a block.
inline constexpr int64_t kTileThreads = 256;
/// Parts of k are a multiple of this, and slices divide it.
inline constexpr int64_t kPartStep = 64;
/// The most bytes that partial results of one contraction take.
inline constexpr int64_t kMostPartialBytes = int64_t(32) << 20;

TileShape chooseTile(const TileProblem &problem, const TileDevice &device,
                     const ContractionVariant &variant = {});

} // namespace ckopt::codegen

#endif // CKOPT_LIB_CODEGEN_DEVICE_DEVICETILES_H
