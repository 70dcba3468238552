//===- AttentionTile.h - what a block computes of attention -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: attention and its gradient on a GPU, without the scores of all
// queries and keys in memory, and with sums in an order that nothing but the
// shape decides.
//
// Method: a block of threads has 64 rows of one head, and goes through blocks
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
// The gradient's products are seven in place of five (eight with two launches
// for keys), so that no sum is of more than one block: no atomics. A launch
// before them makes each row's sum of output times gradient (its dot), which
// all read: as many threads as the row has vectors, whose sums one adds.
// Columns that causality forbids to all rows are left out.
//
// Guarantee: bits depend on the descriptor and the operands alone.
// Complexity: two products forward; scratch is one number a row.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CODEGEN_DEVICE_ATTENTIONTILE_H
#define CKOPT_LIB_CODEGEN_DEVICE_ATTENTIONTILE_H

#include "TileProducts.h"

namespace ckopt::codegen {

/// The arguments of the kernel; of those that are optional what the descriptor
/// has, and of gradients in the gradient alone.
struct AttentionOperands {
  Operand q, k, v, bias, mask, seed, step, o, lse, grad, qGrad, kGrad, vGrad;
  int64_t site = 0; ///< position in the call's scalars
};

/// The code of one block.
class AttentionTile {
public:
  AttentionTile(Emitter &e, const runtime::AttentionDesc &desc,
                const AttentionOperands &operands, OperandForm form);

  static constexpr int64_t kTile = TileProducts::kTile;
  /// Columns of queries, keys and values; with more, sums take too many
  /// registers.
  static constexpr int64_t kMostColumns = 128;
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
  /// Returns whether a thread has registers for the sums of keys and values.
  static bool sumsTogether(const runtime::AttentionDesc &a) {
    return std::max(a.depth, a.width) <= kTile;
  }
  /// Threads of a launch of dots, and how many of them share a row.
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

private:
  /// A head of a sample. The key head is the one that it reads.
  struct Head {
    Value batch, head, keyHead;
  };
  /// A score after masks, and whether they allow the key (null: always).
  struct Score {
    Value value, open;
  };
  /// A query or key: one of a block of 64, from a start that all threads share.
  struct Place {
    Value start, own;
  };
  /// Of a gradient's block: what its threads have.
  struct Gradient {
    Head head;
    Value row, key;      ///< the first query and key
    bool byKeys = false; ///< rows of the tile are keys
    Value products;      ///< private: of a tile
    Value probabilities; ///< private, with a dropout alone
    Value open; ///< private, with a mask alone: a bit for each score it allows
    Value numbers; ///< shared: of queries
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
  /// Returns how many elements one access may take of all that is multiplied.
  unsigned leastLanes(bool withGrad) const;
  /// Returns the products of a block, and makes their shared buffers.
  TileProducts products(bool withGrad) {
    return TileProducts(e, form, in.q.element, leastLanes(withGrad),
                        std::max(a.depth, a.width));
  }
  Value rowNumber(const Head &h, Value row);
  /// Returns whether queries before the first key exist, which have NaN for all
  /// keys, so that no block is left out.
  bool leavesOut() const {
    return a.causal && (a.zeroEmptyRows || a.offset >= 0);
  }
  /// Returns how many blocks of keys the queries from `row` on read.
  Value keyBlocksOf(Value row);

  /// Returns x - from of places in a block as i32, of which registers hold
  /// twice as many; beyond the block it is not exact, but keeps its sign.
  Value apart(Value x, Value from);
  Score score(const Head &h, Place query, Place key, Value sum);
  /// Returns whether a dropout keeps the score's probability.
  Value keeps(const Head &h, Place query, Place key);
  /// Copies what the gradient knows of queries to shared memory: lse, what
  /// rounding took from it, and the dot, for each of 64 from `row` on.
  void copyNumbers(const Head &h, Value thread, Value row, Value numbers);
  Gradient gradientOf(TileProducts &tile, const Head &h);
  void emitKeySums(Value block, bool ofKeys, bool ofValues);
  bool leavesOutMissing(const TileProducts &tile, int64_t limit) const {
    return limit % kTile != 0 && tile.onTensorCores() && !a.hasMask;
  }
  /// Returns whether the first of a thread's rows or columns in a tile exists,
  /// `start` being the tile's own first one; null: in all tiles, or nobody
  /// asks: fused multiply-adds and masks leave no registers for it.
  Value existsFrom(const TileProducts &tile, Value start, ArrayRef<Value> own,
                   int64_t limit) {
    if (!leavesOutMissing(tile, limit))
      return {};
    return below(e.add(start, own.front()), limit);
  }
  /// Emits what is computed for a thread's rows, unless none of them exists:
  /// vector instructions, not products, are what attention waits for.
  void ifRowsExist(TileProducts &tile, Value thread, Value start, int64_t limit,
                   llvm::function_ref<void()> fn);
  void ifRowsExist(TileProducts &tile, Value thread, const Gradient &g,
                   llvm::function_ref<void()> fn) {
    ifRowsExist(tile, thread, g.byKeys ? g.key : g.row,
                g.byKeys ? a.keys : a.queries, fn);
  }
  /// Gives rows of the tile that may not exist a value, for products.
  void clearTile(TileProducts &tile, Value thread, int64_t limit);
  /// Returns what `fn` makes for a thread's columns of a tile, or `otherwise`
  /// of each of these `count` numbers where none of the columns exists.
  SmallVector<Value>
  ifColumnsExist(TileProducts &tile, Value thread, Value start, int64_t limit,
                 size_t count, float otherwise,
                 llvm::function_ref<SmallVector<Value>()> fn);
  Value emitDot(Value item, Value first, int64_t threads);
  /// Stores what `fn` makes of each of a thread's elements of the tile, given
  /// what was there if `reads`.
  void storeScores(TileProducts &tile, const Gradient &g, Value thread,
                   llvm::function_ref<Value(int64_t sum, Value before,
                                            Place query, Place key)>
                       fn,
                   bool reads);
  /// Makes probabilities, the tile, of products of queries and keys.
  void weighScores(TileProducts &tile, const Gradient &g, Value thread);
  /// Makes gradients of scores, without the scale, of the tile and of products
  /// of output gradients and values.
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
  /// Returns x < limit, or null where that is so in all tiles.
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
  float scale, fill, keptFactor;
  /// Of a dropout: words of the counter, and the block of element 0.
  Value key0, key1, step, site, firstBlock;
};

} // namespace ckopt::codegen

#endif // CKOPT_LIB_CODEGEN_DEVICE_ATTENTIONTILE_H
