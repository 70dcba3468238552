//===- AxisRelation.h - axes of results and operands ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DISTRIBUTE_AXISRELATION_H
#define CKOPT_DISTRIBUTE_AXISRELATION_H

#include "ckopt/Interfaces/StructureInterface.h"
#include "llvm/ADT/DenseMap.h"

namespace ckopt {

inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType()).getShape();
}
inline int64_t rankOf(mlir::Value value) {
  return int64_t(shapeOf(value).size());
}

/// Returns how an axis of the op's result 0 runs along an operand; other() for
/// an op that does not say so. For batch norms, the statistics are ignored.
/// Reshapes are not handled here: their effect on an axis depends on what lies
/// along it.
AxisRelation relateAxis(mlir::Operation *op, unsigned operand, int64_t axis);

/// Returns whether the result has the axis of result 0.
bool hasAxisOfFirst(mlir::OpResult result, int64_t axis);

/// Tells whether all slices of a value along an axis are equal.
class Uniformity {
public:
  bool isUniform(mlir::Value value, int64_t axis);

private:
  bool compute(mlir::OpResult value, int64_t axis);

  /// Never iterated.
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, bool> known;
};

} // namespace ckopt

#endif // CKOPT_DISTRIBUTE_AXISRELATION_H
