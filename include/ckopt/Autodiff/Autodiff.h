//===- Autodiff.h - from a forward function to a training step --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// These functions do the work of the passes attach-loss, autodiff and
// optimizer. Each transforms one function in place. On failure it has emitted
// diagnostics that name the argument, option or source node.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_AUTODIFF_AUTODIFF_H
#define CKOPT_AUTODIFF_AUTODIFF_H

#include "ckopt/Autodiff/Loss.h"
#include "ckopt/Support/Optimizers.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <optional>
#include <string>
#include <vector>

namespace mlir {
class DialectRegistry;
}

namespace ckopt {

/// Attribute of a result: the index of the argument whose gradient it is.
inline constexpr llvm::StringLiteral kGradientAttr = "ckopt.gradient";
/// Attribute of an argument: differentiate by it, whatever its role.
inline constexpr llvm::StringLiteral kGradAttr = "ckopt.grad";

/// Attaches the gradient rules to the ckopt ops of contexts made from
/// `registry`.
void registerAutodiffRules(mlir::DialectRegistry &registry);

namespace autodiff {

/// States of dynamic loss scaling, 0-d: the scale (f32), updates since it last
/// changed, and updates that were not made (f64).
inline constexpr llvm::StringLiteral kLossScaleName = "optimizer/loss_scale";
inline constexpr llvm::StringLiteral kGoodUpdatesName =
    "optimizer/good_updates";
inline constexpr llvm::StringLiteral kSkippedUpdatesName =
    "optimizer/skipped_updates";

/// Scales lie between 2^-k and 2^k.
inline constexpr int kMaxScaleExponent = 60;
/// Returns whether the number is a power of two in that range.
bool isLossScale(double scale);

struct AutodiffOptions {
  std::vector<std::string> wrt; ///< argument names; empty: all parameters
  std::string result = "step";  ///< the function's name afterwards
  /// What the backward pass multiplies the loss by, a power of two; gradients
  /// are divided by it.
  double lossScale = 1;
  /// The scale is a state that starts there (kLossScaleName), for addOptimizer
  /// to change.
  bool lossScaleState = false;
};

/// Appends the backward pass to `function`; see the pass `autodiff`.
llvm::LogicalResult differentiate(mlir::func::FuncOp function,
                                  const AutodiffOptions &options);

struct DistributeOptions {
  int64_t ranks = 2;
  int64_t shards = 1; ///< ranks that share parameters; divides `ranks`
  int64_t bucketBytes = int64_t(25) << 20; ///< where a bucket is closed
  bool syncNorms = false; ///< batch norms have statistics of all ranks
};

/// Makes the function's own loss a rank's share of the batch's loss: what the
/// shares of all ranks add up to. A failure where that is not known.
llvm::LogicalResult shareLoss(mlir::func::FuncOp function, int64_t ranks);

/// Sums gradients and losses over ranks; see the pass `distribute`.
llvm::LogicalResult distribute(mlir::func::FuncOp function,
                               const DistributeOptions &options);

/// Attribute of a parameter: its own settings of the optimizer, a dictionary of
/// hyperparameters (Support/Optimizers.h) and `lr_scale`, a
/// factor of the learning rate; all f64.
inline constexpr llvm::StringLiteral kOptimizerAttr = "ckopt.optimizer";

struct OptimizerOptions {
  std::string kind = "adamw"; ///< Support/Optimizers.h lists them
  HyperValues values;         ///< values that are not the kind's defaults
  double clipNorm = 0;        ///< 0: no clipping
  int64_t accumulate = 1;     ///< micro-batches in a step
  double ema = 0;             ///< decay of averaged parameters; 0: none
  /// Where the loss's scale is a state: updates in a row, with finite
  /// gradients, after which it doubles; 0: it stays as it is.
  int64_t lossScaleGrowth = 2000;
};

/// Replaces gradient results by updates; see the pass `optimizer`. With
/// accumulate > 1 a function `accumulate` joins the module.
llvm::LogicalResult addOptimizer(mlir::func::FuncOp function,
                                 const OptimizerOptions &options);

} // namespace autodiff
} // namespace ckopt

#endif // CKOPT_AUTODIFF_AUTODIFF_H
