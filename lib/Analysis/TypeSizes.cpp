//===- TypeSizes.cpp - bytes of a value by its type -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: compute the bytes of values of any dialect, and detect where they
// are not known. Method: the client's callback, then shape times element, then
// the type's DataLayoutTypeInterface. A short list of types needs no bytes in
// the arena: numbers, tokens, pointers. Every other type is reported as
// unknown.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Analysis/PlanningHooks.h"
#include "ckopt/Interfaces/Compat.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace ckopt;

/// Larger values are refused: sums of their bytes would overflow.
static constexpr int64_t maxBytes = int64_t(1) << 56;

/// Returns whether values of the type need no bytes in the arena: numbers,
/// tokens, pointers to memory that others own, shapes as numbers.
static bool hasNoBytes(Type type) {
  if (type.isIntOrIndexOrFloat() ||
      isa<ComplexType, NoneType, FunctionType, quant::QuantizedType>(type))
    return true;
  StringRef name = type.getAbstractType().getName();
  return name.ends_with("token") || name.starts_with("shape.") ||
         llvm::is_contained({"llvm.ptr", "ptr.ptr", "tosa.shape", "async.group",
                             "llvm.metadata", "llvm.void"},
                            name);
}

const DataLayout &TypeSizes::layout() const {
  if (!cachedLayout)
    cachedLayout = std::make_shared<DataLayout>(
        scope ? DataLayout::closest(scope) : DataLayout());
  return *cachedLayout;
}

std::optional<int64_t> TypeSizes::asked(Type type) const {
  if (!hook)
    return std::nullopt;
  std::optional<int64_t> bytes = hook(type);
  if (bytes && (*bytes < 0 || *bytes > maxBytes))
    return std::nullopt;
  return bytes;
}

std::optional<int64_t> TypeSizes::ofInterface(Type type) const {
  if (!isa<DataLayoutTypeInterface>(type))
    return std::nullopt;
  llvm::TypeSize size = layout().getTypeSize(type);
  if (size.isScalable() || size.getFixedValue() > uint64_t(maxBytes))
    return std::nullopt;
  return int64_t(size.getFixedValue());
}

/// Returns the bytes of one element, or 0 if unknown.
int64_t TypeSizes::elementBytes(Type element) const {
  if (std::optional<int64_t> bytes = asked(element))
    return *bytes;
  if (auto quantized = dyn_cast<quant::QuantizedType>(element))
    element = quantized.getStorageType();
  if (element.isIndex())
    return scope ? int64_t(layout().getTypeSize(element).getFixedValue()) : 8;
  if (element.isIntOrFloat())
    return (element.getIntOrFloatBitWidth() + 7) / 8;
  if (auto complex = dyn_cast<ComplexType>(element))
    return 2 * elementBytes(complex.getElementType());
  if (auto vector = dyn_cast<VectorType>(element))
    return vector.isScalable() ? 0 : std::max<int64_t>(shapedBytes(vector), 0);
  return ofInterface(element).value_or(0);
}

/// Returns the bytes of a static shape, or -1 if they are unknown or overflow.
int64_t TypeSizes::shapedBytes(ShapedType type) const {
  int64_t bytes = elementBytes(type.getElementType());
  if (bytes <= 0)
    return -1;
  for (int64_t size : type.getShape())
    if (llvm::MulOverflow(bytes, size, bytes) || bytes > maxBytes)
      return -1;
  return bytes;
}

/// Returns the bytes from the first to the last element that a memref shows, as
/// a contiguous type; none if they are not known at compile time.
static std::optional<MemRefType> shownBy(MemRefType memref) {
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  if (!memref.hasStaticShape() ||
      failed(compat::getStridesAndOffset(memref, strides, offset)))
    return std::nullopt;
  int64_t last = 0;
  for (auto [size, stride] : llvm::zip(memref.getShape(), strides)) {
    if (ShapedType::isDynamic(stride))
      return std::nullopt;
    if (size == 0)
      return MemRefType::get({0}, memref.getElementType());
    int64_t reach = 0;
    if (llvm::MulOverflow(size - 1, std::abs(stride), reach) ||
        llvm::AddOverflow(last, reach, last))
      return std::nullopt;
  }
  if (last == std::numeric_limits<int64_t>::max())
    return std::nullopt;
  return MemRefType::get({last + 1}, memref.getElementType());
}

