//===- TensorAttr.cpp - tensors from and to attributes and host tensors ---===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Reference/Tensor.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::reference;

static double toDouble(llvm::APFloat value) {
  bool loses = false;
  value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven,
                &loses);
  return value.convertToDouble();
}

static llvm::APFloat fromDouble(double value, FloatType type) {
  llvm::APFloat result(value);
  bool loses = false;
  result.convert(type.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven,
                 &loses);
  return result;
}

static int64_t toInt64(const llvm::APInt &value, Type element) {
  // i1 holds 0 and 1, not 0 and -1.
  if (element.isUnsignedInteger() || element.isInteger(1))
    return int64_t(value.getZExtValue());
  return value.getSExtValue();
}

Tensor Tensor::fromAttr(ElementsAttr attr) {
  auto type = dyn_cast<RankedTensorType>(attr.getType());
  if (!type || !type.hasStaticShape() || !type.getElementType().isIntOrFloat())
    return {};
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(attr)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob)
      return {};
    // i1 is not supported: blobs hold a byte for each element, dense attributes
    // a bit.
    bool splat = false;
    if (type.getElementType().isInteger(1) ||
        !DenseElementsAttr::isValidRawBuffer(type, blob->getData(), splat))
      return {};
    attr = DenseElementsAttr::getFromRawBuffer(type, blob->getData());
  }
  Tensor result(type);
  Type element = type.getElementType();
  if (attr.isSplat() && type.getNumElements() > 0) {
    if (result.floating)
      std::fill(result.reals.begin(), result.reals.end(),
                toDouble(attr.getSplatValue<llvm::APFloat>()));
    else
      std::fill(result.ints.begin(), result.ints.end(),
                toInt64(attr.getSplatValue<llvm::APInt>(), element));
    return result;
  }
  if (result.floating) {
    std::optional values = attr.tryGetValues<llvm::APFloat>();
    if (!values)
      return {};
    for (auto [to, from] : llvm::zip(result.reals, *values))
      to = toDouble(from);
  } else {
    std::optional values = attr.tryGetValues<llvm::APInt>();
    if (!values)
      return {};
    for (auto [to, from] : llvm::zip(result.ints, *values))
      to = toInt64(from, element);
  }
  return result;
}

DenseElementsAttr Tensor::toAttr() const {
  Type element = type.getElementType();
  // The attribute is a splat only if it is built from a single value.
  if (floating) {
    auto bits = [](double value) { return std::bit_cast<uint64_t>(value); };
    bool equal = size() > 0 && llvm::all_of(reals, [&](double value) {
                   return bits(value) == bits(reals.front());
                 });
    SmallVector<llvm::APFloat> values;
    for (double value :
         ArrayRef<double>(reals).take_front(equal ? 1 : reals.size()))
      values.push_back(fromDouble(value, cast<FloatType>(element)));
    return DenseElementsAttr::get(type, values);
  }
  bool equal = size() > 0 && llvm::all_equal(ints);
  SmallVector<llvm::APInt> values;
  for (int64_t value :
       ArrayRef<int64_t>(ints).take_front(equal ? 1 : ints.size()))
    values.push_back(llvm::APInt(element.getIntOrFloatBitWidth(),
                                 uint64_t(value), /*isSigned=*/false,
                                 /*implicitTrunc=*/true));
  return DenseElementsAttr::get(type, values);
}

Tensor Tensor::fromHost(const HostTensor &host, RankedTensorType type) {
  assert(host.numElements() == type.getNumElements());
  Tensor result(type);
  bool exact = !result.floating && !ckopt::isFloat(host.dtype());
  for (int64_t i = 0; i < result.size(); ++i) {
    if (exact)
      result.integer(i) = host.getInt(i);
    else
      result.set(i, host.getDouble(i));
  }
  result.roundToType();
  return result;
}

HostTensor Tensor::toHost() const {
  std::vector<int64_t> shape = type.getShape().vec();
  Type element = type.getElementType();
  if (floating) {
    DType dtype = element.isF64()   ? DType::F64
                  : element.isF32() ? DType::F32
                  : element.isF16() ? DType::F16
                                    : DType::BF16;
    HostTensor result(dtype, shape);
    for (int64_t i = 0; i < size(); ++i)
      result.setDouble(i, real(i));
    return result;
  }
  HostTensor wide = HostTensor::of<int64_t>(shape, ints);
  unsigned bits = element.getIntOrFloatBitWidth();
  bool isSigned = !element.isUnsignedInteger();
  DType dtype = bits == 1    ? DType::Bool
                : bits == 8  ? (isSigned ? DType::I8 : DType::U8)
                : bits == 16 ? (isSigned ? DType::I16 : DType::U16)
                : bits == 32 ? (isSigned ? DType::I32 : DType::U32)
                             : (isSigned ? DType::I64 : DType::U64);
  HostTensor result(dtype, shape);
  // The values already lie in the type's range (ui64 wraps back).
  convertElements(isSigned || bits < 64 ? DType::I64 : DType::U64,
                  wide.rawData(), dtype, result.mutableRawData(), size());
  return result;
}
