//===- Formulas.cpp - large constants that ops can make -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Formulas.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"

#include <cmath>
#include <optional>

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
                               RankedTensorType type, const HostTensor &value,
                               bool floats) {
  constexpr int64_t most = int64_t(1) << 31; // exact in f64 and in i64
  int64_t count = value.numElements();
  if (value.dtype() == DType::Bool || count < 2)
    return {};
  if (isFloat(value.dtype())) { // floats that are integers, which are exact
    if (!floats)
      return {};
    for (int64_t i = 0; i < count; ++i)
      if (double number = value.getDouble(i);
          !(std::abs(number) <= 1 << 24) || number != std::floor(number) ||
          std::signbit(number) != (number < 0))
        return {};
    auto whole = value.convertTo(DType::I64, Conversion::AllowTruncation);
    if (!whole) {
      llvm::consumeError(whole.takeError());
      return {};
    }
    return makeRange(builder, loc, type, *whole, floats);
  }
  int64_t start = value.getInt(0), stride = count, axis = 0;
  for (;; ++axis) { // the first along which numbers differ
    if (axis == type.getRank())
      return {};
    stride /= type.getDimSize(axis);
    if (type.getDimSize(axis) > 1 && value.getInt(stride) != start)
      break;
  }
  int64_t next = value.getInt(stride), delta = next - start;
  if (std::max(std::abs(start), std::abs(next)) > most)
    return {};
  for (int64_t i = 0; i < count; ++i)
    if (value.getInt(i) != start + i / stride % type.getDimSize(axis) * delta)
      return {};
  TensorBuilder b(builder, loc);
  return makeIota(b, type, axis, double(start), double(delta));
}

namespace {
/// The numbers of a matrix that are the same along each diagonal: `beside` up
/// to a distance of `low` between column and row, then `inside` up to `high`,
/// then `beside` again.
struct Band {
  double beside = 0, inside = 0;
  std::optional<int64_t> low, high;
};
} // namespace

/// Zeros of both signs are two numbers.
static bool sameNumber(double a, double b) {
  return a == b && std::signbit(a) == std::signbit(b);
}

/// Finds the band of matrices, one or several equal ones.
static std::optional<Band> findBand(int64_t count, int64_t rows,
                                    int64_t columns,
                                    function_ref<double(int64_t)> at) {
  auto ofDiagonal = [&](int64_t distance) {
    return at(distance < 0 ? -distance * columns : distance);
  };
  Band band;
  band.inside = ofDiagonal(1 - rows);
  for (int64_t d = 2 - rows; d < columns; ++d) {
    double number = ofDiagonal(d);
    if (sameNumber(number, ofDiagonal(d - 1)))
      continue;
    if (band.high && (band.low || !sameNumber(number, band.inside)))
      return std::nullopt;
    if (band.high) { // what was inside is beside
      band.low = band.high;
      std::swap(band.inside, band.beside);
    } else {
      band.beside = number;
    }
    band.high = d - 1;
  }
  if (!band.high)
    return std::nullopt;
  for (int64_t i = 0; i < count; ++i) {
    int64_t distance = i % columns - i / columns % rows;
    bool isInside =
        distance <= *band.high && (!band.low || distance > *band.low);
    if (!sameNumber(at(i), isInside ? band.inside : band.beside))
      return std::nullopt;
  }
  return band;
}

Value onnx_frontend::makeBand(OpBuilder &builder, Location loc,
                              RankedTensorType type, const HostTensor &value) {
  int64_t rank = type.getRank();
  bool isBool = value.dtype() == DType::Bool;
  if (rank < 2 || !(isBool || isFloat(value.dtype())))
    return {};
  int64_t rows = type.getDimSize(rank - 2), columns = type.getDimSize(rank - 1);
  if (rows < 2 || columns < 2)
    return {};
  std::optional<Band> band =
      findBand(value.numElements(), rows, columns, [&](int64_t i) {
        return isBool ? double(value.getInt(i)) : value.getDouble(i);
      });
  if (!band)
    return {};
  TensorBuilder b(builder, loc);
  auto positions = [&](int64_t axis, double start) {
    SmallVector<int64_t> shape(size_t(rank), 1);
    shape[size_t(axis)] = type.getDimSize(axis);
    auto index = RankedTensorType::get(shape, builder.getI64Type());
    return makeIota(b, index, axis, start, 1);
  };
  bool opensBeside = isBool && band->inside == 0;
  Value column = positions(rank - 1, 0), open;
  open = b.compare(opensBeside ? ComparePredicate::GT : ComparePredicate::LE,
                   column, positions(rank - 2, double(*band->high)));
  if (band->low) {
    Value low =
        b.compare(opensBeside ? ComparePredicate::LE : ComparePredicate::GT,
                  column, positions(rank - 2, double(*band->low)));
    open = opensBeside ? b.make<OrOp>(open, low) : b.make<AndOp>(open, low);
  }
  if (isBool)
    return b.expand(open, type.getShape());
  Type element = type.getElementType();
  auto number = [&](double x) -> Value {
    auto scalar = RankedTensorType::get({}, element);
    return ConstantOp::create(
        builder, loc,
        DenseElementsAttr::get(scalar, builder.getFloatAttr(element, x)));
  };
  return b.expand(b.select(open, number(band->inside), number(band->beside)),
                  type.getShape());
}
