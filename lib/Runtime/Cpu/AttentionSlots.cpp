//===- AttentionSlots.cpp - attention's workspace -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plans the blocks and a thread's workspace: one block of scores (two for the
// gradient), copies of a block's operands, and sums. Where tensors are bf16
// each copy has room for whichever form is larger, as f32 or in tiles, and
// tiles have blocks of their own size, which 32 divides. Guarantee: the
// workspace depends on the descriptor alone, so that a plan holds on any
// machine.
//
//===----------------------------------------------------------------------===//
#include "AttentionBlocks.h"

using namespace ckopt;
using namespace ckopt::runtime;

/// Returns the size of blocks that divide `count` evenly.
static int64_t evenBlocks(int64_t count, int64_t most, int64_t step) {
  int64_t blocks = (count + most - 1) / most;
  return roundUp((count + blocks - 1) / blocks, step);
}

template <typename S> void AttentionBlocks<S>::placeSlots() {
  blockRows = evenBlocks(a.queries, kMostRows, kRowStep);
  tileRows = evenBlocks(a.queries, kMostStrips * kStrip, kStrip);
  blockKeys =
      evenBlocks(a.keys, gradient ? kMostGradientKeys : kMostKeys, kRowPad);
  int64_t tileKeys = roundUp(blockKeys, kStrip);
  pitch = oddPitch<T>(mayTile && gradient ? tileKeys : blockKeys);
  depthPitch = oddPitch<T>(a.depth), widthPitch = oddPitch<T>(a.width);
  int64_t panels = roundUp(blockKeys, kPanel<T>);
  int64_t rows = a.heads / a.keyHeads * a.queries;
  // By how many numbers of bf16 tiles take: steps of a sum, or its columns.
  int64_t depthSteps = roundUp(a.depth, kTileSteps);
  int64_t depthColumns = roundUp(a.depth, kTileRows);
  int64_t widthSteps = roundUp(a.width, kTileSteps);
  int64_t widthColumns = roundUp(a.width, kTileRows);
  if (a.hasSegments) // two bounds a key, and whether they are exact
    slot.segments = place(
        ((2 * a.keys + 1) * int64_t(sizeof(int32_t)) + int64_t(sizeof(T)) - 1) /
        int64_t(sizeof(T)));
  if (mayTile)
    slot.finite = place(1);
  slot.scores = place(blockRows * pitch, 2 * tileRows * pitch);
  slot.queries = place(blockRows * depthPitch,
                       tileRows * (depthSteps + (gradient ? depthColumns : 0)));
  slot.keysAcross = place(panels * a.depth, blockKeys * depthSteps);
  if (a.hasDropout)
    slot.kept =
        place((blockKeys + kKeepPad + int64_t(sizeof(T))) / int64_t(sizeof(T)));
  if (!gradient) {
    slot.values = place(blockKeys * widthPitch, tileKeys * widthColumns);
    slot.sums = place(rows);
    if (isNarrow)
      slot.outputs = place(rows * widthPitch);
    return;
  }
  slot.scoreGrads = place(blockRows * pitch, 2 * tileRows * pitch);
  if (a.cap)
    slot.slopes = place(blockKeys);
  if (mayTile)
    slot.deltas = place(rows);
  slot.outGrads =
      place(blockRows * widthPitch, tileRows * (widthSteps + widthColumns));
  slot.keys = place(blockKeys * depthPitch, tileKeys * depthColumns);
  slot.valuesAcross = place(panels * a.width, blockKeys * widthSteps);
  if (isNarrow) {
    slot.queryGrads = place(rows * depthPitch);
    slot.keyGrads = place(blockKeys * depthPitch, 2 * blockKeys * depthColumns);
    slot.valueGrads =
        place(blockKeys * widthPitch, 2 * blockKeys * widthColumns);
  }
}

template void AttentionBlocks<float>::placeSlots();
template void AttentionBlocks<double>::placeSlots();
template void AttentionBlocks<BFloat16>::placeSlots();
template void AttentionBlocks<Half>::placeSlots();
