//===- DeviceGemm.h - contractions by the threads of blocks -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: contractions, sums over k of a(m, k) * b(k, n), with a and b
// anywhere in memory: matmuls read strided operands, convolutions compute the
// address of each element (implicit GEMM).
//
// Method: a block makes a tile of the result. Slices of both operands pass
// through shared memory, 16 bytes at once if the operand's description allows
// it. While one slice is multiplied, the next one's elements are loaded into
// registers and then stored to a second buffer, so that a slice costs one
// barrier. Loads never wait for each other: elements that do not exist are
// loaded from zeros elsewhere, without a branch. Operands that have the same
// order in shared and in global memory need no registers: three or four slices
// are copied asynchronously, and TF32 is rounded when fragments are read. f32
// and f64: each thread keeps squares of sums in registers and uses fused
// multiply-adds in the order of k. f16, bf16 and TF32: tensor cores multiply 16
// x 16 (TF32: 16 x 8) by 16 x 8 for a warp, with sums in f32. DeviceTiles.h
// chooses tiles. If the result has too few tiles to fill the device, it cuts k
// into parts: partial tiles go to scratch, and a second launch adds them in
// order. A tensor that the result is added to is read when all sums are
// complete, by the threads that store the elements, so that it may share the
// result's bytes.
//
// Guarantee: the order of additions depends only on the shape, the device's
// number of multiprocessors and a block's shared memory.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CODEGEN_DEVICE_DEVICEGEMM_H
#define CKOPT_LIB_CODEGEN_DEVICE_DEVICEGEMM_H

#include "DeviceTiles.h"
#include "Emit/Emitter.h"
#include "ckopt/CodeGen/Kernels.h"
#include <functional>

namespace ckopt::codegen {

/// The form of elements in shared memory.
struct OperandForm {
  Type type;
  bool tf32 = false; ///< f32 with the fraction rounded to 10 bits

  bool operator==(const OperandForm &) const = default;
};

/// The place of adjacent elements in memory; they are zeros unless `inside`
/// holds (null: it holds).
struct Place {
  Value address, inside;
  /// Neighbors read the same bytes soon, so these should stay in the
  /// multiprocessor's cache.
  bool isShared = false;

  /// Loads `lanes` elements (a vector unless 1). There is no branch, since
  /// later loads would wait for it: elements outside are loaded from zeros.
  Value load(Emitter &e, Type element, unsigned lanes) const;
};

/// A contraction's shape and functions that access its elements. Indices are
/// i64 within the shape.
struct DeviceGemm {
  /// Finds adjacent elements, which are zeros unless `inside` holds (null: it
  /// holds).
  using Element = std::function<Place(Emitter &, Value batch, Value row,
                                      Value column, Value inside)>;
  /// Stores elements of type `type`, a vector or one.
  using Store = std::function<void(Emitter &, Value batch, Value row,
                                   Value column, Value elements)>;

  int64_t batch = 1, m = 1, n = 1, k = 1;
  Type type;               ///< type of the sums
  OperandForm operand;     ///< form of a and b in shared memory
  Type aElement, bElement; ///< types of their elements in memory
  Element a;               ///< loads a by (batch, m, k)
  Element b;               ///< loads b by (batch, k, n)
  Store store;
  /// Finds elements, by (batch, m, n), of the tensor that is added, which has
  /// the result's type and strides; null: nothing is added.
  Element addend;
  /// Finds elements, by column, of the row that is added to each row of the
  /// product, before the addend is; null: there is none. It has the result's
  /// type.
  Element bias;
  Type cElement; ///< type of the result's elements in memory
  /// The dimension of a slice along which adjacent threads load, because memory
  /// is contiguous along it; likewise for the result.
  bool aAlongK = true, bAlongN = true, cAlongN = true;
  /// The number of elements along that dimension that one access may take.
  /// Groups of this size, counted from 0, are adjacent and aligned in memory,
  /// and lie completely inside or outside of the shape.
  unsigned aLanes = 1, bLanes = 1, cLanes = 1;
  /// How often a block reads an element of memory while it is in the
  /// multiprocessor's own cache.
  double aReads = 1, bReads = 1;

  /// Returns whether tensor cores are used.
  bool onTensorCores() const {
    return operand.tf32 || operand.type.isF16() || operand.type.isBF16();
  }
  /// The division into blocks; chooseShape() decides it when everything else is
  /// known.
  TileShape shape;
  /// How many rows of tiles are numbered column by column. It follows from
  /// shape.
  int64_t rowsGrouped = 1;
  void chooseShape(const TileDevice &device, const ContractionVariant &variant);
  int64_t slice() const { return shape.slice; }
  int64_t parts() const { return shape.parts; }
  int64_t tilesM() const { return llvm::divideCeil(m, shape.m); }
  int64_t tilesN() const { return llvm::divideCeil(n, shape.n); }
  int64_t tiles() const { return batch * tilesM() * tilesN(); }
  int64_t blocks() const { return tiles() * parts(); }
  /// Returns the bytes of partial results; 0 with one part.
  int64_t scratchBytes() const;
  /// Returns how blocks share the work, for costs.
  ContractionShape cost() const;

  /// Emits the code of block number `block`: a tile of the result, or of one
  /// part of it.
  void emitTile(Emitter &e, Value block) const;
  /// The neighboring elements of the result whose parts one thread adds.
  int64_t sumLanes() const;
  /// The number of such groups in all tiles.
  int64_t sums() const { return tiles() * shape.m * shape.n / sumLanes(); }
  /// Emits the code that adds the parts of elements [first, first + sumLanes())
  /// of the tiles, in order.
  void emitSum(Emitter &e, Value first) const;

