//===- Padding.h - dimensions with zeros behind them ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What passes share that pad a dimension so that its elements are loaded as
// vectors.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRANSFORMS_NORMALIZE_PADDING_H
#define CKOPT_LIB_TRANSFORMS_NORMALIZE_PADDING_H

#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"
#include "llvm/Support/MathExtras.h"

namespace ckopt {

/// Returns the next multiple of `group`; the extent itself where that is more
/// than a third more, which would cost more than is gained.
inline int64_t paddedExtent(int64_t extent, int64_t group) {
  int64_t wide = int64_t(llvm::alignTo(extent, group));
  return 3 * wide <= 4 * extent ? wide : extent;
}

/// Returns the type with another extent of a dimension, in the same order.
inline mlir::RankedTensorType withExtent(mlir::RankedTensorType type,
                                         int64_t dim, int64_t extent) {
  llvm::SmallVector<int64_t> shape(type.getShape());
  shape[dim] = extent;
  return type.clone(shape);
}

/// Returns the value with zeros behind a dimension's elements, `extent` in all.
inline mlir::Value withZeros(mlir::OpBuilder &builder, mlir::Location loc,
                             mlir::Value value, int64_t dim, int64_t extent) {
  mlir::RankedTensorType type = tensorType(value);
  llvm::SmallVector<int64_t> none(type.getRank(), 0), high(none);
  high[dim] = extent - type.getDimSize(dim);
  return PadOp::create(builder, loc, withExtent(type, dim, extent), value, none,
                       high, none, llvm::APFloat(0.0));
}

} // namespace ckopt

#endif // CKOPT_LIB_TRANSFORMS_NORMALIZE_PADDING_H
