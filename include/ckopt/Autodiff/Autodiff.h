//===- Autodiff.h - forward function to forward and backward -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The function that does the work of the pass autodiff, in place. On failure it
// has emitted diagnostics that name the argument, option or source node. Losses
// (ckopt/Losses) come before it, the optimizer (ckopt/Optimizers) after.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_AUTODIFF_AUTODIFF_H
#define CKOPT_AUTODIFF_AUTODIFF_H

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

/// Returns the index of the result that is the loss: role "loss", else name
/// "loss".
std::optional<unsigned> findLoss(mlir::func::FuncOp function);

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

} // namespace autodiff
} // namespace ckopt

#endif // CKOPT_AUTODIFF_AUTODIFF_H
