//===- GradientSums.h - adds up the gradients of values ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A value with several readers has several gradients; their sum is built in the
// order in which they are added. Two kinds cost no pass over the whole value:
// - a scatter_add into zeros (the gradient of a gather) adds into the sum so
//   far instead: the gradient of a tied embedding needs no second table;
// - slabs, zero but for a range of one dimension (the gradients of slices), are
//   joined by one concat if they do not overlap: splitting a projection into
//   heads or gates costs no sum in full size. (x + 0 is x: no value changes.)
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRANSFORMS_AUTODIFF_GRADIENTSUMS_H
#define CKOPT_LIB_TRANSFORMS_AUTODIFF_GRADIENTSUMS_H

#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"

namespace ckopt::autodiff {

class GradientSums {
public:
  /// Builds sums at the builder's insertion point.
  explicit GradientSums(mlir::OpBuilder &builder) : builder(builder) {}

  /// Adds a gradient of `value`. `owned` says that it was made for this value
  /// alone, so that its op may be changed; the op of a gradient that several
  /// values share may not.
  void add(mlir::Value value, mlir::Value gradient, bool owned);
  /// Returns the sum once all gradients have been added; null for zero.
  mlir::Value get(mlir::Value value);

private:
  struct Sum {
    mlir::Value dense;
    bool owned = false; ///< no other value has `dense` as its gradient
    llvm::SmallVector<PadOp> slabs;
  };
  bool addSlab(Sum &sum, mlir::Value gradient);
  mlir::Value growSum(mlir::Value sum, mlir::Value gradient);
  mlir::Value joinSlabs(llvm::ArrayRef<PadOp> slabs);

  mlir::OpBuilder &builder;
  llvm::DenseMap<mlir::Value, Sum> sums; ///< looked up, never iterated
};

} // namespace ckopt::autodiff

#endif // CKOPT_LIB_TRANSFORMS_AUTODIFF_GRADIENTSUMS_H
