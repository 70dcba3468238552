//===- AttentionBlocks.h - attention of a block of keys ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to attention: what one thread does with one block of a head's keys.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CPU_ATTENTIONBLOCKS_H
#define CKOPT_LIB_RUNTIME_CPU_ATTENTIONBLOCKS_H

#include "AttentionBounds.h"
#include "AttentionRows.h"
#include "PrimitiveImpl.h"
#include "TileProduct.h"

#include <algorithm>
#include <type_traits>

namespace ckopt::runtime {

/// Attention, or its gradient, on tensors of S.
template <typename S> class AttentionBlocks {
public:
  using T = Compute<S>;

  struct Tensors {
    const S *q, *k, *v;
    const T *bias = nullptr;
    const unsigned char *mask = nullptr;
    const int64_t *segments = nullptr;
    DropoutWords words;
    S *o;
    RowLse<T> *lse;
    const S *grad = nullptr;
    S *qGrad = nullptr, *kGrad = nullptr, *vGrad = nullptr;
  };

  AttentionBlocks(const AttentionDesc &desc, bool gradient,
                  Instructions with = widestInstructions());

  /// The most rows and keys of a block. The gradient's are fewer, because it
  /// has two blocks of scores. Rows are divided by the rows of a tile.
  static constexpr int64_t kMostRows = 128, kMostKeys = 512,
                           kMostGradientKeys = 256, kRowStep = 6;

  /// Bytes of workspace of one thread.
  int64_t bytes() const { return slotBytes; }
  int64_t rowsOfBlock() const { return tiles ? tileRows : blockRows; }
  bool multipliesByTiles() const { return tiles; }
  int64_t keysOfBlock() const { return blockKeys; }

  /// Computes all query rows of a key head's group, for one block of its keys.
  /// Blocks of a head go in order.
  void keyBlock(const Tensors &t, int64_t batch, int64_t keyHead, int64_t key,
                T *space) const;

private:
  /// Rows that are summed: the tensor's own, or those of the workspace where
  /// the tensor is narrower.
  struct Sums {
    T *data;
    int64_t pitch;
    T *row(int64_t i) const { return data + i * pitch; }
  };
  using Keys = KeyBounds::Keys;
  /// Plans where copies and blocks lie in a thread's workspace
  /// (AttentionSlots.cpp).
  void placeSlots();
  /// One block of rows of a query head, and the keys that it looks at.
  struct Block {
    int64_t batch, head, member; ///< member: of the query heads of a key head
    int64_t row, rows, key, keys;
    bool isOpen = false;   ///< a row looks at a key
    bool hasEmpty = false; ///< a row looks at no key of any block
    bool isMixed = false;  ///< of keys between bounds some have other segments
    /// Row i looks at keys from first[i] to before end[i] of the block.
    int32_t first[roundUp(kMostRows, kRowStep)],
        end[roundUp(kMostRows, kRowStep)];

    Bounded by(Bounded form, bool bounded) const {
      return bounded ? form : Bounded::None;
    }
  };

  /// Elements of T; or the numbers of bf16 that tiles have in their place, on
  /// any machine, if these take more.
  int64_t place(int64_t count, int64_t halves = 0) {
    if (mayTile)
      count = std::max(count, (halves + 1) / 2);
    int64_t at = slotBytes / int64_t(sizeof(T));
    slotBytes += alignUp(count * int64_t(sizeof(T)));
    return at;
  }

  static int64_t at(const int64_t *strides, int64_t batch, int64_t head,
                    int64_t row) {
    return batch * strides[0] + head * strides[1] + row * strides[2];
  }
  /// Returns where rows of a tensor are summed.
  Sums sums(S *tensor, const int64_t *strides, int64_t offset, T *scratch,
            int64_t scratchPitch) const {
    if constexpr (isNarrow)
      return {scratch, scratchPitch};
    else
      return {tensor + offset, strides[2]};
  }
  /// The same for a block of rows, all of which have their sums.
  Sums rowSums(S *tensor, const int64_t *strides, const Block &b, T *scratch,
               int64_t scratchPitch) const {
    return sums(tensor, strides, at(strides, b.batch, b.head, b.row),
                scratch + (b.member * a.queries + b.row) * scratchPitch,
                scratchPitch);
  }
  static void clear(const Sums &x, int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < rows; ++i)
      std::fill_n(x.row(i), columns, T(0));
  }
  void round(const Sums &x, int64_t rows, int64_t columns, S *to,
             int64_t stride) const {
    for (int64_t i = 0; i < rows; ++i)
      copies.put(x.row(i), columns, 1, to + i * stride);
  }
  Block blockOf(int64_t batch, int64_t head, int64_t member, int64_t row,
                int64_t rows, int64_t key, T *space) const;
  int32_t *segmentBounds(T *space) const {
    return reinterpret_cast<int32_t *>(space + slot.segments);
  }
  const unsigned char *maskRow(const Tensors &t, const Block &b, int64_t i,
                               int64_t key) const {
    return t.mask + at(a.mask, b.batch, b.head, b.row + i) +
           (b.key + key) * a.mask[3];
  }
  RowLse<T> *lseOf(const Tensors &t, const Block &b) const {
    return t.lse + (b.batch * a.heads + b.head) * a.queries + b.row;
  }

