//===- LossBuilder.h - one attached loss, as formulas -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRANSFORMS_LOSSES_LOSSBUILDER_H
#define CKOPT_LIB_TRANSFORMS_LOSSES_LOSSBUILDER_H

#include "ckopt/Base/MessageText.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"
#include "ckopt/Losses/Loss.h"

namespace ckopt {

/// Builds the formula of one loss from predictions, targets (arguments that are
/// added when a formula asks for them) and settings. Each formula returns a
/// scalar, or null after an error.
struct LossBuilder {
  mlir::func::FuncOp function;
  TensorBuilder &b;
  const LossOptions &options;
  mlir::Value x; ///< predictions, f32 or f64
  /// Type of targets that have the predictions' shape.
  mlir::RankedTensorType targetType;
  std::string outputName, targetName;

  mlir::ArrayRef<int64_t> shape() const { return tensorType(x).getShape(); }
  int64_t rank() const { return tensorType(x).getRank(); }

  /// Adds the argument of targets, of the type of the predictions.
  mlir::Value targetsLikeX();
  /// Adds an argument of targets that are -1 or 1, in the element type of x.
  mlir::Value signs();
  /// Adds targets from 0 to 1, converted to the type of x (LabelRange.h).
  mlir::Value probabilities(llvm::StringRef kind);
  /// Adds the argument of labels: i64, the shape of the predictions without
  /// `axis`.
  mlir::Value labels(int64_t axis, bool ignores);
  mlir::FailureOr<int64_t> classAxis();
  /// Refuses, of several ranks, a loss that reads along the axis of samples.
  llvm::LogicalResult checkApart(int64_t axis);
  /// Returns a constant with the numbers along `axis` of the predictions and
  /// size 1 in the other dimensions.
  mlir::FailureOr<mlir::Value> along(mlir::ArrayRef<double> numbers,
                                     int64_t axis, const MessageText &flag);
  /// Returns the value with its gradient stopped.
  mlir::Value constant(mlir::Value value);
  /// Returns the sum or the mean over all elements, as the settings ask; of
  /// several ranks this one's share of it.
  mlir::Value reduce(mlir::Value each);
  /// Returns the sum of a count over all ranks.
  mlir::Value acrossRanks(mlir::Value count);
};

/// Builds the loss of the kind with this name.
mlir::Value buildLoss(mlir::StringRef kind, LossBuilder &builder);

} // namespace ckopt

#endif // CKOPT_LIB_TRANSFORMS_LOSSES_LOSSBUILDER_H
