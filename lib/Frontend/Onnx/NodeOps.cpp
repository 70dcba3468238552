//===- NodeOps.cpp - building the ops of a node ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builds ops for handlers. All go through `build`, which infers, creates,
// verifies and folds, so that an invalid op in a malformed file is reported
// instead of failing an assertion.
//
//===----------------------------------------------------------------------===//
#include "NodeImporter.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"

#include <cmath>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

//===----------------------------------------------------------------------===//
// Types and attributes
//===----------------------------------------------------------------------===//

RankedTensorType NodeImporter::type(Value value) {
  return llvm::cast<RankedTensorType>(value.getType());
}
ArrayRef<int64_t> NodeImporter::shape(Value value) {
  return type(value).getShape();
}
Type NodeImporter::element(Value value) { return type(value).getElementType(); }
bool NodeImporter::isFloat(Value value) {
  return isa<FloatType>(element(value));
}
RankedTensorType NodeImporter::tensor(ArrayRef<int64_t> shape, Type t) {
  return RankedTensorType::get(shape, t);
}

NamedAttribute NodeImporter::named(StringRef name, mlir::Attribute value) {
  return b.getNamedAttr(name, value);
}
NamedAttribute NodeImporter::named(StringRef name, int64_t value) {
  return b.getNamedAttr(name, b.getI64IntegerAttr(value));
}
NamedAttribute NodeImporter::named(StringRef name, ArrayRef<int64_t> value) {
  return b.getNamedAttr(name, b.getDenseI64ArrayAttr(value));
}
NamedAttribute NodeImporter::namedF(StringRef name, double value) {
  return b.getNamedAttr(name, b.getF64FloatAttr(value));
}
NamedAttribute NodeImporter::flag(StringRef name) {
  return b.getNamedAttr(name, b.getUnitAttr());
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

/// Returns the result types that the op infers, or fails after a diagnostic.
static LogicalResult inferTypes(OperationName name, Location loc,
                                ValueRange operands, DictionaryAttr attributes,
                                SmallVectorImpl<Type> &types) {
  auto *interface = name.getInterface<InferTypeOpInterface>();
  if (!interface)
    return emitError(loc) << "'" << name << "' needs result types";
  // Ops without properties refuse every attribute.
  if (name.getOpPropertyByteSize() == 0)
    return interface->inferReturnTypes(loc.getContext(), loc, operands,
                                       attributes, nullptr, {}, types);
  SmallVector<std::max_align_t, 8> storage(
      size_t(name.getOpPropertyByteSize()) / sizeof(std::max_align_t) + 1);
  OpaqueProperties properties(storage.data());
  name.initOpProperties(properties, OpaqueProperties(nullptr));
  LogicalResult result = name.setOpPropertiesFromAttribute(
      name, properties, attributes, [&] { return emitError(loc); });
  if (succeeded(result))
    result = interface->inferReturnTypes(loc.getContext(), loc, operands,
                                         attributes, properties, {}, types);
  name.destroyOpProperties(properties);
  return result;
}

SmallVector<Value> NodeImporter::build(StringRef opName, ValueRange operands,
                                       NamedAttrs attributes, TypeRange types) {
  if (failed)
    return {};
  for (Value operand : operands)
    if (!operand)
      return {};
  OperationState state(loc, opName);
  SmallVector<Type> resultTypes(types);
  auto dictionary = b.getDictionaryAttr(attributes);
  if (types.empty() && mlir::failed(inferTypes(state.name, loc, operands,
                                               dictionary, resultTypes))) {
    failed = true;
    return {};
  }
  state.addOperands(operands);
  state.addTypes(resultTypes);
  state.addAttributes(attributes);
  Operation *op = b.create(state);
  if (mlir::failed(verify(op))) {
    failed = true;
    op->erase();
    return {};
  }
  SmallVector<Value> folded;
  if (succeeded(b.tryFold(op, folded)) && !folded.empty()) {
    op->erase();
    return folded;
  }
  return SmallVector<Value>(op->getResults());
}

bool NodeImporter::cutsBatch(int64_t axis, size_t operand) {
  BatchScaling *scaling = graph.getScaling();
  if (!scaling || !scaling->isBatch(*this, operand, axis))
    return false;
  unsupported() << "takes a part of dimension " << axis
                << ", which holds the batch: the batch size of this model "
                   "cannot be changed from "
                << scaling->getBase();
  return true;
}

bool NodeImporter::alignBatch(MutableArrayRef<Value> operands) {
  if (llvm::is_contained(operands, Value()))
    return false;
  BatchScaling *scaling = graph.getScaling();
  return !scaling || scaling->align(*this, operands);
}

Value NodeImporter::add(Value x, Value y) { return broadcast<AddOp>({x, y}); }
Value NodeImporter::sub(Value x, Value y) { return broadcast<SubOp>({x, y}); }
Value NodeImporter::mul(Value x, Value y) { return broadcast<MulOp>({x, y}); }
Value NodeImporter::div(Value x, Value y) { return broadcast<DivOp>({x, y}); }

Value NodeImporter::compare(ComparePredicate predicate, Value x, Value y) {
  return broadcast<CompareOp>(
      {x, y}, {named("predicate",
                     ComparePredicateAttr::get(b.getContext(), predicate))});
}

Value NodeImporter::select(Value condition, Value x, Value y) {
  return broadcast<SelectOp>({condition, x, y});
}

/// Converts a number to an integer's bits: NaN to 0, and numbers that do not
/// fit to the nearest that does.
static uint64_t integerBits(double value) {
  if (std::isnan(value))
    return 0;
  if (value >= 0x1p63)
    return value >= 0x1p64 ? UINT64_MAX : uint64_t(value);
  return uint64_t(int64_t(std::max(value, -0x1p63)));
}

Value NodeImporter::splat(double value, RankedTensorType type) {
  mlir::Attribute number;
  if (isa<FloatType>(type.getElementType()))
    number = b.getFloatAttr(type.getElementType(), value);
  else
    number =
        IntegerAttr::get(type.getElementType(),
                         APInt(type.getElementType().getIntOrFloatBitWidth(),
                               integerBits(value), /*isSigned=*/false,
                               /*implicitTrunc=*/true));
  return ConstantOp::create(b, loc, DenseElementsAttr::get(type, number));
}

Value NodeImporter::scalarOfType(double value, Type element) {
  return splat(value, tensor({}, element));
}

Value NodeImporter::scalar(double value, Value like) {
  return like ? scalarOfType(value, element(like)) : Value();
}

Value NodeImporter::intConstant(ArrayRef<int64_t> values) {
  return ConstantOp::create(
      b, loc,
      DenseElementsAttr::get(tensor({int64_t(values.size())}, b.getI64Type()),
                             values));
}

Value NodeImporter::constant(ArrayRef<double> values, ArrayRef<int64_t> shape,
                             Type element) {
  RankedTensorType type = tensor(shape, element);
  DenseElementsAttr attr;
  if (element.isF64()) {
    attr = DenseElementsAttr::get(type, values);
  } else if (element.isF32()) {
    std::vector<float> narrow(values.begin(), values.end());
    attr = DenseElementsAttr::get(type, ArrayRef<float>(narrow));
  } else if (auto floating = dyn_cast<FloatType>(element)) {
    SmallVector<APFloat> numbers;
    for (double value : values) {
      numbers.emplace_back(value);
      bool lost;
      numbers.back().convert(floating.getFloatSemantics(),
                             APFloat::rmNearestTiesToEven, &lost);
    }
    attr = DenseElementsAttr::get(type, numbers);
  } else {
    SmallVector<APInt> numbers;
    for (double value : values)
      numbers.emplace_back(element.getIntOrFloatBitWidth(), integerBits(value),
                           /*isSigned=*/false,
                           /*implicitTrunc=*/true);
    attr = DenseElementsAttr::get(type, numbers);
  }
  return ConstantOp::create(b, loc, attr);
}

Value NodeImporter::reshape(Value x, ArrayRef<int64_t> shape) {
  if (!x)
    return {};
  return make<ReshapeOp>({x}, {}, {tensor(shape, element(x))});
}

Value NodeImporter::transpose(Value x, ArrayRef<int64_t> permutation) {
  return make<TransposeOp>({x}, {named("permutation", permutation)});
}

Value NodeImporter::slice(Value x, ArrayRef<int64_t> starts,
                          ArrayRef<int64_t> sizes, ArrayRef<int64_t> steps) {
  Shape ones(starts.size(), 1);
  return make<SliceOp>({x}, {named("starts", starts), named("sizes", sizes),
                             named("steps", steps.empty() ? ones : steps)});
}

Value NodeImporter::sliceAxis(Value x, int64_t axis, int64_t start,
                              int64_t size) {
  if (!x)
    return {};
  Shape starts(size_t(rank(x)), 0), sizes(shape(x));
  starts[size_t(axis)] = start;
  sizes[size_t(axis)] = size;
  return slice(x, starts, sizes);
}

Value NodeImporter::concat(SmallVector<Value> inputs, int64_t axis) {
  return make<ConcatOp>(inputs, {named("axis", axis)});
}

Value NodeImporter::expand(Value x, ArrayRef<int64_t> shape) {
  if (!x)
    return {};
  return make<ExpandOp>({x}, {}, {tensor(shape, element(x))});
}

Value NodeImporter::cast(Value x, Type to) {
  if (!x || element(x) == to)
    return x;
  return make<CastOp>({x}, {}, {tensor(shape(x), to)});
}

Value NodeImporter::reduce(ReduceKind kind, Value x, ArrayRef<int64_t> axes,
                           bool keepdims) {
  if (axes.empty())
    return x;
  return make<ReduceOp>(
      {x}, {named("kind", ReduceKindAttr::get(b.getContext(), kind)),
            named("axes", axes), named("keepdims", b.getBoolAttr(keepdims))});
}

Value NodeImporter::matmul(Value x, Value y, bool transposeX, bool transposeY) {
  SmallVector<NamedAttribute> attributes;
  if (transposeX)
    attributes.push_back(flag("transpose_lhs"));
  if (transposeY)
    attributes.push_back(flag("transpose_rhs"));
  return make<MatMulOp>({x, y}, attributes);
}

Value NodeImporter::clip(Value x, double lo, double hi) {
  return make<ClipOp>({x}, {namedF("min", lo), namedF("max", hi)});
}

Value NodeImporter::iota(ArrayRef<int64_t> shape, Type element, int64_t axis,
                         double start, double delta) {
  return make<IotaOp>(
      {}, {named("axis", axis), namedF("start", start), namedF("delta", delta)},
      {tensor(shape, element)});
}

Value NodeImporter::addChannelBias(Value x, Value bias) {
  if (!bias || !x)
    return x;
  if (rank(bias) != 1 || shape(bias)[0] != shape(x)[1]) {
    error() << "the bias must have shape [" << shape(x)[1] << "]";
    return {};
  }
  Shape wide(size_t(rank(x)), 1);
  wide[1] = shape(bias)[0];
  if (rank(x) > 2)
    wide.erase(wide.begin()); // [C, 1, 1] broadcasts as well
  return add(x, reshape(bias, wide));
}
