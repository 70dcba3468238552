//===- Transposes.h - transposes that are views or copies -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRANSFORMS_LAYOUT_TRANSPOSES_H
#define CKOPT_LIB_TRANSFORMS_LAYOUT_TRANSPOSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ckopt {

/// Moves transposes that make channels the last dimension, or the second one,
/// to the other side of reshapes that join or split spatial dimensions, as in
/// patch embeddings: beside channels-last values they are views.
void hoistTransposes(mlir::func::FuncOp function);

/// Turns transposes beside products and attention into views, where these can
/// read (or write) with the other side's strides. Attention heads, for example,
/// are then never copied.
void placeTransposes(mlir::func::FuncOp function);

/// Says in a remark what changes of order are left, and what they move at most:
/// one that a kernel computes where it reads it moves less.
void remarkCopies(mlir::func::FuncOp function);

} // namespace ckopt

#endif // CKOPT_LIB_TRANSFORMS_LAYOUT_TRANSPOSES_H
