//===- NodeImporter.cpp - what a handler works with -----------------------===//
//
// Building goes through `build`, which infers, creates, verifies and folds: an
// op that a malformed file asks for is reported, never asserted on.
//
//===----------------------------------------------------------------------===//
#include "NodeImporter.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

NodeImporter::NodeImporter(GraphImporter &graph, const Node &node, Location loc)
    : graph(graph), node(node), loc(loc), opset(graph.opsetOf(node.domain)),
      b(graph.getBuilder()), results(node.outputs.size()) {}

InFlightDiagnostic NodeImporter::error() {
  failed = true;
  return emitError(loc);
}

InFlightDiagnostic NodeImporter::unsupported() {
  graph.sawUnsupported = true;
  return error();
}

//===----------------------------------------------------------------------===//
// Operands and results
//===----------------------------------------------------------------------===//

bool NodeImporter::has(size_t i) const {
  return i < node.inputs.size() && !node.inputs[i].empty();
}

Value NodeImporter::in(size_t i) {
  if (has(i))
    return graph.lookup(node.inputs[i]);
  if (!failed)
    error() << "operand " << int64_t(i) << " is missing";
  return {};
}

Value NodeImporter::optional(size_t i) {
  return has(i) ? graph.lookup(node.inputs[i]) : Value();
}

SmallVector<Value> NodeImporter::inputsFrom(size_t first) {
  SmallVector<Value> all;
  for (size_t i = first; i < numInputs(); ++i)
    all.push_back(in(i));
  return all;
}

bool NodeImporter::wants(size_t i) const {
  return i < node.outputs.size() && !node.outputs[i].empty() &&
         graph.isUsed(node.outputs[i]);
}

void NodeImporter::set(size_t i, Value value) {
  if (i < results.size())
    results[i] = value;
  if (!value && !failed)
    error() << "cannot be built"; // a helper failed without saying why
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

const NodeAttribute *NodeImporter::find(StringRef name) const {
  for (const onnx_frontend::NodeAttribute &attribute : node.attributes)
    if (attribute.name == name)
      return &attribute;
  return nullptr;
}

/// The attribute of that name if it has that kind.
#define CKOPT_FIND_ATTRIBUTE(KIND, TEXT, MISSING)                              \
  const onnx_frontend::NodeAttribute *found = find(name);                      \
  if (!found)                                                                  \
    return MISSING;                                                            \
  if (found->kind != NodeAttribute::KIND) {                                    \
    error() << "attribute '" << name << "' must be " << TEXT;                  \
    return MISSING;                                                            \
  }

int64_t NodeImporter::attrInt(StringRef name, int64_t missing) {
  CKOPT_FIND_ATTRIBUTE(Int, "an integer", missing)
  return found->i;
}
double NodeImporter::attrFloat(StringRef name, double missing) {
  CKOPT_FIND_ATTRIBUTE(Float, "a float", missing)
  return found->f;
}
std::string NodeImporter::attrString(StringRef name, StringRef missing) {
  CKOPT_FIND_ATTRIBUTE(String, "a string", missing.str())
  return found->s;
}
Shape NodeImporter::attrInts(StringRef name, ArrayRef<int64_t> missing) {
  CKOPT_FIND_ATTRIBUTE(Ints, "a list of integers", Shape(missing))
  return Shape(found->ints.begin(), found->ints.end());
}
std::vector<double> NodeImporter::attrFloats(StringRef name) {
  CKOPT_FIND_ATTRIBUTE(Floats, "a list of floats", {})
  return found->floats;
}
std::vector<std::string> NodeImporter::attrStrings(StringRef name) {
  CKOPT_FIND_ATTRIBUTE(Strings, "a list of strings", {})
  return found->strings;
}
#undef CKOPT_FIND_ATTRIBUTE

Type NodeImporter::attrType(StringRef name) {
  constexpr std::optional<DType> none;
  const std::optional<DType> table[] = {
      none,       DType::F32, DType::U8, DType::I8,   DType::U16, DType::I16,
      DType::I32, DType::I64, none,      DType::Bool, DType::F16, DType::F64,
      DType::U32, DType::U64, none,      none,        DType::BF16};
  int64_t number = attrInt(name, 0);
  if (number < 0 || number >= int64_t(std::size(table)) || !table[number]) {
    unsupported() << "element type " << number << " (attribute '" << name
                  << "') is not one of ckopt's";
    return {};
  }
  return graph.elementType(*table[number]);
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

static DenseElementsAttr constantOf(Value value) {
  DenseElementsAttr elements;
  if (value && matchPattern(value, m_Constant(&elements)))
    return elements;
  return {};
}

bool NodeImporter::isConstant(Value value) { return bool(constantOf(value)); }

std::optional<Shape> NodeImporter::intsOf(Value value, StringRef what) {
  if (!value)
    return std::nullopt;
  DenseElementsAttr elements = constantOf(value);
  auto integer = dyn_cast<IntegerType>(element(value));
  if (!elements) {
    unsupported() << what
                  << " must be a constant once the shapes are fixed, but "
                     "depends on data or on a weight";
    return std::nullopt;
  }
  if (!integer) {
    error() << what << " must hold integers";
    return std::nullopt;
  }
  Shape result;
  if (elements.getNumElements() > 1 << 20) {
    error() << what << " is too long";
    return std::nullopt;
  }
  for (const APInt &x : elements.getValues<APInt>())
    result.push_back(integer.getWidth() == 1 || integer.isUnsigned()
                         ? int64_t(x.getZExtValue())
                         : x.getSExtValue());
  return result;
}

std::optional<Shape> NodeImporter::constInts(size_t i) {
  return intsOf(in(i), "operand " + std::to_string(i) +
                           (has(i) ? " ('" + node.inputs[i] + "')" : ""));
}

std::optional<double> NodeImporter::scalarOf(Value value) {
  DenseElementsAttr elements = constantOf(value);
  if (!elements || !(elements.isSplat() || elements.getNumElements() == 1))
    return std::nullopt;
  if (isa<FloatType>(elements.getElementType())) {
    APFloat x = elements.getSplatValue<APFloat>();
    bool lost;
    x.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
    return x.convertToDouble();
  }
  auto integer = dyn_cast<IntegerType>(elements.getElementType());
  if (!integer)
    return std::nullopt;
  APInt x = elements.getSplatValue<APInt>();
  return integer.getWidth() == 1 || integer.isUnsigned()
             ? double(x.getZExtValue())
             : double(x.getSExtValue());
}

std::optional<double> NodeImporter::constScalar(size_t i) {
  Value value = in(i);
  if (!value)
    return std::nullopt;
  auto number = scalarOf(value);
  if (!number)
    unsupported() << "operand " << int64_t(i) << " ('" << node.inputs[i]
                  << "') must be one constant number";
  return number;
}

std::optional<int64_t> NodeImporter::normalAxis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) {
    error() << "axis " << axis << " is outside of rank " << rank;
    return std::nullopt;
  }
  return axis < 0 ? axis + rank : axis;
}

