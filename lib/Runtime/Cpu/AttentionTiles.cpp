//===- AttentionTiles.cpp - attention of bf16 by tiles --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: as f32 the products of bf16 tensors take most of attention's time,
// where the CPU multiplies bf16 ten times as fast (TileProduct.h). Method: that
// of AttentionBlocks.cpp, with operands as they are stored: scores are scaled
// as f32, and gradients where they are rounded at the end. Probabilities, and
// gradients of scores, are made as f32, and rounded to bf16 for the next
// products, in place: a row of probabilities goes into the first half of its
// row. The gradient takes rows by twos. As pairs, by which keys' and values'
// gradients sum over rows, they lie in place of the even row. That leaves the
// odd one free, where the two rows of the score's gradients lie for the
// queries' gradients, which sum over keys. Keys' and values' gradients are
// summed across, and turned where they are rounded.
//
// Guarantee: that of AttentionBlocks.cpp; sums, exponentials and lse are f32,
// and what is rounded beside operands and results is a row's probabilities and
// gradients of scores, to nearest. Where q, k, v or the result's gradient are
// not finite somewhere in a key head of a sample, all of it is computed as f32:
// zeros beside a row's own keys would make NaN of others' infinities.
// Complexity: that of AttentionBlocks.cpp, rounded up to 32 rows and keys.
//
//===----------------------------------------------------------------------===//
#include "AttentionBlocks.h"

#include <cmath>

using namespace ckopt;
using namespace ckopt::runtime;

namespace {

/// Tiles are open as long as this lives.
class OpenTiles {
public:
  explicit OpenTiles(const TileCode &code) : code(code) { code.open(); }
  OpenTiles(const OpenTiles &) = delete;
  OpenTiles &operator=(const OpenTiles &) = delete;
  ~OpenTiles() { code.close(); }

private:
  const TileCode &code;
};

/// Returns which keys strips of a block's rows look at: all, unless `bounded`.
template <typename Block> TileStrips stripsOf(const Block &b, bool bounded) {
  TileStrips strips{b.rows, b.keys, {}, {}};
  for (int64_t s = 0; s < strips.count(); ++s) {
    int64_t last = std::min((s + 1) * kStrip, b.rows) - 1;
    int64_t from = bounded ? b.first[s * kStrip] : 0;
    int64_t to = bounded ? b.end[last] : b.keys;
    strips.from[s] = int32_t(from / kStrip);
    strips.to[s] =
        int32_t(std::max(tilesOf(to, kStrip), int64_t(strips.from[s])));
  }
  return strips;
}

BFloat16 *halves(float *at) { return reinterpret_cast<BFloat16 *>(at); }

} // namespace

template <>
bool AttentionBlocks<BFloat16>::allFinite(const Tensors &t, int64_t batch,
                                          int64_t keyHead) const {
  bool all = tiles->allFinite(t.k + at(a.k, batch, keyHead, 0), a.k[2], a.keys,
                              a.depth) &&
             tiles->allFinite(t.v + at(a.v, batch, keyHead, 0), a.v[2], a.keys,
                              a.width);
  int64_t members = a.heads / a.keyHeads;
  for (int64_t head = keyHead * members; head < (keyHead + 1) * members && all;
       ++head) {
    all = tiles->allFinite(t.q + at(a.q, batch, head, 0), a.q[2], a.queries,
                           a.depth);
    if (gradient)
      all = all && tiles->allFinite(t.grad + at(a.grad, batch, head, 0),
                                    a.grad[2], a.queries, a.width);
  }
  return all;
}

