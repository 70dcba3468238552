//===- GradientScale.h - updates of gradients that may overflow -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Transforms/Autodiff. Where the loss is scaled by a state, one
// number tells whether all gradients are finite: the sum of 0 * g over them.
// All new values are selected by it, or told so by the step's number, which is
// 0 where no update is made and counts those that were made otherwise.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRANSFORMS_OPTIMIZERS_GRADIENTSCALE_H
#define CKOPT_LIB_TRANSFORMS_OPTIMIZERS_GRADIENTSCALE_H

#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ckopt {

class GradientScale {
public:
  /// Finds the scale that the pass `autodiff` left, if it did, and adds the
  /// states that go with it.
  void addArguments(mlir::func::FuncOp function);
  /// Tells whether the loss is scaled; otherwise nothing below makes sense, but
  /// settled().
  explicit operator bool() const { return bool(scale); }

  /// Finds out whether the update is made. Returns the number, i64, that it has
  /// among those that are made; 0: it is not.
  mlir::Value judge(TensorBuilder &b, llvm::ArrayRef<mlir::Value> gradients,
                    mlir::Value step);
  /// Returns the new value of a state, or the old one where the update is
  /// skipped.
  mlir::Value settled(TensorBuilder &b, mlir::Value now,
                      mlir::Value before) const {
    return finite ? b.select(finite, now, before) : now;
  }
  /// Returns whether all gradients are finite; null without a scale.
  mlir::Value isMade() const { return finite; }
  /// Returns whether no update was made before.
  mlir::Value isFirst(TensorBuilder &b) const {
    return b.compare(ComparePredicate::EQ, made, 1);
  }

  /// Returns the new values of the states, as torch.amp.GradScaler has them;
  /// `growth` 0: the scale stays.
  llvm::SmallVector<std::pair<mlir::BlockArgument, mlir::Value>>
  newStates(TensorBuilder &b, int64_t growth) const;

private:
  mlir::BlockArgument scale, goodUpdates, skippedUpdates;
  mlir::Value finite, made;
};

} // namespace ckopt

#endif // CKOPT_LIB_TRANSFORMS_OPTIMIZERS_GRADIENTSCALE_H
