//===- AttentionBlocks.cpp - attention by blocks of rows and keys ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: the matrix of scores [queries, keys] of all heads is the largest
// tensor of a transformer's step, and passing it through memory costs more than
// its products. Method: a thread takes one key head of one sample after
// another, and goes through its keys, and for these through the query rows of
// its heads, in blocks. A block of scores fits the L2 cache: one product makes
// it, a pass makes exponentials of it, a second product adds to the result,
// which is scaled wherever a row's greatest score grows from one block of keys
// to the next, and by the row's sum at the end. Scores that have a cap get it
// before anything else; the gradient multiplies by its derivative, a row's at a
// time. What stays is the result and each row's log of the sum of exponentials
// (lse), with what rounding took from it. The gradient makes the block's
// probabilities again from lse, and five products of it. Blocks and tiles
// outside of the bounds of their rows (AttentionBounds.h) are left out. A
// dropout's random numbers are made again, too; what it divides by is a factor
// of the result and of its gradient.
//
// Products are those of BlockProduct.h. What they multiply is copied into the
// workspace first, converted to the type that is computed in (f32 for 16-bit
// floats, whose sums are f32 in the workspace and rounded once): keys, values
// and their transposes once for a block of keys, rows of queries for each
// block. Where the CPU multiplies bf16 by tiles, AttentionTiles.cpp does.
//
// Guarantee: which rows and keys make a block depends on the descriptor alone,
// and a block's bits on nothing else, so they are the same for any number of
// threads and any place in memory; nothing is allocated. Workspace a thread:
// one block of scores (two for the gradient) and the copies, some hundred KiB
// for any number of keys. Complexity: two (five) products over the keys that
// bounds leave, rounded up to tiles.
//
//===----------------------------------------------------------------------===//
#include "AttentionBlocks.h"

#include <bit>
#include <cmath>
#include <limits>

using namespace ckopt;
using namespace ckopt::runtime;

namespace {

/// What products may read beside the keys that bounds leave a row: less than
/// the rows of a tile.
constexpr int64_t kBeside = 8;

template <typename T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();

/// Returns the sum, rounded, and what rounding took from it.
template <typename T> RowLse<T> addExactly(T x, T y) {
  T sum = x + y;
  if (std::fabs(x) < std::fabs(y))
    std::swap(x, y);
  return {sum, std::isfinite(sum) ? y - (sum - x) : T(0)};
}

} // namespace

template <typename S>
AttentionBlocks<S>::AttentionBlocks(const AttentionDesc &desc, bool gradient,
                                    Instructions with)
    : a(desc), bounds(a), gradient(gradient),
      scale(static_cast<T>(std::bit_cast<double>(a.scale))),
      fill(static_cast<T>(std::bit_cast<double>(a.fill))),
      keptFactor(1 / (1 - static_cast<T>(std::bit_cast<double>(a.ratio)))),
      cap{static_cast<T>(std::bit_cast<double>(a.cap)),
          static_cast<T>(1 / std::bit_cast<double>(a.cap))},
      passes(rowPasses<T>(with)), copies(blockCopies<S>(with)),
      multiply(blockMultiply<T>(with)),
      tiles(mayTile ? tileCode(with) : nullptr),
      tilePasses(runtime::tilePasses(with)) {
  placeSlots();
}

/// Blocks that no row looks at get no bounds.
template <typename S>
typename AttentionBlocks<S>::Block
AttentionBlocks<S>::blockOf(int64_t batch, int64_t head, int64_t member,
                            int64_t row, int64_t rows, int64_t key,
                            T *space) const {
  const int32_t *segments = segmentBounds(space);
  Block b;
  b.batch = batch, b.head = head, b.member = member;
  b.row = row, b.rows = std::min(rows, a.queries - row);
  b.key = key, b.keys = std::min(blockKeys, a.keys - key);
  b.isMixed = bounds.isMixed(segments);
  bool mayBeEmpty =
      gradient && !a.zeroEmptyRows && bounds.hasEmptyRow(segments);
  if (!mayBeEmpty && (bounds.keysOf(row, segments).first >= key + b.keys ||
                      bounds.keysOf(row + b.rows - 1, segments).second <= key))
    return b;
  for (int64_t i = 0; i < b.rows; ++i) {
    auto [first, end] = bounds.keysOf(row + i, segments);
    b.hasEmpty |= first >= end;
    b.first[i] = int32_t(std::clamp<int64_t>(first - key, 0, b.keys));
    b.end[i] = int32_t(std::clamp<int64_t>(end - key, 0, b.keys));
    b.isOpen |= b.first[i] < b.end[i];
  }
  return b;
}

