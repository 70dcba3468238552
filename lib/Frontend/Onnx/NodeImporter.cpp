//===- NodeImporter.cpp - operands, attributes, constants of a node -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Export/TorchCalls.h"
#include "ckopt/Dialect/Ckopt/IR/Splat.h"
#include "ckopt/Dialect/Ckopt/Utils/SettingDiagnostic.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

NodeImporter::NodeImporter(GraphImporter &graph, const Node &node, Location loc)
    : graph(graph), node(node), loc(loc), opset(node.opset),
      b(graph.getBuilder()), results(node.outputs.size()),
      sequences(node.outputs.size()) {}

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
    return optional(i);
  if (!failed)
    error() << "operand " << int64_t(i) << " is missing";
  return {};
}

Value NodeImporter::optional(size_t i) {
  if (!has(i))
    return {};
  if (graph.findSequence(node.inputs[i])) {
    error() << "operand " << int64_t(i) << " ('" << node.inputs[i]
            << "') is a sequence instead of a tensor";
    return {};
  }
  Value value = graph.lookup(node.inputs[i]);
  bool stops = value && graph.trainMode() && isFloat(value) &&
               !isConstant(value) && llvm::is_contained(node.stopped, i);
  return stops ? stopGradient(*this, value) : value;
}

const Sequence *NodeImporter::sequence(size_t i) {
  const Sequence *found = has(i) ? graph.findSequence(node.inputs[i]) : nullptr;
  if (!found && !failed)
    error() << "operand " << int64_t(i) << " must be a sequence";
  return found;
}

void NodeImporter::setSequence(size_t i, Sequence sequence) {
  if (i < sequences.size())
    sequences[i] = std::move(sequence);
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
    error() << "cannot be built"; // a helper failed without a message
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

/// Returns the attribute of that name if it has that kind.
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
    unsupported() << "element type " << onnxTypeName(int32_t(number))
                  << " (attribute '" << name << "') is not one of ckopt's";
    return {};
  }
  return graph.elementType(*table[number]);
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

DenseElementsAttr NodeImporter::constantOf(Value value) {
  DenseElementsAttr elements;
  if (value && matchPattern(value, m_Constant(&elements)))
    return elements;
  return {};
}

bool NodeImporter::isConstant(Value value) { return bool(constantOf(value)); }

void NodeImporter::needConstant(Value value, StringRef what) {
  std::string inputs = graph.noteNeeded(value);
  InFlightDiagnostic message = unsupported();
  message << what << " must be a constant once the shapes are fixed, but "
          << "depends on "
          << (inputs.empty() ? "a weight" : "data: '" + inputs + "'");
  if (!inputs.empty())
    message << " (" + Setting("constant") +
                   " fixes an input to the value in the data)";
}

std::optional<Shape> NodeImporter::intsOf(Value value, StringRef what) {
  if (!value)
    return std::nullopt;
  DenseElementsAttr elements = constantOf(value);
  auto integer = dyn_cast<IntegerType>(element(value));
  if (!elements) {
    needConstant(value, what);
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

std::optional<std::vector<double>> NodeImporter::doublesOf(Value value,
                                                           StringRef what) {
  DenseElementsAttr elements = constantOf(value);
  if (!value || !elements) {
    if (value)
      needConstant(value, what);
    return std::nullopt;
  }
  std::vector<double> result;
  if (elements.getNumElements() > 1 << 20) {
    error() << what << " is too long";
    return std::nullopt;
  }
  if (isa<FloatType>(elements.getElementType())) {
    for (APFloat x : elements.getValues<APFloat>()) {
      bool lost;
      x.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
      result.push_back(x.convertToDouble());
    }
    return result;
  }
  auto integer = llvm::cast<IntegerType>(elements.getElementType());
  for (const APInt &x : elements.getValues<APInt>())
    result.push_back(integer.getWidth() == 1 || integer.isUnsigned()
                         ? double(x.getZExtValue())
                         : double(x.getSExtValue()));
  return result;
}

std::optional<double> NodeImporter::scalarOf(Value value) {
  return splatNumber(value);
}

std::optional<double> NodeImporter::constScalar(size_t i) {
  Value value = in(i);
  if (!value)
    return std::nullopt;
  auto number = scalarOf(value);
  if (number)
    return number;
  std::string what =
      "operand " + std::to_string(i) + " ('" + node.inputs[i] + "')";
  if (isConstant(value))
    error() << what << " must be one number";
  else
    needConstant(value, what);
  return std::nullopt;
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
