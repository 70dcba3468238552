//===- Tensor.cpp - tensors of the reference interpreter ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Reference/Tensor.h"
#include "ckopt/Base/DType.h"
#include "ckopt/Base/Philox.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <limits>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::reference;

SmallVector<int64_t> reference::rowMajorStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0; stride *= shape[d])
    strides[d] = stride;
  return strides;
}

Tensor::Tensor(RankedTensorType type)
    : type(type), floating(isa<FloatType>(type.getElementType())) {
  assert(type.hasStaticShape() && "the interpreter needs static shapes");
  if (floating)
    reals.resize(size_t(type.getNumElements()));
  else
    ints.resize(size_t(type.getNumElements()));
}

Tensor::Tensor(RankedTensorType type, std::vector<double> values)
    : type(type), floating(true), reals(std::move(values)) {
  assert(isa<FloatType>(type.getElementType()) &&
         int64_t(reals.size()) == type.getNumElements());
}

Tensor::Tensor(RankedTensorType type, std::vector<int64_t> values)
    : type(type), ints(std::move(values)) {
  assert(isa<IntegerType>(type.getElementType()) &&
         int64_t(ints.size()) == type.getNumElements());
}

Tensor Tensor::random(RankedTensorType type, uint64_t seed, double low,
                      double high) {
  Tensor result(type);
  PhiloxStream stream(seed, RandomUse::Test, 0);
  bool boolean = type.getElementType().isInteger(1);
  for (int64_t i = 0; i < result.size(); ++i) {
    double value = stream.uniform();
    if (boolean)
      result.integer(i) = value < 0.5;
    else if (result.floating)
      result.real(i) = low + (high - low) * value;
    else
      result.integer(i) = int64_t(std::floor(low + (high - low) * value));
  }
  result.roundToType();
  return result;
}

Tensor Tensor::splat(RankedTensorType type, double value) {
  Tensor result(type);
  if (result.size() == 0)
    return result;
  result.set(0, value); // by the type
  llvm::fill(result.reals, result.reals.empty() ? 0 : result.reals.front());
  llvm::fill(result.ints, result.ints.empty() ? 0 : result.ints.front());
  return result;
}

bool Tensor::isUnsigned() const {
  return type.getElementType().isUnsignedInteger();
}

double Tensor::get(int64_t i) const {
  if (floating)
    return real(i);
  if (type.getElementType().isUnsignedInteger(64))
    return double(uint64_t(integer(i)));
  return double(integer(i));
}

/// Truncates `value` to the low bits of an integer type.
static int64_t wrap(int64_t value, unsigned bits, bool isUnsigned) {
  if (bits == 1)
    return value != 0;
  if (bits >= 64)
    return value;
  uint64_t low = uint64_t(value) << (64 - bits);
  return isUnsigned ? int64_t(low >> (64 - bits)) : int64_t(low) >> (64 - bits);
}

/// Truncates toward zero; values outside int64_t become its nearest bound, NaN
/// becomes 0.
static int64_t toInteger(double value) {
  if (std::isnan(value))
    return 0;
  if (value >= 0x1p63)
    return std::numeric_limits<int64_t>::max();
  if (value < -0x1p63)
    return std::numeric_limits<int64_t>::min();
  return int64_t(value);
}

void Tensor::set(int64_t i, double value) {
  if (floating) {
    real(i) = value;
    return;
  }
  Type element = type.getElementType();
  if (element.isInteger(1))
    integer(i) = value != 0;
  else if (element.isUnsignedInteger(64) && value >= 0x1p63 && value < 0x1p64)
    integer(i) = int64_t(uint64_t(value));
  else
    integer(i) = wrap(toInteger(value), element.getIntOrFloatBitWidth(),
                      element.isUnsignedInteger());
}

Tensor Tensor::withType(RankedTensorType newType) const {
  assert(newType.getNumElements() == size() &&
         isa<FloatType>(newType.getElementType()) == floating);
  Tensor result = *this;
  result.type = newType;
  return result;
}

void Tensor::roundToType() {
  Type element = type.getElementType();
  if (!floating) {
    unsigned bits = element.getIntOrFloatBitWidth();
    bool isUnsigned = element.isUnsignedInteger();
    for (int64_t &value : ints)
      value = wrap(value, bits, isUnsigned);
  } else if (element.isF32()) {
    for (double &value : reals)
      value = double(float(value));
  } else if (element.isF16()) {
    for (double &value : reals)
      value = double(Half(value));
  } else if (element.isBF16()) {
    for (double &value : reals)
      value = double(BFloat16(value));
  }
}

std::string Tensor::str(int64_t limit) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << type << " [";
  for (int64_t i = 0; i < std::min(size(), limit); ++i) {
    os << (i ? ", " : "");
    if (floating)
      os << llvm::format("%.9g", real(i));
    else if (isUnsigned())
      os << uint64_t(integer(i));
    else
      os << integer(i);
  }
  os << (size() > limit ? ", ...]" : "]");
  return text;
}

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

/// Returns |a - b|: 0 for equal values and for two NaNs, infinite for NaN and a
/// number.
static double distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b)))
    return 0;
  double difference = std::abs(a - b);
  return std::isnan(difference) ? std::numeric_limits<double>::infinity()
                                : difference;
}

Comparison reference::compare(const Tensor &a, const Tensor &b) {
  Comparison result;
  if (!a || !b || a.getShape() != b.getShape()) {
    result.sameShape = result.sameValues = false;
    return result;
  }
  double sumA = 0, sumB = 0, sumDifference = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    double x = a.get(i), y = b.get(i), difference = distance(x, y);
    sumA += x * x;
    sumB += y * y;
    sumDifference += difference * difference;
    if (difference == 0)
      continue;
    result.sameValues = false;
    if (difference > result.maxAbs) {
      result.maxAbs = difference;
      result.where = i;
    }
    double larger = std::fmax(std::abs(x), std::abs(y));
    result.maxRel =
        std::max(result.maxRel,
                 std::isinf(difference) ? difference : difference / larger);
  }
  if (sumDifference > 0)
    result.normRel = std::sqrt(sumDifference / std::max(sumA, sumB));
  return result;
}

bool reference::allClose(const Tensor &a, const Tensor &b, double absolute,
                         double relative) {
  if (!a || !b || a.getShape() != b.getShape())
    return false;
  return llvm::all_of(llvm::seq<int64_t>(0, a.size()), [&](int64_t i) {
    double x = a.get(i), y = b.get(i), difference = distance(x, y);
    return std::isfinite(difference) &&
           (difference <= absolute ||
            difference <= relative * std::fmax(std::abs(x), std::abs(y)));
  });
}

std::string Comparison::str() const {
  if (!sameShape)
    return "shapes differ";
  if (sameValues)
    return "equal";
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::format("largest difference %.3g (element %lld), relative %.3g, "
                      "of norms %.3g",
                      maxAbs, static_cast<long long>(where), maxRel, normRel);
  return text;
}