template <typename S>
void AttentionBlocks<S>::keyBlock(const Tensors &t, int64_t batch,
                                  int64_t keyHead, int64_t key,
                                  T *space) const {
  int64_t keys = std::min(blockKeys, a.keys - key);
  if (a.hasSegments && key == 0)
    bounds.findSegments(t.segments + batch * a.segments, segmentBounds(space));
  if constexpr (mayTile)
    if (tiles) {
      if (key == 0)
        space[slot.finite] = tileBegin(t, batch, keyHead, space);
      if (space[slot.finite] != 0)
        return tileKeyBlock(t, batch, keyHead, key, space);
    }
  const S *k = t.k + at(a.k, batch, keyHead, key);
  const S *v = t.v + at(a.v, batch, keyHead, key);
  copies.transpose(k, a.k[2], keys, a.depth, 1, space + slot.keysAcross);
  Sums dK{}, dV{};
  if (!gradient) {
    copies.copy(v, a.v[2], keys, a.width, 1, space + slot.values, widthPitch);
  } else {
    copies.transpose(v, a.v[2], keys, a.width, 1, space + slot.valuesAcross);
    copies.copy(k, a.k[2], keys, a.depth, scale, space + slot.keys, depthPitch);
    dK = sums(t.kGrad, a.kGrad, at(a.kGrad, batch, keyHead, key),
              space + slot.keyGrads, depthPitch);
    dV = sums(t.vGrad, a.vGrad, at(a.vGrad, batch, keyHead, key),
              space + slot.valueGrads, widthPitch);
    clear(dK, keys, a.depth);
    clear(dV, keys, a.width);
  }
  int64_t members = a.heads / a.keyHeads;
  for (int64_t member = 0; member < members; ++member)
    for (int64_t row = 0; row < a.queries; row += blockRows) {
      Block b = blockOf(batch, keyHead * members + member, member, row,
                        blockRows, key, space);
      if (gradient)
        backward(t, b, dK, dV, space);
      else
        forward(t, b, space);
    }
  if (gradient && isNarrow) {
    round(dK, keys, a.depth, t.kGrad + at(a.kGrad, batch, keyHead, key),
          a.kGrad[2]);
    round(dV, keys, a.width, t.vGrad + at(a.vGrad, batch, keyHead, key),
          a.vGrad[2]);
  }
}

template <typename S>
void AttentionBlocks<S>::byKeys(const Block &b, bool bounded, int64_t columns,
                                const T *x, int64_t xPitch, const T *across,
                                T *scores) const {
  BlockProduct<T> p{b.rows, b.keys,    columns,
                    x,      xPitch,    1,
                    across, kPanel<T>, kPanel<T> * columns,
                    scores, pitch};
  p.wide = true;
  p.bounded = b.by(Bounded::Columns, bounded);
  p.first = b.first, p.end = b.end;
  multiply(p);
}

template <typename S>
void AttentionBlocks<S>::ofKeys(const Block &b, bool bounded, const T *scores,
                                int64_t columns, const T *y, int64_t yPitch,
                                bool add, const Sums &result) const {
  BlockProduct<T> p{b.rows, columns, b.keys,    scores,      pitch,       1,
                    y,      yPitch,  kPanel<T>, result.data, result.pitch};
  p.add = add;
  p.bounded = b.by(Bounded::Depth, bounded);
  p.first = b.first, p.end = b.end;
  multiply(p);
}

template <typename S>
void AttentionBlocks<S>::ofRows(const Block &b, bool bounded, const T *scores,
                                int64_t columns, const T *x, int64_t xPitch,
                                const Sums &result) const {
  BlockProduct<T> p{b.keys, columns, b.rows,    scores,      1,           pitch,
                    x,      xPitch,  kPanel<T>, result.data, result.pitch};
  p.add = true;
  p.bounded = b.by(Bounded::Rows, bounded);
  p.first = b.first, p.end = b.end;
  multiply(p);
}

template <typename S>
void AttentionBlocks<S>::copyQueries(const Tensors &t, const Block &b,
                                     T *to) const {
  copies.copy(t.q + at(a.q, b.batch, b.head, b.row), a.q[2], b.rows, a.depth,
              scale, to, depthPitch);
}

template <typename S>
void AttentionBlocks<S>::forward(const Tensors &t, const Block &b,
                                 T *space) const {
  T *scores = space + slot.scores, *queries = space + slot.queries;
  T *sum = space + slot.sums + b.member * a.queries + b.row;
  RowLse<T> *rowLse = lseOf(t, b);
  Sums output = rowSums(t.o, a.o, b, space + slot.outputs, widthPitch);
  begin(b, rowLse, sum);
  if (b.isOpen) {
    copyQueries(t, b, queries);
    byKeys(b, bounds.any(), a.depth, queries, depthPitch,
           space + slot.keysAcross, scores);
    for (int64_t i = 0; i < b.rows; ++i) {
      T factor = exponentials(t, b, i, scores + i * pitch, rowLse[i].lse,
                              sum[i], space, passes);
      closeRow(b, i, bounds.any(), scores + i * pitch, ownKeys(b, i), T(0));
      rescale(b, factor, output.row(i));
    }
    ofKeys(b, bounds.any(), scores, a.width, space + slot.values, widthPitch,
           b.key > 0, output);
  } else if (b.key == 0) {
    clear(output, b.rows, a.width);
  }
  if (b.key + b.keys == a.keys)
    finish(t, b, output, rowLse, sum);
}