template <>
void AttentionBlocks<BFloat16>::tileKeyBlock(const Tensors &t, int64_t batch,
                                             int64_t keyHead, int64_t key,
                                             float *space) const {
  OpenTiles open(*tiles);
  int64_t keys = std::min(blockKeys, a.keys - key);
  const BFloat16 *k = t.k + at(a.k, batch, keyHead, key);
  const BFloat16 *v = t.v + at(a.v, batch, keyHead, key);
  float *dK = space + slot.keyGrads, *dV = space + slot.valueGrads;
  int64_t keyRoom = roundUp(keys, kTileRows);
  tiles->rightAcross(k, a.k[2], keys, a.depth, halves(space + slot.keysAcross));
  if (!gradient) {
    tiles->right(v, a.v[2], keys, a.width, halves(space + slot.values));
  } else {
    tiles->rightAcross(v, a.v[2], keys, a.width,
                       halves(space + slot.valuesAcross));
    tiles->right(k, a.k[2], keys, a.depth, halves(space + slot.keys));
    std::fill_n(dK, roundUp(a.depth, kTileRows) * keyRoom, 0.0f);
    std::fill_n(dV, roundUp(a.width, kTileRows) * keyRoom, 0.0f);
  }
  int64_t members = a.heads / a.keyHeads;
  for (int64_t member = 0; member < members; ++member)
    for (int64_t row = 0; row < a.queries; row += tileRows) {
      Block b = blockOf(batch, keyHead * members + member, member, row,
                        tileRows, key, space);
      if (gradient)
        tileBackward(t, b, space);
      else
        tileForward(t, b, space);
    }
  if (!gradient)
    return;
  tiles->putAcross(dK, keys, a.depth, scale,
                   t.kGrad + at(a.kGrad, batch, keyHead, key), a.kGrad[2]);
  tiles->putAcross(dV, keys, a.width, keptFactor,
                   t.vGrad + at(a.vGrad, batch, keyHead, key), a.vGrad[2]);
}

template <>
void AttentionBlocks<BFloat16>::tileForward(const Tensors &t, const Block &b,
                                            float *space) const {
  float *scores = space + slot.scores;
  float *sum = space + slot.sums + b.member * a.queries + b.row;
  BFloat16 *queries = halves(space + slot.queries);
  RowLse<float> *rowLse = lseOf(t, b);
  Sums output = rowSums(t.o, a.o, b, space + slot.outputs, widthPitch);
  begin(b, rowLse, sum);
  if (b.isOpen) {
    TileStrips strips = stripsOf(b, bounds.any());
    tiles->left(t.q + at(a.q, b.batch, b.head, b.row), a.q[2], b.rows, a.depth,
                queries);
    tiles->byKeys(strips, a.depth, queries, halves(space + slot.keysAcross),
                  scores, pitch);
    for (int64_t i = 0; i < b.rows; ++i) {
      float *row = scores + i * pitch;
      Keys own = ownKeys(b, i), all = passed(own);
      tiles->scale(row + all.first, all.second - all.first, scale);
      float factor = exponentials(t, b, i, row, rowLse[i].lse, sum[i], space);
      BFloat16 *p = halves(row);
      tiles->narrow(row + own.first, own.second - own.first, p + own.first);
      int64_t from = strips.from[i / kStrip] * kStrip;
      int64_t to = strips.to[i / kStrip] * kStrip;
      std::fill(p + std::min(from, own.first), p + own.first, BFloat16());
      std::fill(p + own.second, p + std::max(to, own.second), BFloat16());
      if (b.key > 0 && factor != 1)
        for (int64_t d = 0; d < a.width; ++d)
          output.row(i)[d] *= factor;
    }
    tiles->ofKeys(strips, {scores, pitch * int64_t(sizeof(float)), 0, false,
                           halves(space + slot.values), output.data,
                           output.pitch, a.width, b.key > 0});
  } else if (b.key == 0) {
    clear(output, b.rows, a.width);
  }
  if (b.key + b.keys == a.keys)
    finish(t, b, output, rowLse, sum);
}

