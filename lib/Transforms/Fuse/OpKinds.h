//===- OpKinds.h - what fuse asks of single ops -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Properties of single ops that grouping needs: whether an op is free, whether
// it can be computed inside a loop over its readers, and whether its operands
// must be stored.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRANSFORMS_FUSE_OPKINDS_H
#define CKOPT_LIB_TRANSFORMS_FUSE_OPKINDS_H

#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"

namespace ckopt::fuse {

mlir::RankedTensorType tensorType(mlir::Value value);
KernelKind kindOf(mlir::Operation *op);

/// A reshape that only adds or drops dimensions of size 1.
bool isUnitReshape(mlir::Operation *op);

/// Ops that cost nothing to compute wherever they are read.
bool isTrivial(mlir::Operation *op);

/// Returns whether the op reads one element of each operand for an element of
/// its result, and adjacent elements of the innermost dimension for adjacent
/// results, so that it can be computed inside a vectorized loop.
bool isPointwise(mlir::Operation *op);

/// Returns whether the op is a slice whose elements lie as in the whole tensor,
/// from its first one on.
bool isPrefix(mlir::Operation *op);

/// Returns floating-point operations for one element of the largest result.
double flopsPerElement(mlir::Operation *op);

/// Returns whether operand `index` must lie in memory because the op reads it
/// several times, or a library reads it.
bool needsStoredOperand(mlir::Operation *op, unsigned index);

/// Attributes by which users ask to keep or recompute a value: they do not
/// change how it is computed, so they are not part of a kernel's structure.
inline constexpr llvm::StringLiteral kWishes[] = {attrs::kRemat,
                                                  attrs::kCheckpoint};
/// Copies each from the first of the ops that has it.
void copyWishes(llvm::ArrayRef<mlir::Operation *> from, mlir::Operation *to);

} // namespace ckopt::fuse

#endif // CKOPT_LIB_TRANSFORMS_FUSE_OPKINDS_H
