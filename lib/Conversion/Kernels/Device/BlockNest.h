//===- BlockNest.h - a row reduced by the threads of a block ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reduces a row with a block of threads. Thread t takes elements (or vectors of
// W) t, t + T, t + 2T, ... of the innermost reduced loop, for all points of the
// outer ones, into one accumulator; the T partial results are combined in a
// binary tree: halves over shared memory down to 32, then lanes. The order of
// additions depends on the shape only. Barrier intervals: one for the elements,
// and one for each step of the tree.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CONVERSION_KERNELS_DEVICE_BLOCKNEST_H
#define CKOPT_LIB_CONVERSION_KERNELS_DEVICE_BLOCKNEST_H

#include "Emit/Nest.h"

namespace ckopt::codegen {

/// Longest row that one thread reduces alone.
inline constexpr int64_t kThreadRow = 16;

class BlockNest final : public PointNest {
public:
  /// `threads` is a power of two, at least 32. With `vectors`, the innermost
  /// loop runs on lanes; its size and range are multiples of their number.
  BlockNest(Emitter &e, const Domain &domain, ArrayRef<unsigned> reduced,
            ArrayRef<AffineExpr> at, int64_t threads, bool vectors)
      : e(e), domain(domain), reduced(reduced), at(at), threads(threads),
        width(vectors ? e.lanes : 1) {}

  void setRange(Value low, Value high, int64_t, bool) override {
    rangeLow = low;
    rangeHigh = high;
  }
  /// Returns one scalar for each reducer, the same in all threads.
  SmallVector<Value> reduce(ArrayRef<Reducer> reducers, Body body) override;
  void forEach(llvm::function_ref<void(Index, unsigned vector)> body) override;

  /// Returns how many threads have work in rows of `length` elements.
  static int64_t threadsFor(int64_t length, int64_t width);
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
  /// Combines all lanes of v into one.
  Value fold(const Reducer &reducer, Value v);

  Emitter &e;
  const Domain &domain;
  SmallVector<unsigned> reduced;
  SmallVector<AffineExpr> at;
  int64_t threads, width;
  Value rangeLow, rangeHigh;
};

} // namespace ckopt::codegen

#endif // CKOPT_LIB_CONVERSION_KERNELS_DEVICE_BLOCKNEST_H