template <typename S>
void AttentionBlocks<S>::begin(const Block &b, RowLse<T> *rows, T *sum) {
  if (b.key > 0)
    return;
  std::fill_n(rows, b.rows, RowLse<T>{-kInfinity<T>, T(0)});
  std::fill_n(sum, b.rows, T(0));
}

template <typename S>
typename AttentionBlocks<S>::T AttentionBlocks<S>::addRow(const RowSum<T> &row,
                                                          T &greatest, T &sum) {
  T factor =
      row.greatest == greatest ? T(1) : std::exp(greatest - row.greatest);
  sum = sum * factor + row.sum;
  greatest = row.greatest;
  return factor;
}

template <typename S>
void AttentionBlocks<S>::rescale(const Block &b, T factor, T *row) const {
  if (b.key > 0 && factor != 1)
    for (int64_t d = 0; d < a.width; ++d)
      row[d] *= factor;
}

template <typename S>
typename AttentionBlocks<S>::T
AttentionBlocks<S>::exponentials(const Tensors &t, const Block &b, int64_t i,
                                 T *scores, T &greatest, T &sum, T *space,
                                 const RowPasses<T> &by) const {
  Keys own = ownKeys(b, i), all = passed(own);
  combine(t, b, i, scores, own, /*slopes=*/nullptr);
  RowSum<T> row =
      by.exponentials(scores + all.first, all.second - all.first, greatest);
  if (a.hasDropout)
    passes.applyMask(scores + all.first, all.second - all.first,
                     keptOf(t, b, i, all, space), 1, T(0));
  return addRow(row, greatest, sum);
}

template <typename S>
void AttentionBlocks<S>::finish(const Tensors &t, const Block &b,
                                const Sums &output, RowLse<T> *rows,
                                const T *sum) const {
  S *o = t.o + at(a.o, b.batch, b.head, b.row);
  for (int64_t i = 0; i < b.rows; ++i) {
    T &lse = rows[i].lse;
    bool isEmpty = lse == -kInfinity<T> && (a.zeroEmptyRows || sum[i] == 0);
    T nothing = a.zeroEmptyRows ? T(0) : std::numeric_limits<T>::quiet_NaN();
    if (isEmpty)
      std::fill_n(output.row(i), a.width, nothing);
    copies.put(output.row(i), a.width, isEmpty ? 1 : keptFactor / sum[i],
               o + i * a.o[2]);
    if (!isEmpty)
      rows[i] = addExactly(lse, std::log(sum[i]));
    else if (!a.zeroEmptyRows)
      lse = nothing;
  }
}

template <typename S>
void AttentionBlocks<S>::backward(const Tensors &t, const Block &b,
                                  const Sums &dK, const Sums &dV,
                                  T *space) const {
  T *scores = space + slot.scores, *grads = space + slot.scoreGrads;
  T *queries = space + slot.queries, *outGrads = space + slot.outGrads;
  Sums dQ = rowSums(t.qGrad, a.qGrad, b, space + slot.queryGrads, depthPitch);
  // A row without any key has NaN for all keys, unless it has zeros.
  bool bounded = bounds.any() && (a.zeroEmptyRows || !b.hasEmpty);
  if (bounded && !b.isOpen) {
    if (b.key == 0)
      clear(dQ, b.rows, a.depth);
  } else {
    copyQueries(t, b, queries);
    copies.copy(t.grad + at(a.grad, b.batch, b.head, b.row), a.grad[2], b.rows,
                a.width, keptFactor, outGrads, widthPitch);
    byKeys(b, bounded, a.depth, queries, depthPitch, space + slot.keysAcross,
           scores);
    byKeys(b, bounded, a.width, outGrads, widthPitch, space + slot.valuesAcross,
           grads);
    for (int64_t i = 0; i < b.rows; ++i) {
      T *p = scores + i * pitch, *g = grads + i * pitch;
      T rest = gradientRow(t, b, i, p, g, space, passes);
      closeRow(b, i, bounded, p, ownKeys(b, i), rest);
      closeRow(b, i, bounded, g, ownKeys(b, i), rest);
    }
    ofRows(b, bounded, scores, a.width, outGrads, widthPitch, dV);
    ofKeys(b, bounded, grads, a.depth, space + slot.keys, depthPitch, b.key > 0,
           dQ);
    ofRows(b, bounded, grads, a.depth, queries, depthPitch, dK);
  }
  if (isNarrow && b.key + b.keys == a.keys)
    round(dQ, b.rows, a.depth, t.qGrad + at(a.qGrad, b.batch, b.head, b.row),
          a.qGrad[2]);
}

