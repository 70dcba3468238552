//===- ReductionKernel.h - sums, means, moments of a shape ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CODEGEN_KINDS_REDUCTIONKERNEL_H
#define CKOPT_LIB_CODEGEN_KINDS_REDUCTIONKERNEL_H

#include "Emit/ColumnCache.h"
#include "Emit/Nest.h"
#include "GeneratedKernel.h"

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

/// Vectors of columns that one parallel step reduces together.
inline constexpr int64_t kColumnVectors = 4;

/// The most tiles of rows whose sums are added in one chain, and the number of
/// tiles in a block if there are more.
inline constexpr int64_t kMostTiles = 64, kBlockTiles = 32;

/// Returns ((v0 + v1) + (v2 + v3)) + ...
Value pairwise(Emitter &e, const Reducer &reducer, SmallVector<Value> values);

/// Of LoopRoles; `trips` are extents of kept loops (the last in blocks), then
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
  /// Returns whether a thread of a GPU reduces columns with emitMoments().
  bool isOnePass() const {
    return onDevice && !rows && !reduced.empty() && count > 0 &&
           llvm::all_of(items, [](const Item &item) { return item.moments; });
  }
  /// Returns whether it does so with emitSums().
  bool isTiled() const {
    return onDevice && !rows && !reduced.empty() && count > 0 &&
           llvm::none_of(items, [](const Item &item) { return item.moments; });
  }
  /// Returns the number of rows that chunks divide: points of all reduced loops
  /// if a thread goes through them as one, else of the outermost loop.
  int64_t rowCount() const {
    if (isOnePass() || isTiled())
      return count;
    return reduced.empty() ? 1 : domain->loops[reduced[0]].size;
  }
  /// Returns `at` with the reduced positions of row first + k, where `row` is
  /// the value of `first`.
  SmallVector<AffineExpr> atRow(Emitter &e, ArrayRef<AffineExpr> at, Value row,
                                AffineExpr first, int64_t k);
  int64_t rowsInFlight();
  int64_t bytesOfTile();
  void emitSums(Emitter &e, ArrayRef<AffineExpr> point, Value chunk,
                AffineExpr lane, ArrayRef<Value> masks);
  void emitMoments(Emitter &e, ArrayRef<AffineExpr> point, Value chunk,
                   AffineExpr lane, ArrayRef<Value> masks);
  void emitWidePartial(Emitter &e, Value t);
  /// Calls `body` for all columns.
  void overColumns(Emitter &e, llvm::function_ref<void(AffineExpr)> body);
  int64_t tileRowsOf();
  void startWide(Emitter &e, ArrayRef<AffineExpr> at, Value low);
  void fetchTile(Emitter &e, AffineExpr row, AffineExpr lane, int64_t k,
                 int64_t rowCount);
  /// Adds `rowCount` rows from `row` on to the buffers of a chunk that begins
  /// at `low`, and moves the references to the means of all rows so far.
  void addRows(Emitter &e, ArrayRef<AffineExpr> at, Value low, Value row,
               int64_t rowCount);
  /// Whether chains of tiles are cut into blocks.
  bool hasBlocks() { return chunkLength > kMostTiles * tileRowsOf(); }
  /// Returns the state of an item that is a sum over many tiles.
  static int blockState(const Item &item) { return item.moments ? 2 : 0; }
  /// Adds the sums of the tiles since the last block to those before it.
  void endBlock(Emitter &e);
  void writeStates(Emitter &e, const Item &item, ArrayRef<Value> states,
                   Value chunk, ArrayRef<AffineExpr> at);
  void emitCombine(Emitter &e, Value t);
  /// Folds element(chunk) of all chunks: in order, or by the combiners of a
  /// block.
  Value foldChunks(Emitter &e, const Reducer &reducer,
                   llvm::function_ref<Value(Value, AffineExpr)> element);
  void planColumns();
  mlir::LogicalResult emitPartials(mlir::ModuleOp into);
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
  /// Set if lanes are elements of a row, or adjacent columns. In launches, a
  /// thread has one row, or as many columns as 16 bytes hold.
  bool overLanes = false;
  bool combinesLanes = false; ///< likewise for points whose chunks are combined
  bool onDevice = false;      ///< in launches
  /// Set for many columns, and for moments of columns: all of them are reduced
  /// in one pass over a tile of rows, with sums in a buffer, so that memory is
  /// read in order, and only once.
  bool wide = false;
  ColumnCache cache;
  /// Four for each item: its sum; or, for moments, a reference r near the mean,
  /// and the sums of x - r and of its square. The last one holds the sum (of
  /// squares) before the current block of tiles, if there are many (endBlock).
  SmallVector<Value> buffers;
  int64_t keptPoints = 1, count = 1; ///< of the whole reduction
  int64_t chunkLength = 1, chunks = 1, vectors = 1;
  // Work and threads of a launch.
  int64_t work = 1, threads = 32;
  int64_t combiners = 1; ///< threads that combine the chunks of a point
  bool together = false; ///< a block reduces a row's chunk together
  bool laneRows = false; ///< its threads load vectors
};

} // namespace ckopt::codegen

#endif // CKOPT_LIB_CODEGEN_KINDS_REDUCTIONKERNEL_H
