//===- Loss.h - makes the loss of a model -----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loss is a sum of terms with weights. A term is a scalar output of the model
// itself ("output"), or a loss that is attached to an output and has targets
// ("cross_entropy", "mse", ...), equal to PyTorch's in value and gradient.
// docs/losses.md describes all of them for users.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LOSSES_LOSS_H
#define CKOPT_LOSSES_LOSS_H

#include "ckopt/Base/MessageText.h"
#include "ckopt/Losses/LossOptions.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <vector>

namespace ckopt {

/// Attribute of a target argument: the name of the output that it belongs to.
inline constexpr llvm::StringLiteral kTargetOfAttr = "ckopt.target_of";

struct LossOptions : LossSettings {
  std::vector<LossTerm> terms{LossTerm()};
  /// Name of the new argument. A number follows if it is taken; of several
  /// targets each has its output's name behind it ("target.depth").
  std::string target = "target";
  /// Processes that each compute the loss of their share of a batch: the result
  /// is this process's share of the batch's loss, and all shares add up to it.
  int64_t ranks = 1;
};

/// Fills in the outputs of the terms. `output` without a name means the scalar
/// named "loss"; else the only one that a loss operator made; else the only
/// scalar. A loss that is attached without a name takes the first float output
/// that is no scalar. Errors list the outputs. If there was a choice, `remark`
/// names the chosen output and those that do not contribute to the loss.
llvm::Error resolveLoss(mlir::func::FuncOp function,
                        std::vector<LossTerm> &terms, MessageText &remark);

/// Tells whether the model computes a loss: a float output with one element.
/// With a batch of one such an output could be a prediction, so it must have no
/// dimensions, be named "loss" or come from a loss operator.
bool hasScalarOutput(mlir::func::FuncOp function);

/// Chooses the axis of the classes for scores of this shape if no targets are
/// known: 1, in rank 3 the last. An error if the shape of targets could fit
/// both axes (or, for probabilities in rank 3, always).
llvm::Expected<int64_t> defaultClassAxis(llvm::ArrayRef<int64_t> shape,
                                         bool softTargets);

/// Makes the loss result 0, a scalar with role "loss", and appends arguments
/// for the targets of its terms. Other results follow.
llvm::LogicalResult attachLoss(mlir::func::FuncOp function,
                               const LossOptions &options);

/// Names of the results that rankLabels() puts in place of scores.
inline constexpr llvm::StringLiteral kLabelLosses = "ckopt.label_losses";
inline constexpr llvm::StringLiteral kLabelRanks = "ckopt.label_ranks";

/// Replaces the scores that one cross_entropy term with labels reads, a result
/// of `leastBytes` or more, by the cross entropy at each place and the number
/// of classes that come before the label there. Appends the argument for the
/// labels.
llvm::LogicalResult rankLabels(mlir::func::FuncOp function,
                               const LossOptions &options, int64_t leastBytes);

} // namespace ckopt

#endif // CKOPT_LOSSES_LOSS_H
