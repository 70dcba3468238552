//===- LossBuilder.h - one attached loss, as formulas -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_AUTODIFF_LOSSBUILDER_H
#define CKOPT_LIB_AUTODIFF_LOSSBUILDER_H

#include "ckopt/Autodiff/Loss.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"

namespace ckopt::autodiff {

/// What the formula of a loss has: predictions, targets as they are asked for,
/// settings. Each formula gives a scalar, or null after an error.
struct LossBuilder {
  mlir::func::FuncOp function;
  TensorBuilder &b;
  const LossOptions &options;
  mlir::Value x;                     ///< predictions, f32 or f64
  mlir::RankedTensorType targetType; ///< of targets that are like predictions
  std::string outputName, targetName;

  mlir::ArrayRef<int64_t> shape() const { return tensorType(x).getShape(); }
  int64_t rank() const { return tensorType(x).getRank(); }

  /// The argument of targets, of the type of the predictions.
  mlir::Value targetsLikeX();
  /// Targets of -1 and 1, in the element type of x.
  mlir::Value signs();
  /// The argument of labels: i64, the shape of the predictions without `axis`.
  mlir::Value labels(int64_t axis, bool ignores);
  mlir::FailureOr<int64_t> classAxis();
  /// A list of numbers along `axis` of the predictions, 1 along the others.
  mlir::FailureOr<mlir::Value> along(mlir::ArrayRef<double> numbers,
                                     int64_t axis, mlir::StringRef flag);
  /// The values, through which no gradient flows.
  mlir::Value constant(mlir::Value value);
  /// Sum or mean over all elements.
  mlir::Value reduce(mlir::Value each);
};

/// The loss of a kind of the list.
mlir::Value buildLoss(mlir::StringRef kind, LossBuilder &builder);

} // namespace ckopt::autodiff

#endif // CKOPT_LIB_AUTODIFF_LOSSBUILDER_H
