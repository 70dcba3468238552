//===- GraphImporter.cpp - one pass from an ONNX graph to IR --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The graph is a list in dependency order; each node is built by its handler
// at once on static shapes, so shape arithmetic folds while it is made and
// later nodes find constants. Linear in the graph. A node whose operand failed
// is skipped silently, so that each cause is reported once.
//
//===----------------------------------------------------------------------===//
#include "GraphImporter.h"
#include "DataPlaces.h"
#include "Formulas.h"
#include "NodeImporter.h"
#include "Reader/Subgraphs.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

GraphImporter::GraphImporter(const Model &model, const ImportPlan &plan,
                             MLIRContext &context, ImportedModel &result,
                             BatchScaling *scaling)
    : model(model), plan(plan), result(result), scaling(scaling),
      builder(&context) {
  for (const Tensor &tensor : model.graph.initializers)
    initializers[tensor.name] = &tensor;
  for (const Node &node : model.graph.nodes)
    use(node);
  for (const ValueInfo &output : model.graph.outputs)
    used.insert(output.name);
  used.erase("");
}

/// Records the values that the node and its subgraphs read.
void GraphImporter::use(const Node &node) {
  for (const std::string &input : node.inputs)
    used.insert(input);
  for (const onnx_frontend::NodeAttribute &attribute : node.attributes) {
    if (!attribute.graph)
      continue;
    for (const Node &inner : attribute.graph->nodes)
      use(inner);
    for (const ValueInfo &output : attribute.graph->outputs)
      used.insert(output.name);
  }
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Type GraphImporter::elementType(DType dtype) {
  switch (dtype) {
  case DType::F64:
    return builder.getF64Type();
  case DType::F32:
    return plan.f64 ? Type(builder.getF64Type()) : builder.getF32Type();
  case DType::F16:
    return builder.getF16Type();
  case DType::BF16:
    return builder.getBF16Type();
  case DType::I64:
    return builder.getI64Type();
  case DType::I32:
    return builder.getI32Type();
  case DType::I16:
    return builder.getIntegerType(16);
  case DType::I8:
    return builder.getIntegerType(8);
  case DType::U64:
    return builder.getIntegerType(64, /*isSigned=*/false);
  case DType::U32:
    return builder.getIntegerType(32, /*isSigned=*/false);
  case DType::U16:
    return builder.getIntegerType(16, /*isSigned=*/false);
  case DType::U8:
    return builder.getIntegerType(8, /*isSigned=*/false);
  case DType::Bool:
    return builder.getI1Type();
  }
  llvm_unreachable("all types are listed");
}

bool GraphImporter::isDefined(StringRef name) const {
  return values.contains(name) || initializers.contains(name) ||
         sequences.contains(name);
}

const Sequence *GraphImporter::findSequence(StringRef name) const {
  auto found = sequences.find(name);
  return found == sequences.end() ? nullptr : &found->second;
}

void GraphImporter::bindSequence(StringRef name, Sequence sequence) {
  if (!name.empty())
    sequences[name] = std::move(sequence);
}

Value GraphImporter::lookup(StringRef name) {
  auto found = values.find(name);
  if (found != values.end())
    return found->second;
  auto initializer = initializers.find(name);
  if (initializer == initializers.end())
    return {};
  Location loc = NameLoc::get(builder.getStringAttr(name));
  const Tensor &tensor = *initializer->second;
  noteConstant(name);
  TensorBuilder b(builder, loc);
  Value value = tensor.nibbles
                    ? unpackNibbles(b, bytesOf(name), *tensor.nibbles)
                    : constant(loc, tensor.value, name);
  values[name] = value;
  return value;
}

void GraphImporter::bind(StringRef name, Value value) {
  if (!name.empty())
    values[name] = value;
}

/// Returns whether all elements have the same bytes.
static bool isSplat(const HostTensor &value) {
  int64_t size = dtypeSize(value.dtype());
  const char *bytes = static_cast<const char *>(value.rawData());
  for (int64_t i = 1; i < value.numElements(); ++i)
    if (std::memcmp(bytes, bytes + i * size, size_t(size)))
      return false;
  return value.numElements() > 0;
}

static DenseElementsAttr denseAttr(RankedTensorType type,
                                   const HostTensor &value, bool splat) {
  int64_t count = splat ? 1 : value.numElements();
  if (value.dtype() == DType::Bool) {
    SmallVector<bool> bits;
    for (int64_t i = 0; i < count; ++i)
      bits.push_back(value.getInt(i) != 0);
    return DenseElementsAttr::get(type, ArrayRef<bool>(bits));
  }
  if (count == 0)
    return DenseElementsAttr::get(type, ArrayRef<Attribute>());
  return DenseElementsAttr::getFromRawBuffer(
      type, ArrayRef<char>(static_cast<const char *>(value.rawData()),
                           size_t(count * dtypeSize(value.dtype()))));
}

Value GraphImporter::constant(Location loc, const HostTensor &given,
                              StringRef name) {
  HostTensor value = given;
  if (plan.f64 && value.dtype() == DType::F32)
    value = llvm::cantFail(value.convertTo(DType::F64)); // widening always fits
  auto type = RankedTensorType::get(value.shape(), elementType(value.dtype()));
  bool splat = isSplat(value);
  if (plan.hasOpenSize && !splat && value.sizeInBytes() > smallConstant())
    if (Value made = makeRange(builder, loc, type, value, /*floats=*/true))
      return made; // is not folded with others to a table
  // Integers stay in the IR for folding, up to the folder's own limit.
  constexpr int64_t integerLimit = 64 << 10;
  int64_t limit =
      ckopt::isFloat(value.dtype()) ? smallConstant() : integerLimit;
  if (!splat && value.sizeInBytes() > limit) {
    if (Value made = makeBand(builder, loc, type, value))
      return made;
    result.weights[name.str()] = value;
    return addArgument(type, name, roles::kConstant);
  }
  return ConstantOp::create(builder, loc, denseAttr(type, value, splat));
}

/// Returns whether numbers are so many that the step reads them as they are
/// stored, rather than in the form that they fold to.
static bool staysStored(const HostTensor &value) {
  constexpr int64_t kFolded = 1 << 10;
  return value.sizeInBytes() > kFolded;
}

void GraphImporter::noteConstant(StringRef name) {
  const HostTensor &value = initializers.lookup(name)->value;
  constexpr int64_t kLeast = 64; // fewer are sizes, axes and the like
  if (value.numElements() >= kLeast)
    result.constants.try_emplace(name.str(), value);
}

Value GraphImporter::bytesOf(StringRef name) {
  Value &bytes = nibbleBytes[name];
  if (bytes)
    return bytes;
  const HostTensor &value = initializers.lookup(name)->value;
  noteConstant(name);
  if (!staysStored(value))
    return bytes =
               constant(NameLoc::get(builder.getStringAttr(name)), value, name);
  result.weights[name.str()] = value;
  return bytes = addArgument(
             RankedTensorType::get(value.shape(), elementType(value.dtype())),
             name, roles::kConstant);
}

void GraphImporter::keepStored(StringRef name) {
  const HostTensor *value = initializer(name);
  if (!value || ckopt::isFloat(value->dtype()) || !staysStored(*value) ||
      isSplat(*value) || isa_and_nonnull<BlockArgument>(values.lookup(name)))
    return;
  noteConstant(name);
  result.weights[name.str()] = *value;
  values[name] = addArgument(
      RankedTensorType::get(value->shape(), elementType(value->dtype())), name,
      roles::kConstant);
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

Value GraphImporter::addArgument(RankedTensorType type, StringRef name,
                                 StringRef role, StringRef init) {
  Argument argument;
  argument.name = name.str();
  argument.removable = role != roles::kInput;
  auto note = [&](StringRef key, StringRef text) {
    argument.attrs.push_back(
        builder.getNamedAttr(key, builder.getStringAttr(text)));
  };
  note(attrs::kName, name);
  note(attrs::kRole, role);
  if (!init.empty())
    note(attrs::kInit, init);
  arguments.push_back(std::move(argument));
  return body->addArgument(type, NameLoc::get(builder.getStringAttr(name)));
}

StringRef GraphImporter::argumentName(Value value) const {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument ? StringRef(arguments[argument.getArgNumber()].name)
                  : StringRef();
}

std::string GraphImporter::noteNeeded(Value value) {
  std::set<std::string> names;
  SmallVector<Value> open{value};
  llvm::SmallPtrSet<Value, 16> seen;
  while (!open.empty()) {
    Value next = open.pop_back_val();
    if (!next || !seen.insert(next).second)
      continue;
    if (Operation *op = next.getDefiningOp()) {
      llvm::append_range(open, op->getOperands());
      continue;
    }
    StringRef name = argumentName(next);
    if (llvm::any_of(plan.inputs, [&](const DataInput &input) {
          return input.name == name;
        }))
      names.insert(name.str());
  }
  neededConstants.insert(names.begin(), names.end());
  return llvm::join(names, "', '");
}

void GraphImporter::setArgumentRole(Value value, StringRef role) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument)
    return;
  for (NamedAttribute &attr : arguments[argument.getArgNumber()].attrs)
    if (attr.getName() == attrs::kRole) {
      auto old = cast<StringAttr>(attr.getValue()).getValue();
      if (old == roles::kParameter && role == roles::kFrozen)
        remarkOnce("not trained: '" + arguments[argument.getArgNumber()].name +
                   "', a setting of the loss");
      attr = builder.getNamedAttr(attrs::kRole, builder.getStringAttr(role));
    }
}

