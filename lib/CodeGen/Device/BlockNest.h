//===- BlockNest.h - a row reduced by the threads of a block ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reduces a row with a block of threads. Thread t takes elements (or vectors of
// W) t, t + T, t + 2T, ... of the innermost reduced loop, for all points of the
// outer ones, into one accumulator; the T partial results are combined in a
// binary tree: over shared memory down to 32, then over lanes. The order of
// additions depends on the shape only. Barrier intervals: one for the elements,
// and one for each step of the tree. Rows that fit into registers are read
// once: a thread keeps its elements from the first pass on (keep()).
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CODEGEN_DEVICE_BLOCKNEST_H
#define CKOPT_LIB_CODEGEN_DEVICE_BLOCKNEST_H

#include "Emit/Nest.h"
#include "llvm/ADT/DenseSet.h"

namespace ckopt::codegen {

/// Longest row that one thread reduces alone.
inline constexpr int64_t kThreadRow = 16;

class BlockNest final : public PointNest {
public:
  /// `threads` is a power of two, at least 32. With `vectors`, the innermost
  /// loop runs on lanes; its size and range are multiples of the number of
  /// lanes. Unless `kept` is 0, a thread keeps the elements of that many
  /// points.
  BlockNest(Emitter &e, const Domain &domain, ArrayRef<unsigned> reduced,
            ArrayRef<AffineExpr> at, int64_t threads, bool vectors,
            int64_t kept = 0)
      : e(e), domain(domain), reduced(reduced), at(at), threads(threads),
        width(vectors ? e.lanes : 1), kept(kept) {}

  void setRange(Value low, Value high, int64_t, bool) override {
    rangeLow = low;
    rangeHigh = high;
  }
  /// Returns one scalar for each reducer, the same in all threads.
  SmallVector<Value> reduce(ArrayRef<Reducer> reducers, Body body) override;
  void forEach(llvm::function_ref<void(Index, unsigned vector)> body) override;
  Value keep(unsigned key, llvm::function_ref<Value()> make) override;
  bool keeps() const override { return kept > 0; }
  std::optional<std::pair<Value, Value>>
  reduceExponentials(Type type, llvm::function_ref<Value(Index)> body) override;

  /// Returns how many threads have work in rows of `length` elements.
  static int64_t threadsFor(int64_t length, int64_t width);
  /// Decides how many threads reduce a row of `length` elements that is read
  /// several times, and how many each keeps. Few threads with many elements
  /// each need few barriers. `kept` is 0 for rows that are too long.
  static std::pair<int64_t, int64_t> keepingRows(int64_t length, int64_t width);
  /// Combines the elements of all `threads` in each of the shared buffers;
  /// returns one scalar for each reducer, the same in all threads.
  static SmallVector<Value> combineThreads(Emitter &e, int64_t threads,
                                           ArrayRef<Reducer> reducers,
                                           ArrayRef<Value> buffers);

private:
  using Point = llvm::function_ref<SmallVector<Value>(ArrayRef<Value>)>;
  /// Loops over the calling thread's points, with carried values.
  SmallVector<Value> points(unsigned level, Value thread,
                            ArrayRef<Value> carried, Point point);
  /// Emits the kept points one by one; points that not all threads have are
  /// emitted under a condition.
  SmallVector<Value> keptPoints(Value low, Value high, ArrayRef<Value> carried,
                                Point point);
  /// Stores a value of the current place, kept under `key`.
  void storeKept(unsigned key, Value v);
  SmallVector<Value> keptAt();
  /// Combines all lanes of v into one.
  Value fold(const Reducer &reducer, Value v);

  Emitter &e;
  const Domain &domain;
  SmallVector<unsigned> reduced;
  SmallVector<AffineExpr> at;
  int64_t threads, width;
  int64_t kept;                            ///< points that a thread keeps
  int64_t place = -1;                      ///< the current kept point
  llvm::DenseMap<unsigned, Value> buffers; ///< kept values by key
  llvm::DenseSet<std::pair<unsigned, int64_t>> filled;
  SmallVector<unsigned> fresh; ///< keys that were stored in this condition
  Value rangeLow, rangeHigh;
};

} // namespace ckopt::codegen

#endif // CKOPT_LIB_CODEGEN_DEVICE_BLOCKNEST_H
