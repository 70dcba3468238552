//===- StopGradient.h - values that are constants for gradients -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `ckopt.pin` with this attribute has its operand's value, and is a constant
// for autodiff: PyTorch's detach(). Code that needs no more gradients removes
// it.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DIALECT_CKOPT_UTILS_STOPGRADIENT_H
#define CKOPT_DIALECT_CKOPT_UTILS_STOPGRADIENT_H

#include "mlir/IR/Block.h"
#include "llvm/ADT/StringRef.h"

namespace ckopt {

/// On an op: no gradient flows through it.
inline constexpr llvm::StringLiteral kStopGradientAttr = "ckopt.stop_gradient";

/// Replaces the block's pins that stop gradients by their operands, and erases
/// them.
void removeStops(mlir::Block &block);

} // namespace ckopt

#endif // CKOPT_DIALECT_CKOPT_UTILS_STOPGRADIENT_H
