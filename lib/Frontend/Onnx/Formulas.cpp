//===- Formulas.cpp - large constants that ops can make -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Formulas.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"

#include <cmath>

using namespace mlir;
using namespace ckopt;

/// Makes the op itself, which folding would turn into a table again.
static Value makeIota(TensorBuilder &b, RankedTensorType type, int64_t axis,
                      double start, double delta) {
  return IotaOp::create(
      b.builder, b.loc, type, b.builder.getI64IntegerAttr(axis),
      b.builder.getF64FloatAttr(start), b.builder.getF64FloatAttr(delta));
}

Value onnx_frontend::makeRange(OpBuilder &builder, Location loc,
                               RankedTensorType type, const HostTensor &value) {
  constexpr int64_t most = int64_t(1) << 31; // exact in f64 and in i64
  int64_t count = value.numElements(), axis = 0;
  if (isFloat(value.dtype()) || value.dtype() == DType::Bool || count < 2)
    return {};
  while (type.getDimSize(axis) == 1)
    ++axis;
  if (type.getDimSize(axis) != count)
    return {};
  int64_t start = value.getInt(0), delta = value.getInt(1) - start;
  if (std::max(std::abs(start), std::abs(value.getInt(1))) > most)
    return {};
  for (int64_t i = 1; i < count; ++i)
    if (value.getInt(i) != start + i * delta)
      return {};
  TensorBuilder b(builder, loc);
  return makeIota(b, type, axis, double(start), double(delta));
}

Value onnx_frontend::makeTriangle(OpBuilder &builder, Location loc,
                                  RankedTensorType type,
                                  const HostTensor &value) {
  int64_t rank = type.getRank();
  bool isBool = value.dtype() == DType::Bool;
  if (rank < 2 || !(isBool || isFloat(value.dtype())))
    return {};
  int64_t rows = type.getDimSize(rank - 2), columns = type.getDimSize(rank - 1);
  if (rows < 2 || columns < 2 || value.numElements() != rows * columns)
    return {};
  auto at = [&](int64_t i) {
    return isBool ? double(value.getInt(i)) : value.getDouble(i);
  };
  // Zeros of both signs are two numbers.
  auto same = [](double a, double b) {
    return a == b && std::signbit(a) == std::signbit(b);
  };
  double inside = at(0);
  int64_t first = 1;
  while (first < columns && same(at(first), inside))
    ++first;
  if (first == columns)
    return {};
  double outside = at(first);
  for (int64_t i = 0; i < rows * columns; ++i)
    if (!same(at(i), i % columns < i / columns + first ? inside : outside))
      return {};
  TensorBuilder b(builder, loc);
  auto positions = [&](int64_t axis, double start) {
    SmallVector<int64_t> shape(size_t(rank), 1);
    shape[size_t(axis)] = type.getDimSize(axis);
    auto index = RankedTensorType::get(shape, builder.getI64Type());
    return makeIota(b, index, axis, start, 1);
  };
  Value row = positions(rank - 2, double(first - 1));
  Value column = positions(rank - 1, 0);
  bool opensOutside = isBool && inside == 0;
  Value below = b.compare(
      opensOutside ? ComparePredicate::GT : ComparePredicate::LE, column, row);
  if (isBool)
    return below;
  Type element = type.getElementType();
  auto number = [&](double x) -> Value {
    auto scalar = RankedTensorType::get({}, element);
    return ConstantOp::create(
        builder, loc,
        DenseElementsAttr::get(scalar, builder.getFloatAttr(element, x)));
  };
  return b.select(below, number(inside), number(outside));
}
