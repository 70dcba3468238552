//===- AttentionTile.h - a block's part of attention ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: attention and its gradient on a GPU, without the scores of all
// queries and keys in memory, and with an order of sums that depends only on
// the shape.
//
// Method: a block of threads takes 64 rows of one head, and goes through blocks
// of 64 columns in ascending order (TileProducts.h).
//
//   forward         rows are queries, columns keys. A block of scores becomes
//                   exponentials of their distance to the row's greatest score
//                   so far; what was summed before is scaled where that grows.
//   query gradient  rows are queries, columns keys; probabilities are made
//                   again from lse.
//   key gradients   rows are keys, columns the queries of all heads of the
//                   group: gradients of keys and of values. Where sums of both
//                   take too many registers, two launches, one after the other.
//
// The gradient computes seven matmuls in place of five (eight with two launches
// for keys), so that no sum spans more than one block: there are no atomics. An
// earlier launch computes each row's sum of output times gradient (its dot),
// which all blocks read. It has as many threads as the row has vectors, and one
// thread adds their sums. Blocks of columns that causality and windows forbid
// to all rows are skipped. Of segments another launch finds the least and the
// greatest number of each 64: blocks before the first and behind the last one
// whose numbers meet those of the rows are skipped.
//
// Guarantee: bits depend only on the descriptor and the operands. Complexity:
// two matmuls forward; scratch is one number a row, and two for 64 segments.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CODEGEN_DEVICE_ATTENTIONTILE_H
#define CKOPT_LIB_CODEGEN_DEVICE_ATTENTIONTILE_H

#include "TileProducts.h"

namespace ckopt::codegen {

/// The arguments of the kernel: optional ones if the descriptor has them, and
/// those of gradients only in the gradient.
struct AttentionOperands {
  Operand q, k, v, bias, mask, segments, seed, step, o, lse, grad, qGrad, kGrad,
      vGrad;
  int64_t site = 0; ///< position in the call's scalars
};

/// The code of one block.
class AttentionTile {
public:
  AttentionTile(Emitter &e, const runtime::AttentionDesc &desc,
                const AttentionOperands &operands, OperandForm form,
                bool isGradient);

  static constexpr int64_t kTile = TileProducts::kTile;
  /// The most columns of queries, keys and values; with more, sums take too
  /// many registers.
  static constexpr int64_t kMostColumns = 256;
  static int64_t queryBlocks(const runtime::AttentionDesc &a) {
    return a.batch * a.heads * llvm::divideCeil(a.queries, kTile);
  }
  static int64_t keyBlocks(const runtime::AttentionDesc &a) {
    return a.batch * a.keyHeads * llvm::divideCeil(a.keys, kTile);
  }
  static int64_t rows(const runtime::AttentionDesc &a) {
    return a.batch * a.heads * a.queries;
  }

