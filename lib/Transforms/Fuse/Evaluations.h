//===- Evaluations.h - how often a kernel computes an op --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a kernel computes fused values on demand. An op that reads its
// operand at another index (slice, pad, concat, ...) makes it compute that
// operand once more for each element; in x1 = x0 + shift(x0), x2 = x1 +
// shift(x1), ... each level doubles the work, in the code as well.
//
// Method: points are numbered. A root is computed at point 0; an operand is
// read at its reader's point, or, by an op that moves elements, at a point of
// its own for each of the reader's points. An op is computed at all points at
// which it is read. Two ops that move elements in the same way count twice, so
// the number is an upper bound.
//
// Complexity: O(uses times points); callers bound the points.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRANSFORMS_FUSE_EVALUATIONS_H
#define CKOPT_LIB_TRANSFORMS_FUSE_EVALUATIONS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

namespace ckopt::fuse {

/// The most points at which a kernel computes an op that has a cost. Two rolls
/// of an image, or a rotary embedding, need four.
inline constexpr size_t maxPoints = 4;

/// Points by number, sorted.
using Points = llvm::SmallVector<unsigned, maxPoints>;
/// The points at which ops of a kernel are computed.
using PointsOfOps = llvm::DenseMap<mlir::Operation *, Points>;

class PointTable {
public:
  /// Returns the points at which `op` is read by its users in `points`.
  Points readsOf(mlir::Operation *op, const PointsOfOps &points);
  /// Returns the points of a kernel of these ops, given in program order.
  PointsOfOps ofKernel(llvm::ArrayRef<mlir::Operation *> body,
                       llvm::ArrayRef<mlir::Operation *> roots);

private:
  /// Points that arise at operands of ops that move elements, numbered by
  /// operand and the op's own point.
  llvm::DenseMap<std::pair<mlir::OpOperand *, unsigned>, unsigned> moved;
};

} // namespace ckopt::fuse

#endif // CKOPT_LIB_TRANSFORMS_FUSE_EVALUATIONS_H
