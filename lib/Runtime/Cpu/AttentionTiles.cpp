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
// gradients sum over rows, they lie in place of the even rows. That leaves the
// odd ones free for the two rows of the score's gradients, as they are for the
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

#include <limits>

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

/// Rows that sums are asked for ahead: they are too many for the caches.
constexpr int64_t kAhead = 8;

/// Asks for `count` elements, which will be changed.
void askFor(const float *from, int64_t count) {
  for (int64_t i = 0; i < count; i += kLanes<float>)
    __builtin_prefetch(from + i, /*rw=*/1);
}

BFloat16 *halves(float *at) { return reinterpret_cast<BFloat16 *>(at); }

} // namespace

template <typename S>
bool AttentionBlocks<S>::tileBegin(const Tensors &t, int64_t batch,
                                   int64_t keyHead, T *space) const {
  bool all = tilePasses->allFinite(t.k + at(a.k, batch, keyHead, 0), a.k[2],
                                   a.keys, a.depth) &&
             tilePasses->allFinite(t.v + at(a.v, batch, keyHead, 0), a.v[2],
                                   a.keys, a.width);
  int64_t members = a.heads / a.keyHeads;
  T *delta = space + slot.deltas;
  for (int64_t head = keyHead * members; head < (keyHead + 1) * members;
       ++head) {
    all = all && tilePasses->allFinite(t.q + at(a.q, batch, head, 0), a.q[2],
                                       a.queries, a.depth);
    if (!gradient)
      continue;
    all = all && tilePasses->allFinite(t.grad + at(a.grad, batch, head, 0),
                                       a.grad[2], a.queries, a.width);
    for (int64_t i = 0; i < a.queries && all; ++i)
      *delta++ = copies.dot(t.grad + at(a.grad, batch, head, i),
                            t.o + at(a.o, batch, head, i), a.width);
  }
  return all;
}