template <typename S>
typename AttentionBlocks<S>::T
AttentionBlocks<S>::gradientRow(const Tensors &t, const Block &b, int64_t i,
                                T *scores, T *grads, T *space,
                                const RowPasses<T> &by) const {
  Keys own = ownKeys(b, i);
  const RowLse<T> row = lseOf(t, b)[i];
  bool isEmpty = std::isinf(row.lse) && row.lse < 0;
  T rest = 0;
  if (isEmpty) {
    std::fill(scores + own.first, scores + own.second, T(0));
    std::fill(grads + own.first, grads + own.second, T(0));
  } else {
    Keys all = passed(own), of = bounds.keysOf(b.row + i, segmentBounds(space));
    T *p = scores + all.first, *g = grads + all.first;
    int64_t count = all.second - all.first;
    T *slopes = space + slot.slopes;
    combine(t, b, i, scores, own, slopes);
    T delta = copies.dot(t.grad + at(a.grad, b.batch, b.head, b.row + i),
                         t.o + at(a.o, b.batch, b.head, b.row + i), a.width);
    const unsigned char *kept =
        a.hasDropout ? keptOf(t, b, i, all, space) : nullptr;
    if (kept)
      passes.applyMask(g, count, kept, 1, T(0));
    by.gradients(p, g, count, row, delta);
    if (a.cap)
      passes.multiply(g, count, slopes + all.first);
    if (kept)
      passes.applyMask(p, count, kept, 1, T(0));
    // A fill that is finite may have a probability; it has no gradient.
    if (t.mask)
      passes.applyMask(g, count, maskRow(t, b, i, all.first), a.mask[3], T(0));
    if (of.first >= of.second)
      rest = row.lse; // NaN
  }
  return rest;
}

/// Products of a tile read what one of its rows looks at.
template <typename S>
void AttentionBlocks<S>::closeRow(const Block &b, int64_t i, bool bounded,
                                  T *row, Keys own, T value) {
  int64_t from = 0, to = b.keys;
  if (bounded) {
    int64_t tile = i / kRowStep * kRowStep;
    int64_t last = std::min(tile + kRowStep, b.rows) - 1;
    from = std::max<int64_t>(
        std::min<int64_t>(b.first[tile], own.first - kBeside), 0);
    to = std::min<int64_t>(std::max<int64_t>(b.end[last], own.second + kBeside),
                           b.keys);
  }
  std::fill(row + std::min(from, own.first), row + own.first, value);
  std::fill(row + own.second, row + std::max(to, own.second), value);
}

template <typename S>
void AttentionBlocks<S>::combine(const Tensors &t, const Block &b, int64_t i,
                                 T *scores, Keys own, T *slopes) const {
  auto [from, to] = passed(own);
  if (a.cap)
    passes.cap(scores + from, to - from, cap, slopes ? slopes + from : nullptr);
  if (t.bias)
    passes.addBias(scores + from, to - from,
                   t.bias + at(a.bias, b.batch, b.head, b.row + i) +
                       (b.key + from) * a.bias[3],
                   a.bias[3]);
  if (t.mask)
    passes.applyMask(scores + from, to - from, maskRow(t, b, i, from),
                     a.mask[3], fill);
  std::fill(scores + from, scores + own.first, -kInfinity<T>);
  if (!b.isMixed)
    return;
  const int64_t *numbers = t.segments + b.batch * a.segments;
  int64_t number = numbers[b.row + i];
  for (int64_t j = own.first; j < own.second; ++j)
    if (numbers[b.key + j] != number)
      scores[j] = -kInfinity<T>;
}

template <typename S>
const unsigned char *AttentionBlocks<S>::keptOf(const Tensors &t,
                                                const Block &b, int64_t i,
                                                Keys keys, T *space) const {
  int64_t row = (b.batch * a.heads + b.head) * a.queries + b.row + i;
  return passes.keep(t.words, t.words.first + row * a.keys + b.key + keys.first,
                     keys.second - keys.first,
                     reinterpret_cast<unsigned char *>(space + slot.kept));
}

template class ckopt::runtime::AttentionBlocks<float>;
template class ckopt::runtime::AttentionBlocks<double>;
template class ckopt::runtime::AttentionBlocks<BFloat16>;
template class ckopt::runtime::AttentionBlocks<Half>;