template <>
void AttentionBlocks<BFloat16>::tileRowPairs(const Tensors &t, const Block &b,
                                             const TileStrips &strips,
                                             bool bounded, float *space) const {
  float *scores = space + slot.scores, *grads = space + slot.scoreGrads;
  for (int64_t i = 0; i < roundUp(b.rows, kStrip); ++i) {
    int64_t strip = i / kStrip;
    int64_t from = strips.from[strip] * kStrip, to = strips.to[strip] * kStrip;
    float *p = scores + i * pitch, *g = grads + i * pitch;
    for (float *row : {p, g})
      if (i >= b.rows)
        std::fill(row + from, row + to, 0.0f);
    if (i < b.rows) {
      Keys own = ownKeys(b, i), all = passed(own);
      tiles->scale(p + all.first, all.second - all.first, scale);
      if (a.hasDropout)
        tiles->scale(g + all.first, all.second - all.first, keptFactor);
      float rest = gradientRow(t, b, i, p, g, space);
      // Keys that are there, and those beside them that complete a tile.
      int64_t keys = std::max(std::min(to, b.keys), own.second);
      for (float *row : {p, g}) {
        std::fill(row + std::min(from, own.first), row + own.first, rest);
        std::fill(row + own.second, row + keys, rest);
        std::fill(row + keys, row + std::max(to, keys), 0.0f);
      }
    }
    if (i % 2 == 0)
      continue;
    float *evenP = p - pitch, *evenG = g - pitch;
    BFloat16 *free = halves(p);
    tiles->pair(evenP + from, p + from, to - from, evenP + from, nullptr,
                nullptr);
    tiles->pair(evenG + from, g + from, to - from, evenG + from, free + from,
                free + pitch + from);
  }
}

template <>
void AttentionBlocks<BFloat16>::tileBackward(const Tensors &t, const Block &b,
                                             float *space) const {
  float *scores = space + slot.scores, *grads = space + slot.scoreGrads;
  BFloat16 *queries = halves(space + slot.queries);
  BFloat16 *outGrads = halves(space + slot.outGrads);
  Sums dQ = rowSums(t.qGrad, a.qGrad, b, space + slot.queryGrads, depthPitch);
  int64_t rowBytes = pitch * int64_t(sizeof(float));
  // A row without any key has NaN for all keys, unless it has zeros.
  bool bounded = bounds.any() && (a.zeroEmptyRows || !b.hasEmpty);
  if (bounded && !b.isOpen) {
    if (b.key == 0)
      clear(dQ, b.rows, a.depth);
  } else {
    TileStrips strips = stripsOf(b, bounded);
    const BFloat16 *q = t.q + at(a.q, b.batch, b.head, b.row);
    const BFloat16 *grad = t.grad + at(a.grad, b.batch, b.head, b.row);
    BFloat16 *queriesAcross = queries + tileRows * roundUp(a.depth, kTileSteps);
    BFloat16 *gradsAcross = outGrads + tileRows * roundUp(a.width, kTileSteps);
    tiles->left(q, a.q[2], b.rows, a.depth, queries);
    tiles->leftAcross(q, a.q[2], b.rows, a.depth, queriesAcross);
    tiles->left(grad, a.grad[2], b.rows, a.width, outGrads);
    tiles->leftAcross(grad, a.grad[2], b.rows, a.width, gradsAcross);
    tiles->byKeys(strips, a.depth, queries, halves(space + slot.keysAcross),
                  scores, pitch);
    tiles->byKeys(strips, a.width, outGrads, halves(space + slot.valuesAcross),
                  grads, pitch);
    tileRowPairs(t, b, strips, bounded, space);
    tiles->ofRows(strips, {gradsAcross, scores, 2 * rowBytes,
                           space + slot.valueGrads, a.width});
    tiles->ofKeys(strips, {scores + pitch, rowBytes, rowBytes / 2, true,
                           halves(space + slot.keys), dQ.data, dQ.pitch,
                           a.depth, b.key > 0});
    tiles->ofRows(strips, {queriesAcross, grads, 2 * rowBytes,
                           space + slot.keyGrads, a.depth});
  }
  if (b.key + b.keys == a.keys)
    for (int64_t i = 0; i < b.rows; ++i)
      copies.put(dQ.row(i), a.depth, scale,
                 t.qGrad + at(a.qGrad, b.batch, b.head, b.row + i));
}
