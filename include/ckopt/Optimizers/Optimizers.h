//===- Optimizers.h - parameter updates in place of gradients ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// This function does the work of the pass optimizer, in place. On failure it
// has emitted diagnostics that name the argument or option.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_OPTIMIZERS_OPTIMIZERS_H
#define CKOPT_OPTIMIZERS_OPTIMIZERS_H

#include "ckopt/Optimizers/OptimizerOptions.h"
#include "ckopt/Support/Optimizers.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ckopt {

/// Attribute of a parameter: its own settings of the optimizer, a dictionary of
/// hyperparameters (Support/Optimizers.h) and `lr_scale`, a
/// factor of the learning rate; all f64.
inline constexpr llvm::StringLiteral kOptimizerAttr = "ckopt.optimizer";

/// Stores matrices of f32 that are parameters, and what has more dimensions, in
/// bf16; see the pass `store-parameters`.
void storeParameters(mlir::func::FuncOp function);

/// Replaces gradient results by updates; see the pass `optimizer`. With
/// accumulate > 1 it adds a function `accumulate` to the module.
llvm::LogicalResult addOptimizer(mlir::func::FuncOp function,
                                 const OptimizerOptions &options);

} // namespace ckopt

#endif // CKOPT_OPTIMIZERS_OPTIMIZERS_H
