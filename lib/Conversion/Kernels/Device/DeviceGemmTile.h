//===- DeviceGemmTile.h - what one block of a contraction has ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CONVERSION_KERNELS_DEVICE_DEVICEGEMMTILE_H
#define CKOPT_LIB_CONVERSION_KERNELS_DEVICE_DEVICEGEMMTILE_H

#include "Device/DeviceGemm.h"

namespace ckopt::codegen {

/// The tile that one block computes.
struct DeviceGemm::Tile {
  Value batch, row, column; ///< position of its first element
  Value partial;   ///< number of the part among all; null: the result is stored
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

} // namespace ckopt::codegen

#endif // CKOPT_LIB_CONVERSION_KERNELS_DEVICE_DEVICEGEMMTILE_H
