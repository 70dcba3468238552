//===- DeviceGemm.h - contractions by the threads of blocks -----*- C++ -*-===//
//
// A contraction as sums over k of a(m, k) * b(k, n), whatever memory a and b
// come from: matrix products read strided operands, convolutions compute which
// element they mean (implicit GEMM).
//
// Method: a block makes a tile of the result. Slices of both operands pass
// through shared memory; each thread keeps a small square of sums in registers
// and adds products by fused multiply-adds in the order of k. Where the result
// alone gives too few blocks, k is cut into parts by shape; partial tiles go to
// scratch and a second launch adds them in order.
//
// Guarantee: the order of additions depends on the shape only.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CONVERSION_KERNELTOLLVM_DEVICEGEMM_H
#define CKOPT_LIB_CONVERSION_KERNELTOLLVM_DEVICEGEMM_H

#include "Emitter.h"
#include <functional>

namespace ckopt::codegen {

/// A contraction's shape and how its elements are reached. Indices are i64
/// inside of the shape.
struct DeviceGemm {
  using Element =
      std::function<Value(Emitter &, Value batch, Value row, Value column)>;
  using Store = std::function<void(Emitter &, Value batch, Value row,
                                   Value column, Value element)>;

  int64_t batch = 1, m = 1, n = 1, k = 1;
  Type type; ///< of the sums
  Element a; ///< (batch, m, k)
  Element b; ///< (batch, k, n)
  Store store;
  /// Which dimension of a slice neighbouring threads load along: where memory
  /// is contiguous.
  bool aAlongK = true, bAlongN = true;

  int64_t tilesM() const { return llvm::divideCeil(m, kTile); }
  int64_t tilesN() const { return llvm::divideCeil(n, kTile); }
  /// Parts that k is cut into, and the length of each (a multiple of kSlice).
  int64_t parts() const;
  int64_t partLength() const;
  int64_t blocks() const { return batch * parts() * tilesM() * tilesN(); }
  /// Bytes of partial results; 0 with one part.
  int64_t scratchBytes() const;

  /// Code of block number `block`: a tile of the result, or of one part of it.
  void emitTile(Emitter &e, Value block) const;
  /// Code of element number `item` of the result: adds its parts in order.
  void emitSum(Emitter &e, Value item) const;

  static constexpr int64_t kTile = 64;     ///< rows and columns of a tile
  static constexpr int64_t kSlice = 16;    ///< of k in shared memory at once
  static constexpr int64_t kThreads = 256; ///< of a block
  static constexpr int64_t kSide = 4;      ///< of a thread's square of sums

private:
  void emitSlice(Emitter &e, Value thread, Value batchIndex, Value row,
                 Value column, Value from, Value to, Value sharedA,
                 Value sharedB) const;
  void emitProducts(Emitter &e, Value thread, Value sharedA, Value sharedB,
                    Value sums) const;
};

} // namespace ckopt::codegen

#endif // CKOPT_LIB_CONVERSION_KERNELTOLLVM_DEVICEGEMM_H
