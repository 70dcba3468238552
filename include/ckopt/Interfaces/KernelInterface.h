//===- KernelInterface.h - what fusion and planning ask ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_INTERFACES_KERNELINTERFACE_H
#define CKOPT_INTERFACES_KERNELINTERFACE_H

#include "mlir/IR/OpDefinition.h"

namespace ckopt {

/// How an op takes part in kernels.
enum class KernelKind {
  View,        ///< no code: the result is the operand's bytes (reshape)
  Constant,    ///< no inputs; made again inside each kernel that reads it
  Elementwise, ///< point i of the result from points i (or broadcast) of
               ///< operands
  Indexed, ///< point i from operand points at other indices (transpose, slice,
           ///< concat, pad, gather, pooling); any point can be computed by
           ///< itself
  Reduction,  ///< reduces some dimensions of a domain
  RowWise,    ///< several passes over rows (softmax, layer norm)
  Structured, ///< a scan-like loop nest of its own (scatter)
  Library,    ///< one library primitive (matmul, convolution)
  Update,     ///< elementwise new value of a state; runs once, never cloned
};

/// An op's requirements on the physical order of its tensors' dimensions.
enum class LayoutRole {
  Any,         ///< reads any order, makes row-major
  Uniform,     ///< operands and results of one shape or rank share one order
  RowMajor,    ///< reads and makes row-major
  Pairs,       ///< the operand and the result of equal number share one order
  Matrices,    ///< reads and makes matrices, row-major or with the strides of a
               ///< transpose (acceptsStrides)
  Convolution, ///< channels-last activations, row-major weights
};

/// How the first result of an op is stored with mixed precision. Whatever the
/// storage, ops compute in f32.
enum class StorageClass {
  Neutral, ///< has no influence on ops that read it: kind Constant
  Follows, ///< in 16 bits if an operand of its size is, and none is Full: kinds
           ///< View, Elementwise, Indexed, RowWise
  Full, ///< f32: sums, state, values that need full precision; kinds Reduction,
        ///< Structured, Update, and Library except for contractions
};

namespace detail {
/// Returns the floating-point operations of an op: the elements of its largest
/// result times the operations that one element takes.
double defaultFlops(mlir::Operation *op);
/// Returns whether the kind is a constant or elementwise op.
bool isFusibleKind(KernelKind kind);
/// Returns whether the operand must be in memory. This holds for all operands
/// of library ops, and of views that a kernel cannot look through; for all
/// operands of structured ops except a constant first one; and for operands of
/// indexed ops that are not read lane by lane.
bool defaultNeedsStoredOperand(mlir::Operation *op, unsigned index);
LayoutRole layoutRoleOfKind(KernelKind kind);
StorageClass storageOfKind(KernelKind kind);
/// Returns whether a matmul reads or writes a matrix of these strides in place:
/// at most two batch dimensions, and rows or columns without gaps.
bool suitsProduct(mlir::ArrayRef<int64_t> strides);
/// Returns the pairs (operand, result) that may share bytes: for elementwise
/// ops each operand of the result's own type, for other ops none.
llvm::SmallVector<std::pair<unsigned, unsigned>>
defaultReusePairs(mlir::Operation *op);
} // namespace detail
} // namespace ckopt

#include "ckopt/Interfaces/KernelInterface.h.inc"

#endif // CKOPT_INTERFACES_KERNELINTERFACE_H