int64_t TypeSizes::bytes(Type type) const {
  if (std::optional<int64_t> bytes = asked(type))
    return *bytes;
  if (auto tuple = dyn_cast<TupleType>(type)) {
    int64_t sum = 0;
    for (Type part : tuple.getTypes())
      sum = std::min(sum + bytes(part), maxBytes);
    return sum;
  }
  if (auto memref = dyn_cast<MemRefType>(type)) {
    std::optional<MemRefType> shown = shownBy(memref);
    return shown ? std::max<int64_t>(shapedBytes(*shown), 0) : 0;
  }
  if (isa<BaseMemRefType>(type) || hasNoBytes(type))
    return 0;
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.isScalable() ? 0 : std::max<int64_t>(shapedBytes(vector), 0);
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return tensor.hasStaticShape() ? std::max<int64_t>(shapedBytes(tensor), 0)
                                   : 0;
  return isa<TensorType>(type) ? 0 : ofInterface(type).value_or(0);
}

bool TypeSizes::isKnown(Type type) const {
  if (asked(type) || hasNoBytes(type))
    return true;
  if (auto tuple = dyn_cast<TupleType>(type))
    return llvm::all_of(tuple.getTypes(),
                        [&](Type part) { return isKnown(part); });
  if (isa<VectorType, TensorType>(type))
    return describeUnsized(type).empty();
  if (auto memref = dyn_cast<MemRefType>(type)) {
    std::optional<MemRefType> shown = shownBy(memref);
    return shown && shapedBytes(*shown) >= 0;
  }
  return !isa<BaseMemRefType>(type) && ofInterface(type).has_value();
}

bool TypeSizes::isValue(Type type) const {
  if (isa<TensorType, VectorType, TupleType, ComplexType, NoneType>(type) ||
      type.isIntOrIndexOrFloat() ||
      type.getAbstractType().getName() == "tosa.shape" || asked(type))
    return true;
  return !isa<BaseMemRefType>(type) && !hasNoBytes(type) &&
         ofInterface(type).has_value();
}

std::string TypeSizes::describeUnsized(Type type) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (asked(type))
    return text;
  if (auto tuple = dyn_cast<TupleType>(type)) {
    for (Type part : tuple.getTypes())
      if (text = describeUnsized(part); !text.empty())
        break;
    return text;
  }
  if (auto vector = dyn_cast<VectorType>(type)) {
    if (vector.isScalable())
      os << "planning needs sizes that are known when compiling; that of '"
         << type << "' is not";
    else if (elementBytes(vector.getElementType()) <= 0)
      os << "planning needs elements of known size; that of '"
         << vector.getElementType() << "' in '" << type << "' is unknown";
    else if (shapedBytes(vector) < 0)
      os << "a vector of type '" << type << "' is larger than any memory";
    return text;
  }
  if (!isa<TensorType>(type))
    return "";
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    os << "planning needs ranked tensors; the size of '" << type
       << "' is unknown";
  else if (!tensor.hasStaticShape())
    os << "planning needs static shapes; the size of '" << type
       << "' is unknown";
  else if (tensor.getEncoding() &&
           tensor.getEncoding().getDialect().getNamespace() == "sparse_tensor")
    os << "planning needs dense tensors; the size of '" << type
       << "' depends on its contents";
  else if (elementBytes(tensor.getElementType()) <= 0)
    os << "planning needs elements of known size; that of '"
       << tensor.getElementType() << "' in '" << type << "' is unknown";
  else if (shapedBytes(tensor) < 0)
    os << "a tensor of type '" << type << "' is larger than any memory";
  return text;
}
