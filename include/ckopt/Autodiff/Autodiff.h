//===- Autodiff.h - appends a backward pass to a function -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// These functions do the work of the pass autodiff, in place. On failure they
// have emitted diagnostics that name the argument, option or source node.
// Losses (ckopt/Losses) come before it, the optimizer (ckopt/Optimizers) after.
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

/// States of dynamic loss scaling, 0-d: the scale (f32), the updates since it
/// last changed, and the skipped updates (f64).
inline constexpr llvm::StringLiteral kLossScaleName = "optimizer/loss_scale";
inline constexpr llvm::StringLiteral kGoodUpdatesName =
    "optimizer/good_updates";
inline constexpr llvm::StringLiteral kSkippedUpdatesName =
    "optimizer/skipped_updates";
/// The end of the name of a state that adds up gradients of micro-batches.
inline constexpr llvm::StringLiteral kGradientSumSuffix = "/grad_sum";

/// Scales lie between 2^-k and 2^k.
inline constexpr int kMaxScaleExponent = 60;
/// Returns whether the number is a power of two in that range.
bool isLossScale(double scale);

/// Returns the index of the result that is the loss: role "loss", else name
/// "loss".
std::optional<unsigned> findLoss(mlir::func::FuncOp function);

struct AutodiffOptions {
  /// Names of the arguments to differentiate by; empty: all parameters.
  std::vector<std::string> wrt;
  std::string result = "step"; ///< the function's name afterwards
  /// The factor of the loss in the backward pass, a power of two; gradients are
  /// divided by it.
  double lossScale = 1;
  /// The factor is a state (kLossScaleName) with this initial value, which
  /// addOptimizer updates.
  bool lossScaleState = false;
};

/// Appends the backward pass to `function`; see the pass `autodiff`.
llvm::LogicalResult differentiate(mlir::func::FuncOp function,
                                  const AutodiffOptions &options);

} // namespace autodiff
} // namespace ckopt

#endif // CKOPT_AUTODIFF_AUTODIFF_H
