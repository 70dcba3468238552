//===- AxisRelation.cpp - which axes of operands a result's runs along ----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: samples lie along an axis, and ops keep them apart or mix them.
// Method: ops say what the elements at one place of an axis read
// (SampleAxisOpInterface). Whether samples stay apart and whether slices are
// equal both follow from it. Guarantee: an op that does not say it is not known
// to keep anything apart. O(operands) for a question.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Distribute/AxisRelation.h"

#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/RandomSite.h"

using namespace mlir;
using namespace ckopt;

AxisRelation ckopt::relateAxis(Operation *op, unsigned i, int64_t axis) {
  auto axes = dyn_cast<SampleAxisOpInterface>(op);
  return axes ? axes.relateAxis(i, axis) : AxisRelation::other();
}

bool ckopt::hasAxisOfFirst(OpResult result, int64_t axis) {
  auto axes = dyn_cast<SampleAxisOpInterface>(result.getOwner());
  return axes && axes.hasAxisOfFirst(result.getResultNumber(), axis);
}

//===----------------------------------------------------------------------===//
// Equal slices
//===----------------------------------------------------------------------===//

static bool isUniformConstant(ElementsAttr value, int64_t axis) {
  if (value.isSplat())
    return true;
  auto dense = dyn_cast<DenseElementsAttr>(value);
  if (!dense)
    return false;
  ArrayRef<char> bytes = dense.getRawData();
  SmallVector<char> bits; // truth values may be packed
  if (dense.getElementType().isInteger(1)) {
    for (bool bit : dense.getValues<bool>())
      bits.push_back(bit);
    bytes = bits;
  }
  ArrayRef<int64_t> shape = dense.getType().getShape();
  size_t size = size_t(shape[size_t(axis)]), blocks = 1;
  for (int64_t extent : shape.take_front(size_t(axis)))
    blocks *= size_t(extent);
  const size_t slice = bytes.size() / (blocks * size);
  for (; !bytes.empty(); bytes = bytes.drop_front(size * slice))
    for (size_t k = 1; k < size; ++k)
      if (bytes.take_front(slice) != bytes.slice(k * slice, slice))
        return false;
  return true;
}

/// Steps along the result's axis change the places along some axes of the
/// operand alone: slices are equal if they are along all of those.
static bool isUniformReshape(Uniformity &uniformity, ReshapeOp op,
                             int64_t axis) {
  auto strideBehind = [](ArrayRef<int64_t> shape, size_t d) {
    int64_t stride = 1;
    for (int64_t size : shape.drop_front(d + 1))
      stride *= size;
    return stride;
  };
  ArrayRef<int64_t> from = shapeOf(op.getInput()), to = shapeOf(op.getOutput());
  const int64_t step = strideBehind(to, size_t(axis));
  const int64_t end = step * to[size_t(axis)];
  for (size_t d = 0; d < from.size(); ++d) {
    int64_t stride = strideBehind(from, d);
    bool isApart = step % (stride * from[d]) == 0 || stride % end == 0;
    if (!isApart && !uniformity.isUniform(op.getInput(), int64_t(d)))
      return false;
  }
  return true;
}

bool Uniformity::isUniform(Value value, int64_t axis) {
  if (shapeOf(value)[size_t(axis)] == 1 ||
      llvm::is_contained(shapeOf(value), 0))
    return true;
  auto result = dyn_cast<OpResult>(value);
  if (!result)
    return false;
  if (auto found = known.find({value, axis}); found != known.end())
    return found->second;
  bool uniform = compute(result, axis);
  known[{value, axis}] = uniform;
  return uniform;
}

bool Uniformity::compute(OpResult value, int64_t axis) {
  Operation *op = value.getOwner();
  if (auto constant = dyn_cast<ConstantOp>(op))
    return isUniformConstant(cast<ElementsAttr>(constant.getValue()), axis);
  if (auto iota = dyn_cast<IotaOp>(op))
    return int64_t(iota.getAxis()) != axis;
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return isUniformReshape(*this, reshape, axis);
  if (auto slice = dyn_cast<SliceOp>(op))
    return isUniform(slice.getInput(), axis);
  if (op->getNumOperands() == 0 || randomSite(op) ||
      !hasAxisOfFirst(value, axis))
    return false;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    AxisRelation relation = relateAxis(op, unsigned(i), axis);
    bool isEqual = relation.kind == AxisRelation::Kind::Whole ||
                   (relation.follows() && isUniform(operand, relation.axis));
    if (!isEqual)
      return false;
  }
  return true;
}
