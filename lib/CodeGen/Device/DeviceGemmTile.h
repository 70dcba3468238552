//===- DeviceGemmTile.h - a block's tile of a contraction -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CODEGEN_DEVICE_DEVICEGEMMTILE_H
#define CKOPT_LIB_CODEGEN_DEVICE_DEVICEGEMMTILE_H

#include "DeviceGemm.h"

namespace ckopt::codegen {

/// The tile that one block computes.
struct DeviceGemm::Tile {
  Value batch, row, column; ///< position of its first element
  Value partial;   ///< number of the part among all; null: k is not split, and
                   ///< the result is stored
  Value low, high; ///< range of k
  Value sharedA, sharedB;
  Value sums; ///< sums of each thread
};

inline Value asIndex(Emitter &e, Value v) {
  return mlir::arith::IndexCastOp::create(e.b, e.b.getIndexType(), v);
}

/// Returns the position of the thread's sum number i.
inline SmallVector<Value> sumAt(Emitter &e, int64_t i) {
  return {e.threadIndex(), mlir::arith::ConstantIndexOp::create(e.b, i)};
}

/// Returns whether a number is less than a constant.
inline Value isBelow(Emitter &e, Value x, int64_t limit) {
  return e.cmpi(mlir::arith::CmpIPredicate::slt, x, e.index(limit));
}

/// Returns quotient and remainder of a non-negative number.
inline std::pair<Value, Value> divided(Emitter &e, Value x, int64_t by) {
  Value divisor = e.index(by);
  return {mlir::arith::DivUIOp::create(e.b, x, divisor),
          mlir::arith::RemUIOp::create(e.b, x, divisor)};
}

} // namespace ckopt::codegen

#endif // CKOPT_LIB_CODEGEN_DEVICE_DEVICEGEMMTILE_H