Value GraphImporter::seed() {
  if (!seedArgument)
    seedArgument = addArgument(RankedTensorType::get({}, builder.getI64Type()),
                               "seed", roles::kSeed);
  return seedArgument;
}

Value GraphImporter::step() {
  if (!stepArgument)
    stepArgument = addArgument(RankedTensorType::get({}, builder.getI64Type()),
                               "step", roles::kStep);
  return stepArgument;
}

void GraphImporter::updateState(Value argument, Value value) {
  updates[argument] = value;
}

Value GraphImporter::currentState(Value argument) {
  auto found = updates.find(argument);
  return found == updates.end() ? argument : found->second;
}

void GraphImporter::createArguments() {
  for (const DataInput &input : plan.inputs)
    bind(input.name, addArgument(RankedTensorType::get(
                                     input.shape, elementType(input.dtype)),
                                 input.name, roles::kInput));
  for (const std::string &name : plan.weightOrder) {
    const WeightRole &role = plan.weights.find(name)->second;
    if (role.role.empty())
      continue;
    auto found = initializers.find(name);
    bool hasValue = found != initializers.end();
    auto type = RankedTensorType::get(role.shape, elementType(role.dtype));
    Value argument =
        addArgument(type, name, role.role, hasValue ? "" : role.init);
    bind(name, argument);
    if (hasValue) {
      HostTensor value = found->second->value;
      if (plan.f64 && value.dtype() == DType::F32)
        value = llvm::cantFail(value.convertTo(DType::F64));
      result.weights[name] = std::move(value);
      continue;
    }
    auto note = [&](StringRef key, int64_t number) {
      if (number)
        arguments.back().attrs.push_back(
            builder.getNamedAttr(key, builder.getI64IntegerAttr(number)));
    };
    note("ckopt.fan_in", role.fanIn);
    note("ckopt.fan_out", role.fanOut);
  }
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

/// Makes a location of the node's name, its operator, and the modules that hold
/// it.
static Location nodeLocation(const Node &node, MLIRContext *context) {
  Builder builder(context);
  Location modules = builder.getUnknownLoc();
  if (!node.scopes.empty()) {
    auto strings = [&](const std::vector<std::string> &list) {
      SmallVector<StringRef> refs(list.begin(), list.end());
      return builder.getStrArrayAttr(refs);
    };
    NamedAttribute entries[] = {
        builder.getNamedAttr("classes", strings(node.classes)),
        builder.getNamedAttr("scopes", strings(node.scopes))};
    modules =
        FusedLoc::get({modules}, builder.getDictionaryAttr(entries), context);
  }
  return NameLoc::get(builder.getStringAttr(node.name),
                      NameLoc::get(builder.getStringAttr(node.op), modules));
}

/// Returns whether all operands exist; a missing one was reported where it
/// failed.
bool GraphImporter::areOperandsReady(NodeImporter &importer) {
  bool ready = true;
  for (const std::string &input : importer.node.inputs) {
    if (input.empty())
      continue;
    if (!isDefined(input)) {
      importer.error() << "reads '" << input
                       << "', which no earlier node, input or initializer "
                          "defines";
      ready = false;
    } else if (!findSequence(input) && !lookup(input)) {
      ready = false;
    }
  }
  for (const std::string &output : importer.node.outputs)
    if (!output.empty() && isDefined(output)) {
      importer.error() << "defines '" << output << "' a second time";
      ready = false;
    }
  return ready;
}

bool GraphImporter::importNode(const Node &node) {
  Bindings unpinned = pinOperands(node);
  bool ok = importPlainNode(node);
  for (auto &[name, value] : unpinned)
    values[name] = value;
  return ok;
}

/// Returns the few numbers of a constant; floats as the bits of doubles.
static SmallVector<int64_t> knownNumbers(Value value, bool floats) {
  auto constant = value ? value.getDefiningOp<ConstantOp>() : ConstantOp();
  auto dense = constant ? dyn_cast<DenseElementsAttr>(constant.getValue())
                        : DenseElementsAttr();
  constexpr int64_t kMost = kFewBytes / int64_t(sizeof(int64_t));
  SmallVector<int64_t> numbers;
  if (!dense || dense.getNumElements() > kMost ||
      floats != isa<FloatType>(dense.getElementType()))
    return numbers;
  if (floats)
    for (const APFloat &number : dense.getValues<APFloat>())
      numbers.push_back(llvm::bit_cast<int64_t>(number.convertToDouble()));
  else
    for (const APInt &number : dense.getValues<APInt>())
      numbers.push_back(dense.getElementType().isInteger(1)
                            ? int64_t(number.getZExtValue())
                            : number.sextOrTrunc(64).getSExtValue());
  return numbers;
}

/// Two known integers of which a node makes a known bool are compared by it.
void GraphImporter::recordDifference(const Node &node) {
  if (node.inputs.size() != 2 || node.outputs.size() != 1)
    return;
  auto isBool = [](Value value) {
    return value && getElementTypeOrSelf(value).isInteger(1);
  };
  Value a = values.lookup(node.inputs[0]), b = values.lookup(node.inputs[1]);
  if (!isBool(values.lookup(node.outputs[0])) || isBool(a) || isBool(b))
    return;
  auto some = knownNumbers(a, false), others = knownNumbers(b, false);
  for (size_t i = 0; !some.empty() && !others.empty() &&
                     i < std::max(some.size(), others.size());
       ++i)
    differences[node.outputs[0]].push_back(some[i % some.size()] -
                                           others[i % others.size()]);
}

bool GraphImporter::importPlainNode(const Node &node) {
  NodeImporter importer(*this, node, nodeLocation(node, builder.getContext()));
  bool ready = areOperandsReady(importer);
  Handler handler = findHandler(node.domain, node.op, node.opset);
  if (ready && !handler) {
    // This is in a subgraph; unknown operators of the graph itself are reported
    // before.
    importer.unsupported() << "unsupported operator " << node.op << " (domain '"
                           << (node.domain.empty() ? "ai.onnx" : node.domain)
                           << "', opset " << node.opset << ")";
    ready = false;
  }
  bool ok = ready && succeeded(handler(importer)) && !importer.hasFailed();
  if (ready && !ok && !importer.hasFailed())
    importer.error() << "cannot be imported"; // so that no failure is silent
  for (auto [i, output] : llvm::enumerate(node.outputs)) {
    if (const Sequence *list = ok ? importer.sequenceResult(i) : nullptr) {
      bindSequence(output, *list);
      continue;
    }
    Value value = ok ? importer.result(i) : Value();
    if (ok && !value && importer.wants(i)) {
      importer.unsupported() << "result " << int64_t(i) << " ('" << output
                             << "') is not computed by ckopt";
      ok = false;
    }
    if (!output.empty())
      values[output] = value;
  }
  if (ok && scaling)
    scaling->record(importer);
  if (ok && plan.hasOpenSize)
    recordDifference(node);
  failed |= !ok;
  return ok;
}

LogicalResult GraphImporter::chargeUnrolled(NodeImporter &owner,
                                            int64_t count) {
  if (mlir::failed(checkUnrolled(owner, count)))
    return failure();
  unrolled += count;
  return success();
}

LogicalResult GraphImporter::checkUnrolled(NodeImporter &owner, int64_t count) {
  // Later phases take minutes beyond, within which nothing would be said.
  constexpr int64_t limit = 1 << 16, most = INT64_MAX / 2;
  const int64_t nodes = unrolled + std::min(count, most);
  if (nodes <= limit)
    return success();
  owner.unsupported()
      << "is unrolled, which makes " << nodes << " nodes"
      << (unrolled ? " with the loops before it" : "") << "; ckopt takes up to "
      << limit
      << ". Export the model for shorter sequences or fewer rounds, and train "
         "on pieces of the sequences";
  return failure();
}

FailureOr<std::vector<std::string>>
GraphImporter::importBody(NodeImporter &owner, const Graph &graph,
                          ArrayRef<std::string> arguments, StringRef prefix) {
  if (graph.inputs.size() != arguments.size()) {
    owner.error() << "its subgraph has " << int64_t(graph.inputs.size())
                  << " inputs instead of " << int64_t(arguments.size());
    return failure();
  }
  Renamer renamer([&](StringRef name) { return (prefix + name).str(); });
  for (auto [input, argument] : llvm::zip(graph.inputs, arguments))
    renamer.bind(input.name, argument);
  std::vector<Node> nodes;
  for (const Node &node : graph.nodes) {
    nodes.push_back(renamer.copy(node));
    use(nodes.back());
    if (nodes.back().scopes.empty()) {
      nodes.back().scopes = owner.node.scopes;
      nodes.back().classes = owner.node.classes;
    }
  }
  if (mlir::failed(
          chargeUnrolled(owner, nodes.size() + 1))) // a body may be empty
    return failure();
  std::vector<std::string> results;
  for (const ValueInfo &output : graph.outputs) {
    results.push_back(renamer.use(output.name));
    used.insert(results.back());
  }
  bool ok = true;
  for (const Node &node : nodes)
    ok &= importNode(node);
  for (const std::string &name : results) {
    if (!isDefined(name))
      owner.error() << "its subgraph does not define its output '" << name
                    << "'";
    ok &= isDefined(name) && (findSequence(name) || lookup(name));
  }
  if (ok)
    return results;
  owner.fail();
  return failure();
}

LogicalResult GraphImporter::collectResults() {
  llvm::SmallPtrSet<Value, 8> updated;
  for (auto &[argument, value] : updates)
    updated.insert(value);
  for (const ValueInfo &output : model.graph.outputs) {
    if (!isDefined(output.name)) {
      emitError(builder.getUnknownLoc())
          << "graph output '" << output.name << "' is not defined";
      return failure();
    }
    if (findSequence(output.name)) {
      sawUnsupported = true;
      emitError(builder.getUnknownLoc())
          << "graph output '" << output.name
          << "' is a sequence of tensors; ckopt's results are tensors";
      return failure();
    }
    Value value = lookup(output.name);
    if (!value)
      return failure();
    if (!updated.contains(value)) // other values are returned as updates below
      results.emplace_back(output.name, value);
  }
  if (results.empty()) {
    emitError(builder.getUnknownLoc()) << "the graph has no outputs";
    return failure();
  }
  return success();
}

LogicalResult GraphImporter::run() {
  MLIRContext *context = builder.getContext();
  Location loc = UnknownLoc::get(context);
  result.module = ModuleOp::create(loc);
  if (plan.hasOpenSize)
    (*result.module)->setAttr(kOpenSizeAttr, builder.getUnitAttr());
  builder.setInsertionPointToEnd(result.module->getBody());
  func = func::FuncOp::create(builder, loc, "forward",
                              builder.getFunctionType({}, {}));
  body = func.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  createArguments();
  for (const Node &node : model.graph.nodes)
    importNode(node);
  if (failed || mlir::failed(collectResults()))
    return failure();
  recordShapes(); // before dead values are removed
  recordConstants();
  if (wholeConstants && mlir::failed(addWholeNumbers())) {
    sawUnsupported = true;
    return failure();
  }
  settleUpdates();
  SmallVector<Value> returned;
  for (auto &[name, value] : results)
    returned.push_back(value);
  for (auto &[argument, value] : updates)
    returned.push_back(value);
  func::ReturnOp::create(builder, loc, returned);
  fuseGelu(func);
  fuseRowNorms(func);
  removeDeadOps();
  outlineLargeConstants();
  removeUnusedArguments();
  setDictionaries();
  return noteDataLimits(func, result.weights);
}

void GraphImporter::noteOpenValues() {
  SmallVector<NamedAttribute> notes;
  for (const auto &[name, value] : values) {
    if (!value || name.empty())
      continue;
    auto list = [&](ArrayRef<int64_t> numbers) -> Attribute {
      return builder.getDenseI64ArrayAttr(numbers);
    };
    notes.push_back(builder.getNamedAttr(
        name,
        builder.getArrayAttr(
            {list(cast<RankedTensorType>(value.getType()).getShape()),
             list(knownNumbers(value, false)), list(knownNumbers(value, true)),
             list(differences.lookup(name))})));
  }
  (*result.module)->setAttr(kOpenValuesAttr, builder.getDictionaryAttr(notes));
}

void GraphImporter::recordShapes() {
  if (plan.hasOpenSize)
    noteOpenValues();
  for (const auto &entry : values)
    if (entry.second)
      shapes[entry.first()] = SmallVector<int64_t>(
          cast<RankedTensorType>(entry.second.getType()).getShape());
}