  /// scores = x * y^T, for a block's rows x and keys y.
  void byKeys(const Block &b, bool bounded, int64_t columns, const T *x,
              int64_t xPitch, const T *across, T *scores) const;
  /// result = scores * y, or added to it.
  void ofKeys(const Block &b, bool bounded, const T *scores, int64_t columns,
              const T *y, int64_t yPitch, bool add, const Sums &result) const;
  /// result += scores^T * x.
  void ofRows(const Block &b, bool bounded, const T *scores, int64_t columns,
              const T *x, int64_t xPitch, const Sums &result) const;
  void copyQueries(const Tensors &t, const Block &b, T *to) const;
  /// A row's greatest score so far stands in its lse.
  void forward(const Tensors &t, const Block &b, T *space) const;
  /// Sets what a block's rows have before their first key.
  static void begin(const Block &b, RowLse<T> *rows, T *sum);
  /// Adds a block's exponentials to a row's sum; returns the factor of what was
  /// summed before.
  static T addRow(const RowSum<T> &row, T &greatest, T &sum);
  /// Multiplies a row's result so far by that factor.
  void rescale(const Block &b, T factor, T *row) const;
  /// Makes exponentials of the scores in a block's row, adds to their sum, and
  /// returns the factor of what was summed before.
  T exponentials(const Tensors &t, const Block &b, int64_t i, T *scores,
                 T &greatest, T &sum, T *space, const RowPasses<T> &by) const;
  /// Divides rows by their sums, and sets lse. A row without any key is NaN,
  /// or zero.
  void finish(const Tensors &t, const Block &b, const Sums &output,
              RowLse<T> *rows, const T *sum) const;
  void backward(const Tensors &t, const Block &b, const Sums &dK,
                const Sums &dV, T *space) const;
  /// Makes probabilities and gradients of scores of a block's row i, for its
  /// own keys. Returns what other keys have.
  T gradientRow(const Tensors &t, const Block &b, int64_t i, T *scores,
                T *grads, T *space, const RowPasses<T> &by) const;
  /// Returns the keys that passes take in a row: from where whole vectors start
  /// on.
  static Keys passed(Keys own) {
    return {own.first / kRowPad * kRowPad, own.second};
  }
  static Keys ownKeys(const Block &b, int64_t i) {
    return {std::min(b.first[i], b.end[i]), b.end[i]};
  }
  /// Caps the scores of a block's row i that passes take, with their slopes
  /// (null: none), adds bias and applies masks.
  void combine(const Tensors &t, const Block &b, int64_t i, T *scores, Keys own,
               T *slopes) const;
  /// Writes `value` where products read beside a row's own keys.
  static void closeRow(const Block &b, int64_t i, bool bounded, T *row,
                       Keys own, T value);
  /// Returns which probabilities in a block's row i are kept.
  const unsigned char *keptOf(const Tensors &t, const Block &b, int64_t i,
                              Keys keys, T *space) const;

  /// The same by tiles (AttentionTiles.cpp), of bf16 alone. Before a head's
  /// first block: returns whether all that products take is finite.
  bool tileBegin(const Tensors &t, int64_t batch, int64_t keyHead,
                 T *space) const;
  void tileKeyBlock(const Tensors &t, int64_t batch, int64_t keyHead,
                    int64_t key, T *space) const;
  void tileForward(const Tensors &t, const Block &b, T *space) const;
  void tileBackward(const Tensors &t, const Block &b, T *space) const;
  /// Makes what the last three products of a gradient read.
  void tileRowPairs(const Tensors &t, const Block &b, const TileStrips &strips,
                    bool bounded, T *space) const;
  /// Sets what row i of a block, if it exists, has as one of a pair.
  void beginGradient(const Tensors &t, const Block &b, int64_t i,
                     TileRowPair &pair, int64_t which, const T *space) const;
  /// Makes a row of probabilities and of gradients of scores as f32, for keys
  /// from `from` to before `to`.
  void tileGradientRow(const Tensors &t, const Block &b, int64_t i,
                       bool bounded, int64_t from, int64_t to, T *scores,
                       T *grads, T *space) const;
  /// Makes exponentials of a row's scores, as `exponentials` does, and rounds
  /// them in place.
  T tileExponentials(const Tensors &t, const Block &b, int64_t i, T *scores,
                     T &greatest, T &sum, T *space) const;
  /// Returns whether a block's scores are scaled products and nothing else.
  bool isPlain(const Tensors &t, const Block &b) const {
    return !t.bias && !t.mask && !a.cap && !a.hasDropout && !b.isMixed &&
           scale > 0;
  }

  static constexpr bool isNarrow = sizeof(S) < sizeof(T);
  static constexpr bool mayTile = std::is_same_v<S, BFloat16>;

  AttentionDesc a;
  KeyBounds bounds;
  bool gradient;
  T scale, fill, keptFactor; ///< keptFactor: of what a dropout keeps
  RowCap<T> cap;
  const RowPasses<T> &passes;
  const BlockCopies<S> &copies;
  void (*multiply)(const BlockProduct<T> &);
  const TileCode *tiles; ///< null: bf16 is multiplied as f32
  const TilePasses *tilePasses;
  int64_t tileRows; ///< of a block
  int64_t blockRows, blockKeys, pitch, depthPitch, widthPitch, slotBytes = 0;
  /// Where a thread's copies and blocks lie in its part of the workspace, in
  /// elements.
  struct {
    int64_t scores = 0, queries = 0, keysAcross = 0, kept = 0, values = 0,
            sums = 0, outputs = 0, scoreGrads = 0, outGrads = 0, keys = 0,
            valuesAcross = 0, queryGrads = 0, keyGrads = 0, valueGrads = 0,
            segments = 0, slopes = 0, finite = 0, deltas = 0;
  } slot;
};

} // namespace ckopt::runtime

#endif // CKOPT_LIB_RUNTIME_CPU_ATTENTIONBLOCKS_H
