//===- Autodiff.h - from a forward function to a training step --*- C++ -*-===//
//
// The C++ face of the passes attach-loss, autodiff and optimizer: each
// transforms one function in place, reports what is wrong as diagnostics that
// name the argument, option or source node, and then returns failure.
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

/// On a result: index of the argument that it is the gradient of.
inline constexpr llvm::StringLiteral kGradientAttr = "ckopt.gradient";
/// On an argument: differentiate by it, whatever its role.
inline constexpr llvm::StringLiteral kGradAttr = "ckopt.grad";

/// Attaches the gradient rules to the ckopt ops of contexts made from
/// `registry`.
void registerAutodiffRules(mlir::DialectRegistry &registry);

namespace autodiff {

struct AutodiffOptions {
  std::vector<std::string> wrt; ///< argument names; empty: all parameters
  std::string result = "step";  ///< the function's name afterwards
};

/// Appends the backward pass to `function`; see the pass `autodiff`.
llvm::LogicalResult differentiate(mlir::func::FuncOp function,
                                  const AutodiffOptions &options);

/// On a parameter: what differs for it from the optimizer's settings, a
/// dictionary of hyperparameters (Support/Optimizers.h) and `lr_scale`, a
/// factor of the learning rate; all f64.
inline constexpr llvm::StringLiteral kOptimizerAttr = "ckopt.optimizer";

struct OptimizerOptions {
  std::string kind = "adamw"; ///< Support/Optimizers.h lists them
  HyperValues values;         ///< those that are not the kind's defaults
  double clipNorm = 0;        ///< 0: no clipping
  int64_t accumulate = 1;     ///< micro-batches in a step
  double ema = 0;             ///< decay of averaged parameters; 0: none
};

/// Replaces gradient results by updates; see the pass `optimizer`. With
/// accumulate > 1 a function `accumulate` joins the module.
llvm::LogicalResult addOptimizer(mlir::func::FuncOp function,
                                 const OptimizerOptions &options);

} // namespace autodiff
} // namespace ckopt

#endif // CKOPT_AUTODIFF_AUTODIFF_H
