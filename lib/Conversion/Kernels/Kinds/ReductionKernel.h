//===- ReductionKernel.h - sums, means, moments of a shape ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CONVERSION_KERNELS_KINDS_REDUCTIONKERNEL_H
#define CKOPT_LIB_CONVERSION_KERNELS_KINDS_REDUCTIONKERNEL_H

#include "Emit/ColumnCache.h"
#include "Emit/Nest.h"
#include "Kinds/GeneratedKernel.h"

namespace ckopt::codegen {

/// One op of the kernel: its input, its reducer, its results.
struct Item {
  mlir::Operation *op;
  Value input;
  Reducer reducer;
  bool moments;
  bool mean;
  SmallVector<int64_t> scratch; ///< offsets of its partial states, in bytes
};

/// Of LoopRoles, `trips` are extents of kept loops (the last in blocks), then
/// of chunks.
class ReductionKernel : public FormedKernel, private LoopRoles {
public:
  using FormedKernel::FormedKernel;

protected:
  mlir::LogicalResult analyze() override;
  mlir::LogicalResult planRanges() override;
  mlir::LogicalResult planBlocks() override;
  mlir::LogicalResult emitRanges(mlir::ModuleOp into) override;
  mlir::LogicalResult emitBlocks(mlir::ModuleOp into) override;

private:
  mlir::LogicalResult collect();
  void planScratch();
  std::unique_ptr<PointNest> makeNest(Emitter &e, ArrayRef<AffineExpr> at);
  void emitPartial(Emitter &e, Value t);
  void emitWidePartial(Emitter &e, Value t);
  /// Adds element(column) of all rows to `sums`, tile by tile of rows.
  void
  wideFold(Emitter &e, ArrayRef<AffineExpr> at, Value low, Value high,
           ArrayRef<const Item *> folded, ArrayRef<Value> sums,
           llvm::function_ref<Value(const Item &, size_t, Index, AffineExpr)>
               element);
  void writeStates(Emitter &e, const Item &item, ArrayRef<Value> states,
                   Value chunk, ArrayRef<AffineExpr> at);
  void emitCombine(Emitter &e, Value t);
  /// Stores an item's final values at the kept point.
  void finish(Emitter &e, const Item &item, ArrayRef<Value> states,
              Index point);
  /// Returns the number of elements that a chunk contributes to one kept point.
  Value chunkCount(Emitter &e, Value chunk, Type type);
  void chunkRange(Emitter &e, Value chunk, Value &low, Value &high);
  AffineExpr keptNumber(ArrayRef<AffineExpr> at);
  /// Stores the results of emitPartial, one vector of columns after another.
  void writePartials(Emitter &e, ArrayRef<Value> sums, ArrayRef<Value> squares,
                     Value chunk, ArrayRef<AffineExpr> at, AffineExpr lane,
                     ArrayRef<Value> masks);

  SmallVector<Item> items;
  SmallVector<int64_t> axes;
  std::optional<Domain> domain;
  /// Set if lanes are elements of a row rather than adjacent columns; in
  /// launches, a thread has one column or row.
  bool overLanes = false;
  /// Set for many columns: all of them are reduced in one pass over a tile of
  /// rows, with sums in a buffer, so that memory is read in order.
  bool wide = false;
  ColumnCache cache;
  SmallVector<Value> buffers;        ///< two for each item
  int64_t keptPoints = 1, count = 1; ///< of the whole reduction
  int64_t chunkLength = 1, chunks = 1, vectors = 1;
  // Work and threads of a launch.
  int64_t work = 1, threads = 32;
  bool together = false; ///< a block reduces a row's chunk together
  bool laneRows = false; ///< its threads load vectors
};

} // namespace ckopt::codegen

#endif // CKOPT_LIB_CONVERSION_KERNELS_KINDS_REDUCTIONKERNEL_H