  static constexpr int64_t kThreads = kTileThreads;

private:
  struct Tile;
  /// Returns rowsGrouped. With it, blocks that run at the same time are near
  /// each other in both directions, and load fewer bytes that the L2 cache does
  /// not have.
  int64_t rowsTogether(int64_t multiprocessors) const;
  /// A slice of an operand that is copied to shared memory.
  struct Slice {
    const Element &element;
    bool isA, alongDepth;
    unsigned lanes;
    Value origin; ///< first row or column of the tile
    int64_t limit;
    Value staged; ///< each thread's elements between load and store
    Value shared;
  };
  /// Returns whether a slice of a (else of b) lies in shared memory as [m or
  /// n][k] rather than [k][m or n]. Slices that are copied unchanged, and TF32,
  /// do if vectors in memory run along k. Other 16-bit slices always do,
  /// because their fragments are pairs along k.
  bool depthInside(bool isA) const {
    if (!onTensorCores() || operand.tf32 || shape.isCopied)
      return onTensorCores() && isAlongK(isA);
    return true;
  }
  bool isAlongK(bool isA) const { return isA ? aAlongK : !bAlongN; }
  /// Returns whether slices of the operand may be copied unchanged.
  bool isCopyable(bool isA) const;
  /// Returns the number of elements between rows of a slice in shared memory,
  /// padded so that threads that access it together use different banks (32
  /// words). For [m or n][k]: 8 rows of pairs of 16-bit elements lie 20 words
  /// apart; rows of pairs of words, of which 4 are read at once, 40. For [k][m
  /// or n]: 4 x 8 words of TF32 are read from every other row, 136 or 264 words
  /// apart.
  int64_t pitch(bool isA) const {
    if (shape.isCopied && onTensorCores())
      return depthInside(isA) ? slice() + (operand.tf32 ? 4 : 8)
                              : tile(isA) + 8;
    return depthInside(isA) ? slice() + 8 : tile(isA) + 4;
  }
  int64_t sharedElements(bool isA) const {
    return pitch(isA) * (depthInside(isA) ? tile(isA) : slice());
  }
  int64_t tile(bool isA) const { return isA ? shape.m : shape.n; }
  int64_t elementsOfThread(bool isA) const {
    return tile(isA) * slice() / kThreads;
  }
  int64_t sumsOfThread() const { return shape.m * shape.n / kThreads; }
  /// Returns the number of squares of 64 along each side of a tile.
  int64_t squaresM() const { return shape.m / 64; }
  int64_t squaresN() const { return shape.n / 64; }

  std::pair<Value, Value> placeOf(Emitter &e, Value at,
                                  const Slice &slice) const;
  void forEachVector(
      Emitter &e, Value thread, const Slice &slice,
      llvm::function_ref<void(Value depth, Value across, Value staged)> body)
      const;
  void emitLoads(Emitter &e, const Tile &tile, Value thread, Value from,
                 const Slice &slice) const;
  void emitCopies(Emitter &e, Value thread, Value number,
                  const Slice &slice) const;
  /// Returns the first element of buffer `number`, 0 or 1, of a slice.
  Value bufferStart(Emitter &e, Value number, bool isA) const;
  void emitCopiesAsync(Emitter &e, const Tile &tile, Value thread, Value from,
                       Value number, const Slice &slice) const;
  void emitSlices(Emitter &e, const Tile &tile) const;
  void emitSlicesAsync(Emitter &e, const Tile &tile) const;
  void emitSliceProducts(Emitter &e, const Tile &tile, Value thread,
                         Value number) const;
  Place placeOf(Emitter &e, const Tile &tile, Value from, const Slice &slice,
                Value depth, Value across) const;
  /// Loads or copies the calling thread's elements of a slice of both operands.
  using SliceStep =
      llvm::function_ref<SmallVector<Value>(Value thread, Value number)>;
  void emitOneBuffer(Emitter &e, const Tile &tile, Value from,
                     const SliceStep &load, const SliceStep &copy) const;
  void emitProducts(Emitter &e, const Tile &tile, Value thread,
                    Value number) const;
  void emitWarpProducts(Emitter &e, const Tile &tile, Value thread,
                        Value number) const;
  /// Adjacent elements of the result with their complete sums.
  struct Result {
    Value row, column;
    SmallVector<Value, 4> sums;
  };
  SmallVector<Result> resultsOfWarps(Emitter &e, const Tile &tile,
                                     Value thread) const;
  SmallVector<Result> resultsOfThreads(Emitter &e, const Tile &tile,
                                       Value thread) const;
  void emitResults(Emitter &e, const Tile &tile,
                   ArrayRef<Result> results) const;
  /// Returns whether results pass through shared memory: their rows take
  /// vectors, slices have their type, and there is room.
  bool gathersResults() const;
  void emitGatheredResults(Emitter &e, const Tile &tile) const;
  void emitPartial(Emitter &e, const Tile &tile, const Result &result) const;
  Value insideOf(Emitter &e, Value row, Value column) const;
  /// What is added to adjacent sums, in the type of sums.
  struct Added {
    Value bias, addend; ///< null: nothing
  };
  Added loadAdded(Emitter &e, const Tile &tile, Value row, Value column,
                  unsigned lanes) const;
  static Value plus(Emitter &e, Value sums, const Added &added);
  void emitStore(Emitter &e, const Tile &tile, Value row, Value column,
                 Value elements) const;
  Tile tileOf(Emitter &e, Value block) const;
  /// Returns batch, row and column of a tile, in tiles, by its number.
  SmallVector<Value> tileAt(Emitter &e, Value number) const;
};

} // namespace ckopt::codegen

#endif // CKOPT_LIB_CODEGEN_DEVICE_DEVICEGEMM_H