  void emitForward(Value block);
  void emitQueryGradient(Value block);
  void emitKeyGradients(Value block) { emitKeySums(block, true, true); }
  void emitKeyGradient(Value block) { emitKeySums(block, true, false); }
  void emitValueGradient(Value block) { emitKeySums(block, false, true); }
  /// Returns whether a thread has registers for the sums of both keys and
  /// values.
  static bool sumsTogether(const runtime::AttentionDesc &a) {
    return std::max(a.depth, a.width) <= kTile;
  }
  /// Threads of a launch of dots, and the number of them that share a row.
  static constexpr int64_t kDotThreads = 256;
  static int64_t dotThreads(const runtime::AttentionDesc &a) {
    constexpr int64_t kElements = 4;
    return std::min<int64_t>(
        llvm::PowerOf2Ceil(llvm::divideCeil(a.width, kElements)), kWarp);
  }
  static int64_t dotBlocks(const runtime::AttentionDesc &a) {
    return llvm::divideCeil(rows(a), kDotThreads / dotThreads(a));
  }
  /// Emits the dots of a block's rows.
  void emitDots(Value block);
  /// Blocks of a launch that finds the ranges of segments, and its bytes of
  /// scratch, which are behind the dots.
  static int64_t rangeBlocks(const runtime::AttentionDesc &a) {
    return llvm::divideCeil(ranges(a), kDotThreads);
  }
  static int64_t rangeBytes(const runtime::AttentionDesc &a) {
    return a.hasSegments ? ranges(a) * 2 * int64_t(sizeof(int64_t)) : 0;
  }
  static int64_t dotBytes(const runtime::AttentionDesc &a) {
    return a.hasSegments ? int64_t(llvm::alignTo(4 * rows(a), 8)) : 4 * rows(a);
  }
  /// Emits the ranges of a block's segments.
  void emitRanges(Value block);

private:
  /// The number of 64 segments each, of all samples.
  static int64_t ranges(const runtime::AttentionDesc &a) {
    return (a.segments ? a.batch : 1) * llvm::divideCeil(a.keys, kTile);
  }
  /// A head of a sample, and the key head that it reads.
  struct Head {
    Value batch, head, keyHead;
  };
  /// A score after masks, whether they allow the key (null: always), and the
  /// derivative of the cap (null: there is none, or no gradient).
  struct Score {
    Value value, open, slope;
  };
  /// A query or key: one of a block of 64, counted from a start that all
  /// threads share.
  struct Place {
    Value start, own;
  };
  /// Registers and buffers of a thread in a block of the gradient.
  struct Gradient {
    Head head;
    Value row, key;      ///< the first query and key
    bool byKeys = false; ///< rows of the tile are keys
    Value products;      ///< private: results of matmuls, of a tile
    Value probabilities; ///< private, only with a dropout
    Value slopes;        ///< private, only with a cap: its derivatives
    Value open;    ///< private, only with a mask: a bit for each score, set if
                   ///< allowed
    Value numbers; ///< shared: numbers of queries
  };
  struct Forward;

  Head headOf(Value batch, Value head);
  TensorRows rowsOf(const Operand &x, const int64_t (&strides)[3], Value batch,
                    Value head, int64_t rows, int64_t columns);
  TensorRows queriesOf(const Head &h, const Operand &x,
                       const int64_t (&strides)[3], int64_t columns) {
    return rowsOf(x, strides, h.batch, h.head, a.queries, columns);
  }
  TensorRows keysOf(const Head &h, const Operand &x,
                    const int64_t (&strides)[3], int64_t columns) {
    return rowsOf(x, strides, h.batch, h.keyHead, a.keys, columns);
  }
  /// Returns the number of elements that one access may take in every
  /// multiplied tensor.
  unsigned leastLanes(bool withGrad) const;
  /// Returns the matmuls of a block, and makes their shared buffers.
  TileProducts products(bool withGrad) {
    return TileProducts(e, form, in.q.element, leastLanes(withGrad),
                        std::max(a.depth, a.width));
  }
  Value rowNumber(const Head &h, Value row);
  /// Returns where the first or second number of this row lies in lse.
  Value placeOfLse(Value number, int64_t which);
  /// Returns whether blocks are skipped: not if a query has no key, and so NaN
  /// for all of them.
  bool leavesOut() const;
  /// Neighboring blocks, the first of which exists.
  struct Blocks {
    Value first, count;
    /// Returns the first row of number `i` of them.
    Value at(Emitter &e, Value i) const {
      return e.mul(e.add(first, i), e.index(kTile));
    }
  };
  /// Returns the blocks of keys that the queries from `row` on read, and those
  /// of queries that read the keys from `key` on.
  Blocks keyBlocksOf(const Head &h, Value row);
  Blocks queryBlocksOf(const Head &h, Value key);
  /// Leaves the blocks from the first to the last one whose segments meet those
  /// from `start` on.
  void meetSegments(const Head &h, Value start, Value &first, Value &end);
  /// Returns where ranges of segments begin in the scratch, in numbers of i64.
  int64_t rangeStart() const { return isGradient ? dotBytes(a) / 8 : 0; }
  Value segmentAddress(Value base, Value offset);
  Value segment(const Head &h, Place place);

