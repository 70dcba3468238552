//===- StructureInterface.cpp - how results are made of operands ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Interfaces/StructureInterface.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace ckopt;

#include "ckopt/Interfaces/StructureInterface.cpp.inc"

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

/// Dimensions agree from the last one on.
AxisRelation ckopt::detail::relateBroadcast(Operation *op, unsigned operand,
                                            int64_t axis) {
  ArrayRef<int64_t> from = shapeOf(op->getOperand(operand)),
                    to = shapeOf(op->getResult(0));
  int64_t own = axis - int64_t(to.size()) + int64_t(from.size());
  if (own < 0 || (from[size_t(own)] == 1 && to[size_t(axis)] != 1))
    return AxisRelation::whole();
  return AxisRelation::follows(own);
}

int64_t ckopt::detail::smallestDimension(Operation *op, ContractionKind kind) {
  if (kind == ContractionKind::Attention)
    return shapeOf(op->getOperand(0)).back();
  int64_t smallest = std::numeric_limits<int64_t>::max();
  for (Value operand : op->getOperands())
    for (int64_t size : kind == ContractionKind::Convolution
                            ? shapeOf(operand).slice(1, 1)
                            : shapeOf(operand).take_back(2))
      smallest = std::min(smallest, size);
  return smallest;
}

bool ckopt::detail::haveEqualAxis(Operation *op, unsigned result,
                                  int64_t axis) {
  ArrayRef<int64_t> shape = shapeOf(op->getResult(result)),
                    first = shapeOf(op->getResult(0));
  return shape.size() == first.size() &&
         shape[size_t(axis)] == first[size_t(axis)];
}
