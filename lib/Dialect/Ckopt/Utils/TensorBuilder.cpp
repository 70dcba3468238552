//===- TensorBuilder.cpp - ckopt ops in the form of formulas --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"

using namespace mlir;
using namespace ckopt;

Value TensorBuilder::splat(RankedTensorType type, double value) {
  Attribute element;
  if (auto integer = dyn_cast<IntegerType>(type.getElementType()))
    element = builder.getIntegerAttr(integer, int64_t(value));
  else
    element = builder.getFloatAttr(type.getElementType(), value);
  ElementsAttr elements = DenseElementsAttr::get(type, element);
  return ConstantOp::create(builder, loc, elements);
}

Value TensorBuilder::number(Value like, double value) {
  return splat(RankedTensorType::get({}, getElementTypeOrSelf(like)), value);
}

Value TensorBuilder::cast(Value value, Type element) {
  RankedTensorType type = tensorType(value);
  if (type.getElementType() == element)
    return value;
  return make<CastOp>(type.clone(element), value);
}

Value TensorBuilder::reshape(Value value, ArrayRef<int64_t> shape) {
  if (tensorType(value).getShape() == shape)
    return value;
  return make<ReshapeOp>(
      RankedTensorType::get(shape, tensorType(value).getElementType()), value);
}

Value TensorBuilder::expand(Value value, ArrayRef<int64_t> shape) {
  if (tensorType(value).getShape() == shape)
    return value;
  return make<ExpandOp>(
      RankedTensorType::get(shape, tensorType(value).getElementType()), value);
}

Value TensorBuilder::transpose(Value value, ArrayRef<int64_t> permutation) {
  return make<TransposeOp>(value, ints(permutation));
}

Value TensorBuilder::sum(Value value, ArrayRef<int64_t> axes) {
  if (axes.empty())
    return value;
  return make<ReduceOp>(
      ReduceKindAttr::get(builder.getContext(), ReduceKind::Sum), value,
      ints(axes), builder.getBoolAttr(false));
}

Value TensorBuilder::sumAll(Value value) {
  return sum(value, llvm::to_vector(
                        llvm::seq<int64_t>(0, tensorType(value).getRank())));
}

Value TensorBuilder::sumTo(Value value, ArrayRef<int64_t> shape) {
  ArrayRef<int64_t> from = tensorType(value).getShape();
  int64_t lead = int64_t(from.size()) - int64_t(shape.size());
  SmallVector<int64_t> axes;
  for (int64_t d = 0; d < int64_t(from.size()); ++d)
    if (d < lead || (shape[d - lead] == 1 && from[d] != 1))
      axes.push_back(d);
  return reshape(sum(value, axes), shape);
}

Value TensorBuilder::keepDims(Value value, ArrayRef<int64_t> axes,
                              ArrayRef<int64_t> shape) {
  if (tensorType(value).getRank() == 0)
    return value; // a scalar broadcasts to any shape as it is
  SmallVector<int64_t> kept(shape);
  for (int64_t axis : axes)
    kept[axis] = 1;
  return reshape(value, kept);
}

Value TensorBuilder::broadcastAlong(Value value, ArrayRef<int64_t> axes,
                                    ArrayRef<int64_t> shape) {
  return expand(keepDims(value, axes, shape), shape);
}

SmallVector<int64_t> ckopt::allButChannels(RankedTensorType type) {
  SmallVector<int64_t> axes{0};
  for (int64_t d = 2; d < type.getRank(); ++d)
    axes.push_back(d);
  return axes;
}

Value ckopt::besideChannels(TensorBuilder &b, Value channels,
                            RankedTensorType type) {
  return b.keepDims(channels, allButChannels(type), type.getShape());
}
