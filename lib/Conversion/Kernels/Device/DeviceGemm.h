//===- DeviceGemm.h - contractions by the threads of blocks -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A contraction as sums over k of a(m, k) * b(k, n), whatever memory a and b
// come from: matrix products read strided operands, convolutions compute which
// element they mean (implicit GEMM).
//
// Method: a block makes a tile of the result. Slices of both operands pass
// through shared memory, 16 bytes at once where the operand's description
// allows it. f32 and f64: each thread keeps squares of sums in registers and
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
#include <functional>

namespace ckopt::codegen {

/// How elements lie in shared memory.
struct OperandForm {
  Type type;
  bool tf32 = false; ///< f32 whose fraction is rounded to 10 bits

  bool operator==(const OperandForm &) const = default;
};

/// A contraction's shape and how its elements are reached. Indices are i64
/// inside of the shape.
struct DeviceGemm {
  /// `lanes` neighbours (a vector unless 1) as `operand` says.
  using Element = std::function<Value(Emitter &, Value batch, Value row,
                                      Value column, unsigned lanes)>;
  /// Elements of type `type`, a vector or one.
  using Store = std::function<void(Emitter &, Value batch, Value row,
                                   Value column, Value elements)>;

  int64_t batch = 1, m = 1, n = 1, k = 1;
  Type type;           ///< of the sums
  OperandForm operand; ///< of a and b as they lie in shared memory
  Element a;           ///< (batch, m, k)
  Element b;           ///< (batch, k, n)
  Store store;
  /// Which dimension of a slice neighbouring threads load along: where memory
  /// is contiguous. Likewise of the result.
  bool aAlongK = true, bAlongN = true, cAlongN = true;
  /// How many neighbours along that dimension, counted from a multiple of
  /// this number, lie beside each other in memory at a multiple of as many
  /// elements, all of them inside of the shape or none.
  unsigned aLanes = 1, bLanes = 1, cLanes = 1;

  /// Whether tensor cores multiply.
  bool onTensorCores() const {
    return operand.tf32 || operand.type.isF16() || operand.type.isBF16();
  }
  /// Tiles of 128 rather than 64, where as many blocks fill a GPU.
  bool isLarge() const;
  int64_t tile() const { return isLarge() ? 128 : 64; }
  /// Of k in shared memory at once.
  int64_t slice() const { return onTensorCores() ? 32 : isLarge() ? 8 : 16; }
  int64_t tilesM() const { return llvm::divideCeil(m, tile()); }
  int64_t tilesN() const { return llvm::divideCeil(n, tile()); }
  /// Parts that k is cut into, and the length of each (a multiple of slice()).
  int64_t parts() const;
  int64_t partLength() const;
  int64_t blocks() const { return batch * parts() * tilesM() * tilesN(); }
  /// Bytes of partial results; 0 with one part.
  int64_t scratchBytes() const;

  /// Code of block number `block`: a tile of the result, or of one part of it.
  void emitTile(Emitter &e, Value block) const;
  /// Code of element number `item` of the result: adds its parts in order.
  void emitSum(Emitter &e, Value item) const;

  static constexpr int64_t kThreads = 256; ///< of a block

private:
  struct Tile;
  /// A slice of an operand on its way to shared memory.
  struct Slice {
    const Element &element;
    bool isA, alongDepth;
    unsigned lanes;
    Value origin; ///< row or column of the tile
    int64_t limit;
    Value shared;
  };
  /// Whether a slice of a (else of b) lies in shared memory as [m or n][k]
  /// rather than [k][m or n]. Halves, whose fragments are pairs along k:
  /// always; TF32: as vectors of neighbours come from memory.
  bool depthInside(bool isA) const {
    return operand.tf32 ? isA ? aAlongK : !bAlongN : onTensorCores();
  }
  /// Elements between rows of a slice in shared memory, padded so that threads
  /// that access it together meet different banks (32 words). [m or n][k]: 8
  /// rows of pairs of halves lie 20 words apart; of pairs of words, of which 4
  /// rows are read at once, 40. [k][m or n]: 4 x 8 words of TF32 are read from
  /// every other row, 136 or 264 words apart.
  int64_t pitch(bool isA) const {
    return depthInside(isA) ? slice() + 8 : tile() + 4;
  }
  int64_t sharedElements(bool isA) const {
    return pitch(isA) * (depthInside(isA) ? tile() : slice());
  }
  int64_t sumsOfThread() const { return tile() * tile() / kThreads; }
  /// Squares of 64 that a tile is made of, each way.
  int64_t squares() const { return tile() / 64; }

  std::pair<Value, Value> placeOf(Emitter &e, Value at,
                                  const Slice &slice) const;
  void emitLoad(Emitter &e, const Tile &tile, Value thread, Value from,
                const Slice &slice) const;
  void emitLoadOf(Emitter &e, const Tile &tile, Value at, Value from,
                  const Slice &slice) const;
  void emitProducts(Emitter &e, const Tile &tile, Value thread) const;
  void emitWarpProducts(Emitter &e, const Tile &tile, Value thread) const;
  void emitWarpResults(Emitter &e, const Tile &tile, Value thread) const;
  void emitResults(Emitter &e, const Tile &tile, Value thread) const;
  void emitResult(Emitter &e, const Tile &tile, Value row, Value column,
                  ArrayRef<Value> sums) const;
};

} // namespace ckopt::codegen

#endif // CKOPT_LIB_CONVERSION_KERNELS_DEVICE_DEVICEGEMM_H