template <typename S>
void AttentionBlocks<S>::tileKeyBlock(const Tensors &t, int64_t batch,
                                      int64_t keyHead, int64_t key,
                                      T *space) const {
  OpenTiles open(*tiles);
  int64_t keys = std::min(blockKeys, a.keys - key);
  const S *k = t.k + at(a.k, batch, keyHead, key);
  const S *v = t.v + at(a.v, batch, keyHead, key);
  T *dK = space + slot.keyGrads, *dV = space + slot.valueGrads;
  int64_t keyRoom = roundUp(keys, kTileRows);
  tiles->rightAcross(k, a.k[2], keys, a.depth, halves(space + slot.keysAcross));
  if (!gradient) {
    tiles->right(v, a.v[2], keys, a.width, halves(space + slot.values));
  } else {
    tiles->rightAcross(v, a.v[2], keys, a.width,
                       halves(space + slot.valuesAcross));
    tiles->right(k, a.k[2], keys, a.depth, halves(space + slot.keys));
    std::fill_n(dK, roundUp(a.depth, kTileRows) * keyRoom, T(0));
    std::fill_n(dV, roundUp(a.width, kTileRows) * keyRoom, T(0));
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

template <typename S>
void AttentionBlocks<S>::tileForward(const Tensors &t, const Block &b,
                                     T *space) const {
  T *scores = space + slot.scores;
  T *sum = space + slot.sums + b.member * a.queries + b.row;
  S *queries = halves(space + slot.queries);
  RowLse<T> *rowLse = lseOf(t, b);
  Sums output = rowSums(t.o, a.o, b, space + slot.outputs, widthPitch);
  begin(b, rowLse, sum);
  if (b.isOpen) {
    TileStrips strips = stripsOf(b, bounds.any());
    tiles->left(t.q + at(a.q, b.batch, b.head, b.row), a.q[2], b.rows, a.depth,
                queries);
    tiles->byKeys(strips, a.depth, queries, halves(space + slot.keysAcross),
                  scores, pitch);
    for (int64_t i = 0; i < b.rows; ++i) {
      T *row = scores + i * pitch;
      if (b.key > 0)
        askFor(output.row(std::min(i + kAhead, b.rows - 1)), a.width);
      T factor = tileExponentials(t, b, i, row, rowLse[i].lse, sum[i], space);
      Keys own = ownKeys(b, i);
      S *p = halves(row);
      int64_t from = strips.from[i / kStrip] * kStrip;
      int64_t to = strips.to[i / kStrip] * kStrip;
      std::fill(p + std::min(from, own.first), p + own.first, S());
      std::fill(p + own.second, p + std::max(to, own.second), S());
      rescale(b, factor, output.row(i));
    }
    tiles->ofKeys(strips, {scores, pitch * int64_t(sizeof(T)), 0, false,
                           halves(space + slot.values), output.data,
                           output.pitch, a.width, b.key > 0});
  } else if (b.key == 0) {
    clear(output, b.rows, a.width);
  }
  if (b.key + b.keys == a.keys)
    finish(t, b, output, rowLse, sum);
}

template <typename S>
typename AttentionBlocks<S>::T
AttentionBlocks<S>::tileExponentials(const Tensors &t, const Block &b,
                                     int64_t i, T *scores, T &greatest, T &sum,
                                     T *space) const {
  Keys own = ownKeys(b, i), all = passed(own);
  T *from = scores + all.first;
  S *to = halves(scores) + all.first;
  int64_t count = all.second - all.first;
  if (!isPlain(t, b)) {
    tilePasses->scale(from, count, scale);
    T factor =
        exponentials(t, b, i, scores, greatest, sum, space, tileRowPasses());
    tilePasses->narrow(from, count, to);
    return factor;
  }
  std::fill(from, scores + own.first, -std::numeric_limits<T>::infinity());
  RowSum<T> row = tilePasses->exponentials(from, count, scale, greatest, to);
  return addRow(row, greatest, sum);
}

template <typename S>
void AttentionBlocks<S>::tileRowPairs(const Tensors &t, const Block &b,
                                      const TileStrips &strips, bool bounded,
                                      T *space) const {
  TileRowPair pair{};
  pair.pitch = pitch, pair.scale = scale;
  Sums dQ = rowSums(t.qGrad, a.qGrad, b, space + slot.queryGrads, depthPitch);
  for (int64_t i = 0; i < roundUp(b.rows, kStrip); i += 2) {
    int64_t from = strips.from[i / kStrip] * kStrip;
    int64_t to = strips.to[i / kStrip] * kStrip;
    pair.scores = space + slot.scores + i * pitch;
    pair.grads = space + slot.scoreGrads + i * pitch;
    for (int64_t j = i; b.key > 0 && j < std::min(i + 2, b.rows); ++j)
      askFor(dQ.row(j), a.depth);
    if (isPlain(t, b) && (a.zeroEmptyRows || !b.hasEmpty)) {
      for (int64_t j = 0; j < 2; ++j)
        beginGradient(t, b, i + j, pair, j, space);
      tilePasses->gradients(pair, from, to);
      continue;
    }
    for (int64_t j = 0; j < 2; ++j)
      tileGradientRow(t, b, i + j, bounded, from, to, pair.scores + j * pitch,
                      pair.grads + j * pitch, space);
    T *oddScores = pair.scores + pitch, *oddGrads = pair.grads + pitch;
    tilePasses->pair(pair.scores + from, oddScores + from, to - from, nullptr,
                     0);
    tilePasses->pair(pair.grads + from, oddGrads + from, to - from,
                     halves(oddScores) + from,
                     halves(oddGrads) - halves(oddScores));
  }
}

template <typename S>
void AttentionBlocks<S>::beginGradient(const Tensors &t, const Block &b,
                                       int64_t i, TileRowPair &pair,
                                       int64_t which, const T *space) const {
  pair.first[which] = pair.end[which] = 0;
  pair.lse[which] = {};
  pair.delta[which] = 0;
  if (i >= b.rows || lseOf(t, b)[i].lse == -std::numeric_limits<T>::infinity())
    return;
  Keys own = ownKeys(b, i);
  pair.first[which] = own.first, pair.end[which] = own.second;
  pair.lse[which] = lseOf(t, b)[i];
  pair.delta[which] = space[slot.deltas + b.member * a.queries + b.row + i];
}

template <typename S>
void AttentionBlocks<S>::tileGradientRow(const Tensors &t, const Block &b,
                                         int64_t i, bool bounded, int64_t from,
                                         int64_t to, T *scores, T *grads,
                                         T *space) const {
  if (i >= b.rows) {
    std::fill(scores + from, scores + to, T(0));
    std::fill(grads + from, grads + to, T(0));
    return;
  }
  Keys own = ownKeys(b, i), all = passed(own);
  tilePasses->scale(scores + all.first, all.second - all.first, scale);
  if (a.hasDropout)
    tilePasses->scale(grads + all.first, all.second - all.first, keptFactor);
  T rest = gradientRow(t, b, i, scores, grads, space, tileRowPasses());
  // Keys that are there, and those beside them that complete a tile.
  int64_t keys = std::max(std::min(to, b.keys), own.second);
  for (T *row : {scores, grads}) {
    std::fill(row + std::min(from, own.first), row + own.first, rest);
    std::fill(row + own.second, row + keys, rest);
    std::fill(row + keys, row + std::max(to, keys), T(0));
  }
}

template <typename S>
void AttentionBlocks<S>::tileBackward(const Tensors &t, const Block &b,
                                      T *space) const {
  T *scores = space + slot.scores, *grads = space + slot.scoreGrads;
  S *queries = halves(space + slot.queries);
  S *outGrads = halves(space + slot.outGrads);
  Sums dQ = rowSums(t.qGrad, a.qGrad, b, space + slot.queryGrads, depthPitch);
  int64_t rowBytes = pitch * int64_t(sizeof(T));
  // A row without any key has NaN for all keys, unless it has zeros.
  bool bounded = bounds.any() && (a.zeroEmptyRows || !b.hasEmpty);
  if (bounded && !b.isOpen) {
    if (b.key == 0)
      clear(dQ, b.rows, a.depth);
  } else {
    TileStrips strips = stripsOf(b, bounded);
    const S *q = t.q + at(a.q, b.batch, b.head, b.row);
    const S *grad = t.grad + at(a.grad, b.batch, b.head, b.row);
    S *queriesAcross = queries + tileRows * roundUp(a.depth, kTileSteps);
    S *gradsAcross = outGrads + tileRows * roundUp(a.width, kTileSteps);
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
    tiles->ofKeys(strips, {scores + pitch, rowBytes,
                           (grads - scores) * int64_t(sizeof(T)), true,
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

template bool AttentionBlocks<BFloat16>::tileBegin(const Tensors &t,
                                                   int64_t batch,
                                                   int64_t keyHead,
                                                   float *space) const;
template void AttentionBlocks<BFloat16>::tileKeyBlock(const Tensors &t,
                                                      int64_t batch,
                                                      int64_t keyHead,
                                                      int64_t key,
                                                      float *space) const;
