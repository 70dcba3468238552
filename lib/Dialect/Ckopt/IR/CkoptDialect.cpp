//===- CkoptDialect.cpp - the ckopt dialect, its attributes ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptKernelOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ckopt;

#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.cpp.inc"
#include "ckopt/Dialect/Ckopt/IR/CkoptEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "ckopt/Dialect/Ckopt/IR/CkoptAttributes.cpp.inc"

void CkoptDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ckopt/Dialect/Ckopt/IR/CkoptAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ckopt/Dialect/Ckopt/IR/CkoptKernelOps.cpp.inc"
      >();
  addNetworkOps();
}

//===----------------------------------------------------------------------===//
// Discardable attributes
//===----------------------------------------------------------------------===//

LogicalResult CkoptDialect::verifyOperationAttribute(Operation *op,
                                                     NamedAttribute attr) {
  if (attr.getName() == attrs::kArenaBytes &&
      !isa<IntegerAttr>(attr.getValue()))
    return op->emitError() << attr.getName() << " must be an integer (bytes)";
  // Some attributes are read without a look at their type; one of the wrong
  // type would be silently ignored, so it is an error here.
  if (attr.getName() == attrs::kKernel &&
      !isa<StringAttr, UnitAttr>(attr.getValue()))
    return op->emitError() << attr.getName() << " must be a string";
  if (attr.getName() == "ckopt.plan" && !isa<DictionaryAttr>(attr.getValue()))
    return op->emitError() << "ckopt.plan must be a dictionary of figures";
  if (attr.getName() == "ckopt.cost" &&
      !isa<FloatAttr, IntegerAttr>(attr.getValue()))
    return op->emitError() << "ckopt.cost must be a number (seconds)";
  if (attr.getName() == "ckopt.workspace" && !isa<IntegerAttr>(attr.getValue()))
    return op->emitError() << "ckopt.workspace must be an integer (bytes)";
  return success();
}

LogicalResult CkoptDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                     unsigned argIndex,
                                                     NamedAttribute attr) {
  if (attr.getName() == attrs::kRole) {
    auto role = dyn_cast<StringAttr>(attr.getValue());
    std::initializer_list<StringRef> roles = {
        roles::kInput,          roles::kTarget, roles::kParameter,
        roles::kFrozen,         roles::kState,  roles::kConstant,
        roles::kSeed,           roles::kStep,   roles::kLearningRate,
        roles::kOptimizerState, roles::kCopy};
    bool known = role && llvm::is_contained(roles, role.getValue());
    if (!known)
      return op->emitError()
             << "argument " << argIndex << ": unknown ckopt.role "
             << attr.getValue()
             << "; expected input, target, parameter, frozen, state, "
                "constant, seed, step, learning_rate, optimizer_state or copy";
  }
  if (attr.getName() == attrs::kWhole) {
    auto type = dyn_cast<TypeAttr>(attr.getValue());
    if (!type || !isa<RankedTensorType>(type.getValue()))
      return op->emitError() << "argument " << argIndex << ": "
                             << attr.getName() << " must be a tensor type";
  }
  if (attr.getName() == attrs::kShards && !isa<IntegerAttr>(attr.getValue()))
    return op->emitError() << "argument " << argIndex << ": " << attr.getName()
                           << " must be an integer";
  if ((attr.getName() == attrs::kName || attr.getName() == attrs::kInit) &&
      !isa<StringAttr>(attr.getValue()))
    return op->emitError() << "argument " << argIndex << ": " << attr.getName()
                           << " must be a string";
  return success();
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 ArrayRef<int64_t> order) {
  SmallVector<bool> seen(order.size());
  for (int64_t dim : order) {
    if (dim < 0 || dim >= int64_t(order.size()) || seen[dim])
      return emitError() << "layout must be a permutation of 0.."
                         << int64_t(order.size()) - 1;
    seen[dim] = true;
  }
  return success();
}

LogicalResult
LayoutAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                           function_ref<InFlightDiagnostic()> emitError) const {
  if (shape.size() != getOrder().size())
    return emitError() << "layout of rank " << getOrder().size()
                       << " on a tensor of rank " << shape.size();
  return success();
}

SmallVector<int64_t> ckopt::getPhysicalOrder(RankedTensorType type) {
  if (auto layout = dyn_cast_or_null<LayoutAttr>(type.getEncoding()))
    return SmallVector<int64_t>(layout.getOrder());
  return llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
}

SmallVector<int64_t> ckopt::getElementStrides(RankedTensorType type) {
  SmallVector<int64_t> strides(type.getRank());
  int64_t stride = 1;
  // The adaptor keeps a reference, so the order must outlive it.
  SmallVector<int64_t> order = getPhysicalOrder(type);
  for (int64_t dim : llvm::reverse(order)) {
    strides[dim] = stride;
    stride *= type.getDimSize(dim);
  }
  return strides;
}

bool ckopt::isRowMajor(RankedTensorType type) { return !type.getEncoding(); }

RankedTensorType ckopt::withOrder(RankedTensorType type,
                                  ArrayRef<int64_t> order) {
  Attribute encoding;
  if (!llvm::is_sorted(order))
    encoding = LayoutAttr::get(type.getContext(), order);
  return RankedTensorType::get(type.getShape(), type.getElementType(),
                               encoding);
}

int64_t ckopt::getByteSize(RankedTensorType type) {
  unsigned bits = type.getElementType().isIndex()
                      ? 64
                      : type.getElementType().getIntOrFloatBitWidth();
  return type.getNumElements() * ((bits + 7) / 8);
}

std::optional<SmallVector<int64_t>>
ckopt::broadcastShapes(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  if (a.size() < b.size())
    std::swap(a, b);
  SmallVector<int64_t> result(a);
  size_t lead = a.size() - b.size();
  for (auto [i, size] : llvm::enumerate(b)) {
    int64_t &dim = result[lead + i];
    if (dim == 1)
      dim = size;
    else if (size != 1 && size != dim)
      return std::nullopt;
  }
  return result;
}

bool ckopt::detail::equalUpToLayout(TypeRange a, TypeRange b) {
  if (a.size() != b.size())
    return false;
  for (auto [x, y] : llvm::zip(a, b)) {
    auto s = dyn_cast<ShapedType>(x), t = dyn_cast<ShapedType>(y);
    if (!s || !t || s.getElementType() != t.getElementType() ||
        s.getShape() != t.getShape())
      return false;
  }
  return true;
}

bool ckopt::detail::differOnlyInWidth(Type a, Type b) {
  auto isStored = [](Type type) {
    return type.isF32() || type.isBF16() || type.isF16();
  };
  return a == b || (isStored(a) && isStored(b) && (a.isF32() || b.isF32()));
}

bool ckopt::detail::equalUpToWidth(TypeRange a, TypeRange b) {
  if (a.size() != b.size())
    return false;
  for (auto [x, y] : llvm::zip(a, b)) {
    auto s = dyn_cast<ShapedType>(x), t = dyn_cast<ShapedType>(y);
    if (!s || !t || s.getShape() != t.getShape() ||
        !differOnlyInWidth(s.getElementType(), t.getElementType()))
      return false;
  }
  return true;
}
