//===- DeviceGemm.h - contractions by the threads of blocks -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: contractions, as sums over k of a(m, k) * b(k, n), wherever a and b
// lie in memory: matrix products read strided operands, convolutions compute
// the address of each element (implicit GEMM).
//
// Method: a block makes a tile of the result. Slices of both operands pass
// through shared memory, 16 bytes at once where the operand's description
// allows it. While one slice is multiplied, the elements of the next one are on
// their way into registers; they are stored to a second buffer afterwards, so
// that a slice costs one barrier and its loads wait for each other nowhere:
// elements that do not exist are loaded from zeros elsewhere, without a branch.
// f32 and f64: each thread keeps squares of sums in registers and
// adds products by fused multiply-adds in the order of k. f16, bf16 and TF32:
// warps multiply 16 x 16 (TF32: 16 x 8) by 16 x 8 at once, by tensor cores,
// with sums in f32. Where the result alone gives too few blocks, k is cut into
// parts by shape; partial tiles go to scratch and a second launch adds them in
// order.
//
// Guarantee: the order of additions depends on the shape only.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CONVERSION_KERNELS_DEVICE_DEVICEGEMM_H
#define CKOPT_LIB_CONVERSION_KERNELS_DEVICE_DEVICEGEMM_H

#include "Emit/Emitter.h"
#include "ckopt/Conversion/Kernels/Kernels.h"
#include <functional>

namespace ckopt::codegen {

/// The form of elements in shared memory.
struct OperandForm {
  Type type;
  bool tf32 = false; ///< f32 whose fraction is rounded to 10 bits

  bool operator==(const OperandForm &) const = default;
};

/// A contraction's shape and functions that access its elements. Indices are
/// i64 within the shape.
struct DeviceGemm {
  /// Loads `lanes` adjacent elements (a vector unless 1) as they are in memory;
  /// zeros unless `inside` holds (null: it holds).
  using Element =
      std::function<Value(Emitter &, Value batch, Value row, Value column,
                          unsigned lanes, Value inside)>;
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
  /// The dimension of a slice along which adjacent threads load, because memory
  /// is contiguous along it; likewise for the result.
  bool aAlongK = true, bAlongN = true, cAlongN = true;
  /// The number of elements along that dimension that one access may take.
  /// Groups of this size, counted from 0, are adjacent and aligned in memory,
  /// and lie inside of the shape completely or not at all.
  unsigned aLanes = 1, bLanes = 1, cLanes = 1;
  ContractionVariant variant;

  /// Returns whether tensor cores multiply.
  bool onTensorCores() const {
    return operand.tf32 || operand.type.isF16() || operand.type.isBF16();
  }
  /// Returns whether tiles have 128 rows and columns rather than 64, which they
  /// have if enough blocks remain to fill a GPU.
  bool isLarge() const;
  int64_t tile() const { return isLarge() ? 128 : 64; }
  /// Returns the part of k that one buffer in shared memory holds: so much that
  /// two of them fit into 48 KiB, and the elements of one into 16 registers.
  int64_t slice() const {
    if (variant.slice && fits(variant.slice))
      return variant.slice;
    bool words = std::max(aElement.getIntOrFloatBitWidth(),
                          bElement.getIntOrFloatBitWidth()) > 16;
    return onTensorCores() && isLarge() && words ? 16 : partStep();
  }
  /// Returns how many buffers of a slice each operand has.
  int64_t stages() const {
    return variant.stages == 1 || partLength() <= slice() ? 1 : 2;
  }
  int64_t tilesM() const { return llvm::divideCeil(m, tile()); }
  int64_t tilesN() const { return llvm::divideCeil(n, tile()); }
  /// The number of parts that k is split into, and the length of each (a
  /// multiple of partStep()).
  int64_t parts() const;
  int64_t partLength() const;
  int64_t blocks() const { return batch * parts() * tilesM() * tilesN(); }
  /// Returns the bytes of partial results; 0 with one part.
  int64_t scratchBytes() const;
  /// Returns how blocks share the work.
  ContractionShape shape() const;

  /// Emits the code of block number `block`: a tile of the result, or of one
  /// part of it.
  void emitTile(Emitter &e, Value block) const;
  /// Emits the code of element number `item` of the result, which adds its
  /// parts in order.
  void emitSum(Emitter &e, Value item) const;

  static constexpr int64_t kThreads = 256; ///< threads of a block

private:
  struct Tile;
  /// A slice of an operand that is copied to shared memory.
  struct Slice {
    const Element &element;
    bool isA, alongDepth;
    unsigned lanes;
    Value origin; ///< first row or column of the tile
    int64_t limit;
    Value staged; ///< elements of each thread, on their way
    Value shared;
  };
  /// What parts of k are a multiple of: the order of sums depends on it, and
  /// not on slice(), which divides it.
  int64_t partStep() const { return onTensorCores() ? 32 : isLarge() ? 8 : 16; }
  /// Returns whether a slice of a (else of b) lies in shared memory as [m or
  /// n][k] rather than [k][m or n]. Halves always do, because their fragments
  /// are pairs along k; TF32 if vectors from memory run along k.
  bool depthInside(bool isA) const {
    return operand.tf32 ? isA ? aAlongK : !bAlongN : onTensorCores();
  }
  /// Returns the number of elements between rows of a slice in shared memory,
  /// padded so that threads that access it together use different banks (32
  /// words). For [m or n][k]: 8 rows of pairs of halves lie 20 words apart;
  /// rows of pairs of words, of which 4 are read at once, 40. For [k][m or n]:
  /// 4 x 8 words of TF32 are read from every other row, 136 or 264 words apart.
  int64_t pitch(bool isA) const { return pitch(isA, slice()); }
  int64_t pitch(bool isA, int64_t slice) const {
    return depthInside(isA) ? slice + 8 : tile() + 4;
  }
  int64_t sharedElements(bool isA) const {
    return sharedElements(isA, slice());
  }
  int64_t sharedElements(bool isA, int64_t slice) const {
    return pitch(isA, slice) * (depthInside(isA) ? tile() : slice);
  }
  /// Returns whether the buffers of such slices fit into shared memory, and
  /// each thread loads whole vectors.
  bool fits(int64_t slice) const;
  int64_t elementsOfThread() const { return tile() * slice() / kThreads; }
  int64_t sumsOfThread() const { return tile() * tile() / kThreads; }
  /// Returns the number of squares of 64 along each side of a tile.
  int64_t squares() const { return tile() / 64; }

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
  void emitSlices(Emitter &e, const Tile &tile) const;
  /// Loads or copies the calling thread's elements of a slice of both operands.
  using SliceStep =
      llvm::function_ref<SmallVector<Value>(Value thread, Value number)>;
  void emitOneBuffer(Emitter &e, const Tile &tile, Value from,
                     const SliceStep &load, const SliceStep &copy) const;
  void emitProducts(Emitter &e, const Tile &tile, Value thread,
                    Value number) const;
  void emitWarpProducts(Emitter &e, const Tile &tile, Value thread,
                        Value number) const;
  void emitWarpResults(Emitter &e, const Tile &tile, Value thread) const;
  void emitResults(Emitter &e, const Tile &tile, Value thread) const;
  void emitResult(Emitter &e, const Tile &tile, Value row, Value column,
                  ArrayRef<Value> sums) const;
};

} // namespace ckopt::codegen

#endif // CKOPT_LIB_CONVERSION_KERNELS_DEVICE_DEVICEGEMM_H