  /// Returns x - from for places in a block, as i32 (registers hold twice as
  /// many); beyond the block it is not exact, but keeps its sign.
  Value apart(Value x, Value from);
  Score score(const Head &h, Place query, Place key, Value sum);
  /// Returns whether a dropout keeps the score's probability.
  Value keeps(const Head &h, Place query, Place key);
  /// Copies the gradient's numbers of queries to shared memory: lse, its
  /// rounding error, and the dot, for each of 64 queries from `row` on.
  void copyNumbers(const Head &h, Value thread, Value row, Value numbers);
  Gradient gradientOf(TileProducts &tile, const Head &h);
  void emitKeySums(Value block, bool ofKeys, bool ofValues);
  bool leavesOutMissing(const TileProducts &tile, int64_t limit) const {
    return limit % kTile != 0 && tile.onTensorCores() && !a.hasMask;
  }
  /// Returns whether the first of a thread's rows or columns in a tile exists,
  /// where `start` is the tile's first. Null: it always exists, or the check is
  /// not used, since fused multiply-adds and masks leave no registers for it.
  Value existsFrom(const TileProducts &tile, Value start, ArrayRef<Value> own,
                   int64_t limit) {
    if (!leavesOutMissing(tile, limit))
      return {};
    return below(e.add(start, own.front()), limit);
  }
  /// Emits the computation of a thread's rows, skipped if none of them exists:
  /// attention is limited by vector instructions, not by matmuls.
  void ifRowsExist(TileProducts &tile, Value thread, Value start, int64_t limit,
                   llvm::function_ref<void()> fn);
  void ifRowsExist(TileProducts &tile, Value thread, const Gradient &g,
                   llvm::function_ref<void()> fn) {
    ifRowsExist(tile, thread, g.byKeys ? g.key : g.row,
                g.byKeys ? a.keys : a.queries, fn);
  }
  /// Gives the tile's rows that may not exist a value, for matmuls.
  void clearTile(TileProducts &tile, Value thread, int64_t limit);
  /// Returns the results of `fn` for a thread's columns of a tile, or
  /// `otherwise` for each of these `count` numbers if none of the columns
  /// exists.
  SmallVector<Value>
  ifColumnsExist(TileProducts &tile, Value thread, Value start, int64_t limit,
                 size_t count, float otherwise,
                 llvm::function_ref<SmallVector<Value>()> fn);
  Value emitDot(Value item, Value first, int64_t threads);
  /// Stores the result of `fn` for each of a thread's elements of the tile;
  /// `fn` gets the old element if `reads`.
  void storeScores(TileProducts &tile, const Gradient &g, Value thread,
                   llvm::function_ref<Value(int64_t sum, Value before,
                                            Place query, Place key)>
                       fn,
                   bool reads);
  /// Computes probabilities, the tile, from matmuls of queries and keys.
  void weighScores(TileProducts &tile, const Gradient &g, Value thread);
  /// Computes gradients of scores, without the scale, from the tile and from
  /// matmuls of output gradients and values.
  void weighGradients(TileProducts &tile, const Gradient &g, Value thread);
  void scaleScores(TileProducts &tile, const Forward &f, Value thread,
                   Value key);
  void weigh(TileProducts &tile, const Forward &f, Value thread, Value key);
  void weighRow(TileProducts &tile, const Forward &f, Value thread, Value key,
                int64_t r, Value row);
  void finish(TileProducts &tile, const Forward &f);

  Value of(Place p) { return e.add(p.start, p.own); }
  Value number(double x) { return e.constant(e.b.getF32Type(), x); }
  Value below(Value x, int64_t limit) {
    return e.cmpi(mlir::arith::CmpIPredicate::slt, x, e.index(limit));
  }
  /// Returns x < limit, or null if that holds in all tiles.
  Value belowUnlessWhole(Value x, int64_t limit) {
    return limit % kTile ? below(x, limit) : Value();
  }
  Value address(Value base, Value offset);
  /// Loads an f32; 0 unless `inside` holds (null: it holds).
  Value load(Value base, Value offset, Value inside);

  Emitter &e;
  runtime::AttentionDesc a;
  AttentionOperands in;
  OperandForm form;
  bool isGradient;
  float scale, fill, keptFactor;
  double cap;
  /// Of a dropout: the words of the counter, and the block of element 0.
  Value key0, key1, step, site, firstBlock;
};

} // namespace ckopt::codegen

#endif // CKOPT_LIB_CODEGEN_DEVICE_ATTENTIONTILE_H