std::optional<Shape> NodeImporter::axes(size_t i, int64_t rank) {
  Shape given;
  if (hasAttr("axes")) {
    given = attrInts("axes");
  } else if (has(i)) {
    auto ints = constInts(i);
    if (!ints)
      return std::nullopt;
    given = *ints;
  } else {
    return std::nullopt;
  }
  for (int64_t &axis : given) {
    auto normal = normalAxis(axis, rank);
    if (!normal)
      return std::nullopt;
    axis = *normal;
  }
  llvm::sort(given);
  if (std::adjacent_find(given.begin(), given.end()) != given.end()) {
    error() << "an axis is named twice";
    return std::nullopt;
  }
  return given;
}

//===----------------------------------------------------------------------===//
// Types and attributes
//===----------------------------------------------------------------------===//

RankedTensorType NodeImporter::type(Value value) {
  return cast<RankedTensorType>(value.getType());
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

/// The result types that the op infers, or failure after a diagnostic.
static LogicalResult inferTypes(OperationName name, Location loc,
                                ValueRange operands, DictionaryAttr attributes,
                                SmallVectorImpl<Type> &types) {
  auto *interface = name.getInterface<InferTypeOpInterface>();
  if (!interface)
    return emitError(loc) << "'" << name << "' needs result types";
  if (name.getOpPropertyByteSize() == 0) // such ops refuse any attribute
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

Value NodeImporter::splat(double value, RankedTensorType type) {
  mlir::Attribute number;
  if (isa<FloatType>(type.getElementType()))
    number = b.getFloatAttr(type.getElementType(), value);
  else
    number =
        IntegerAttr::get(type.getElementType(),
                         APInt(type.getElementType().getIntOrFloatBitWidth(),
                               uint64_t(int64_t(value)), /*isSigned=*/false,
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
