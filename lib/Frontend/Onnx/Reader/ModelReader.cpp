//===- ModelReader.cpp - a protobuf model as plain data -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ModelFile.h"
#include "Subgraphs.h"
#include "ckopt/Base/PrintableText.h"
#include "ckopt/Support/Error.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include <new>

using namespace ckopt;
using namespace ckopt::onnx_frontend;

std::string Node::describe() const {
  return "node '" + name + "' (" + (domain.empty() ? "" : domain + ".") + op +
         ")";
}

int64_t Node::intAttribute(llvm::StringRef attribute) const {
  for (const NodeAttribute &known : attributes)
    if (known.name == attribute)
      return known.i;
  return 0;
}

namespace {
using OpsetTable = std::map<std::string, int64_t>;

/// Reads one file; the first error ends it.
class Reader {
public:
  Reader(std::shared_ptr<onnx::ModelProto> model, llvm::StringRef path)
      : proto(std::move(model)), keeper(proto), path(path) {}

  llvm::Expected<Model> read();

private:
  llvm::Expected<NodeAttribute> readAttribute(const onnx::AttributeProto &from,
                                              const Node &node,
                                              const OpsetTable &opsets);
  llvm::Expected<HostTensor> readNumbers(const onnx::TensorProto &from,
                                         const llvm::Twine &what,
                                         bool nibbles = false);
  llvm::Error readTensorAttribute(const onnx::AttributeProto &from,
                                  const Node &node, NodeAttribute &to);
  llvm::Error readNode(const onnx::NodeProto &from, const OpsetTable &opsets,
                       std::vector<Node> &nodes);
  llvm::Error readGraph(const onnx::GraphProto &from, const OpsetTable &opsets,
                        Graph &graph);
  llvm::Error readFunction(const onnx::FunctionProto &from);
  llvm::Error readInitializers(const onnx::GraphProto &from, Graph &graph);
  llvm::Error expand();
  static ValueInfo readValueInfo(const onnx::ValueInfoProto &from);
  static std::string normalDomain(const std::string &domain) {
    return domain == "ai.onnx" ? "" : domain;
  }

  std::shared_ptr<onnx::ModelProto> proto;
  std::shared_ptr<const void> keeper; ///< owns the message being read
  llvm::StringRef path;
  Model model;
  std::vector<Function> functions;
};
} // namespace

/// Calls `visit` with each text or message in field `number`, for fields that
/// are newer than the schema that is compiled in.
static void
forEachUnknown(const google::protobuf::Message &from, int number,
               llvm::function_ref<void(const std::string &)> visit) {
  const auto &unknown = from.GetReflection()->GetUnknownFields(from);
  for (int i = 0; i < unknown.field_count(); ++i)
    if (unknown.field(i).number() == number &&
        unknown.field(i).type() ==
            google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
      visit(unknown.field(i).length_delimited());
}

llvm::Expected<HostTensor> Reader::readNumbers(const onnx::TensorProto &from,
                                               const llvm::Twine &what,
                                               bool nibbles) {
  if (std::string file = externalFile(from, path); !file.empty())
    model.externalFiles.insert(std::move(file));
  return readTensor(from, path, what, keeper, nibbles);
}

llvm::Error Reader::readTensorAttribute(const onnx::AttributeProto &from,
                                        const Node &node, NodeAttribute &to) {
  if (onnx::TensorProto::STRING == from.t().data_type()) {
    to.kind = NodeAttribute::Other;
    return llvm::Error::success();
  }
  to.kind = NodeAttribute::TensorValue;
  auto tensor = readNumbers(from.t(), "'" + path + "': " + node.describe() +
                                          ": attribute '" + from.name() + "'");
  if (!tensor)
    return tensor.takeError();
  to.tensor = std::move(*tensor);
  return llvm::Error::success();
}

llvm::Expected<NodeAttribute>
Reader::readAttribute(const onnx::AttributeProto &from, const Node &node,
                      const OpsetTable &opsets) {
  NodeAttribute to;
  to.name = from.name();
  to.reference = from.ref_attr_name();
  using Proto = onnx::AttributeProto;
  auto type = from.type();
  if (type == Proto::UNDEFINED) { // files before IR version 3 leave it out
    type = from.has_f()          ? Proto::FLOAT
           : from.has_i()        ? Proto::INT
           : from.has_s()        ? Proto::STRING
           : from.has_t()        ? Proto::TENSOR
           : from.floats_size()  ? Proto::FLOATS
           : from.ints_size()    ? Proto::INTS
           : from.strings_size() ? Proto::STRINGS
           : from.has_g()        ? Proto::GRAPH
                                 : Proto::UNDEFINED;
  }
  switch (type) {
  case Proto::FLOAT:
    to.kind = NodeAttribute::Float;
    to.f = from.f();
    break;
  case Proto::INT:
    to.kind = NodeAttribute::Int;
    to.i = from.i();
    break;
  case Proto::STRING:
    to.kind = NodeAttribute::String;
    to.s = from.s();
    break;
  case Proto::TENSOR:
    if (llvm::Error error = readTensorAttribute(from, node, to))
      return std::move(error);
    break;
  case Proto::GRAPH:
    to.kind = NodeAttribute::Subgraph;
    to.graph = std::make_shared<Graph>();
    if (llvm::Error error = readGraph(from.g(), opsets, *to.graph))
      return std::move(error);
    break;
  case Proto::FLOATS:
    to.kind = NodeAttribute::Floats;
    to.floats.assign(from.floats().begin(), from.floats().end());
    break;
  case Proto::INTS:
    to.kind = NodeAttribute::Ints;
    to.ints.assign(from.ints().begin(), from.ints().end());
    break;
  case Proto::STRINGS:
    to.kind = NodeAttribute::Strings;
    to.strings.assign(from.strings().begin(), from.strings().end());
    break;
  default:
    break;
  }
  return to;
}

/// Parses a list of strings as Python prints it: "['', 'net']".
static std::vector<std::string> readPythonList(llvm::StringRef text) {
  std::vector<std::string> items;
  if (!text.consume_front("[") || !text.consume_back("]"))
    return items;
  while (!text.empty()) {
    char quote = text.front();
    size_t end = quote == '\'' || quote == '"' ? text.find(quote, 1)
                                               : llvm::StringRef::npos;
    if (end == llvm::StringRef::npos)
      return {};
    items.push_back(text.slice(1, end).str());
    text = text.drop_front(end + 1).ltrim(", ");
  }
  return items;
}

/// Returns the lines of a traceback that name a place, without the lines of
/// Python between them.
static std::vector<std::string> readFrames(llvm::StringRef text) {
  std::vector<std::string> frames;
  for (llvm::StringRef line : llvm::split(text, '\n'))
    if (line = line.trim(); line.starts_with("File \""))
      frames.push_back(printable(line.str()));
  return frames;
}

/// Calls `take(key, value)` for each entry of `metadata_props`.
template <typename Proto, typename Take>
static void forEachMetadata(const Proto &from, int fieldNumber, Take take) {
  forEachUnknown(from, fieldNumber, [&](const std::string &bytes) {
    onnx::StringStringEntryProto entry;
    if (entry.ParseFromString(bytes))
      take(entry.key(), entry.value());
  });
}

static void readMetadata(const onnx::NodeProto &from, Node &node) {
  constexpr int metadataField = 9, overloadField = 8;
  forEachUnknown(from, overloadField, [&](const std::string &text) {
    node.overload = printable(text);
  });
  forEachMetadata(from, metadataField,
                  [&](const std::string &key, const std::string &value) {
                    // Names in these values get into messages, which have
                    // lines.
                    if (key == "pkg.torch.onnx.name_scopes")
                      node.scopes = readPythonList(printable(value));
                    else if (key == "pkg.torch.onnx.class_hierarchy")
                      node.classes = readPythonList(printable(value));
                    else if (key == "pkg.torch.onnx.fx_node")
                      node.fxNode = printable(value);
                    else if (key == "pkg.onnxscript.rewriter.rule_name")
                      node.rewriteRule = printable(value);
                    else if (key == "pkg.torch.onnx.stack_trace")
                      node.frames = readFrames(value);
                  });
  node.inRegion =
      !node.frames.empty() &&
      llvm::StringRef(node.frames[0]).starts_with("File \"<eval_with_key>");
  // The last pair is the call of the exported program, not a module.
  if (node.scopes.size() != node.classes.size() || node.scopes.empty()) {
    node.scopes.clear();
    node.classes.clear();
    return;
  }
  node.fxName = node.scopes.back();
  node.fxTarget = node.classes.back();
  node.scopes.pop_back();
  node.classes.pop_back();
}

llvm::Error Reader::readNode(const onnx::NodeProto &from,
                             const OpsetTable &opsets,
                             std::vector<Node> &nodes) {
  Node node;
  node.op = from.op_type();
  node.domain = normalDomain(from.domain());
  auto opset = opsets.find(node.domain);
  node.opset = opset == opsets.end() ? 1 : opset->second;
  node.inputs.assign(from.input().begin(), from.input().end());
  node.outputs.assign(from.output().begin(), from.output().end());
  node.name = from.name();
  // Nodes may be unnamed, but their first value has a name.
  if (node.name.empty())
    for (const std::string &output : node.outputs)
      if (node.name.empty())
        node.name = output;
  for (const auto &attribute : from.attribute()) {
    auto read = readAttribute(attribute, node, opsets);
    if (!read)
      return read.takeError();
    node.attributes.push_back(std::move(*read));
  }
  readMetadata(from, node);
  nodes.push_back(std::move(node));
  return llvm::Error::success();
}

llvm::Error Reader::readInitializers(const onnx::GraphProto &from,
                                     Graph &graph) {
  llvm::StringSet<> seen;
  for (const auto &initializer : from.initializer()) {
    const std::string &name = initializer.name();
    if (name.empty() || !seen.insert(name).second)
      return inputError("'" + path + "': initializer '" + name +
                        (name.empty() ? "' has no name" : "' is there twice"));
    std::string what = ("'" + path + "': initializer '" + name + "'").str();
    auto nibbles = readNibbles(initializer, what);
    if (!nibbles)
      return nibbles.takeError();
    auto tensor = readNumbers(initializer, what, /*nibbles=*/true);
    if (!tensor)
      return tensor.takeError();
    graph.initializers.push_back(
        {name, std::move(*tensor), std::move(*nibbles)});
  }
  if (from.sparse_initializer_size())
    return inputError("'" + path +
                      "' has sparse initializers, which ckopt does not read; "
                      "store them dense");
  return llvm::Error::success();
}

/// Returns "sequence(tensor(float))" and the like, for messages.
static std::string typeText(const onnx::TypeProto &type) {
  switch (type.value_case()) {
  case onnx::TypeProto::kTensorType:
    return onnxTypeName(type.tensor_type().elem_type());
  case onnx::TypeProto::kSequenceType:
    return "sequence(" + typeText(type.sequence_type().elem_type()) + ")";
  case onnx::TypeProto::kOptionalType:
    return "optional(" + typeText(type.optional_type().elem_type()) + ")";
  case onnx::TypeProto::kMapType:
    return "map(" + onnxTypeName(type.map_type().key_type()) + ", " +
           typeText(type.map_type().value_type()) + ")";
  case onnx::TypeProto::kSparseTensorType:
    return "sparse_tensor(" +
           onnxTypeName(type.sparse_tensor_type().elem_type()) + ")";
  default:
    return "no tensor";
  }
}

ValueInfo Reader::readValueInfo(const onnx::ValueInfoProto &from) {
  ValueInfo to;
  to.name = from.name();
  to.typeText = typeText(from.type());
  if (!from.type().has_tensor_type())
    return to;
  const auto &tensor = from.type().tensor_type();
  to.dtype = dtypeFromOnnx(tensor.elem_type());
  if (!tensor.has_shape())
    return to;
  to.shape.emplace();
  for (const auto &dim : tensor.shape().dim()) {
    Dim size;
    if (dim.has_dim_value())
      size.size = dim.dim_value();
    else
      size.symbol = dim.dim_param();
    to.shape->push_back(std::move(size));
  }
  return to;
}

llvm::Error Reader::readGraph(const onnx::GraphProto &from,
                              const OpsetTable &opsets, Graph &graph) {
  if (llvm::Error error = readInitializers(from, graph))
    return error;
  for (const auto &info : from.input())
    graph.inputs.push_back(readValueInfo(info));
  for (const auto &info : from.output())
    graph.outputs.push_back(readValueInfo(info));
  for (const auto &node : from.node())
    if (llvm::Error error = readNode(node, opsets, graph.nodes))
      return error;
  return llvm::Error::success();
}

llvm::Error Reader::readFunction(const onnx::FunctionProto &from) {
  Function function;
  function.domain = normalDomain(from.domain());
  function.name = from.name();
  function.inputs.assign(from.input().begin(), from.input().end());
  function.outputs.assign(from.output().begin(), from.output().end());
  OpsetTable opsets = model.opsets;
  for (const auto &import : from.opset_import())
    opsets[normalDomain(import.domain())] = import.version();
  constexpr int defaultsField = 11, overloadField = 13;
  forEachUnknown(from, overloadField, [&](const std::string &text) {
    function.overload = printable(text);
  });
  llvm::Error error = llvm::Error::success();
  Node owner; // for messages
  owner.name = owner.op = function.name;
  forEachUnknown(from, defaultsField, [&](const std::string &bytes) {
    auto attribute = std::make_shared<onnx::AttributeProto>();
    if (error || !attribute->ParseFromString(bytes))
      return;
    keeper = attribute;
    if ((error = checkNames(path, *attribute)))
      return;
    auto read = readAttribute(*attribute, owner, opsets);
    keeper = proto;
    if (read)
      function.defaults.push_back(std::move(*read));
    else
      error = read.takeError();
  });
  if (error)
    return error;
  for (const auto &node : from.node())
    if (llvm::Error failed = readNode(node, opsets, function.nodes))
      return failed;
  functions.push_back(std::move(function));
  return llvm::Error::success();
}

/// Gives the values of all subgraphs names of their own, then expands calls of
/// functions.
llvm::Error Reader::expand() {
  llvm::StringSet<> taken;
  for (const ValueInfo &input : model.graph.inputs)
    taken.insert(input.name);
  for (const Tensor &initializer : model.graph.initializers)
    taken.insert(initializer.name);
  for (const Node &node : model.graph.nodes)
    for (const std::string &output : node.outputs)
      taken.insert(output);
  auto &initializers = model.graph.initializers;
  separateSubgraphs(model.graph.nodes, taken, initializers);
  for (Function &function : functions)
    separateSubgraphs(function.nodes, taken, initializers);
  return withContext(expandFunctions(model.graph.nodes, functions, taken),
                     "'" + path + "'");
}

llvm::Expected<Model> Reader::read() {
  model.irVersion = proto->ir_version();
  model.producer = proto->producer_name();
  for (const auto &import : proto->opset_import())
    model.opsets[normalDomain(import.domain())] = import.version();
  if (llvm::Error error = readGraph(proto->graph(), model.opsets, model.graph))
    return std::move(error);
  constexpr int metadataField = 16;
  forEachMetadata(proto->graph(), metadataField,
                  [&](const std::string &key, const std::string &value) {
                    model.graph.metadata[key] = value;
                  });
  constexpr int valueMetadataField = 4;
  for (const auto &value : proto->graph().value_info())
    forEachMetadata(value, valueMetadataField,
                    [&](const std::string &key, const std::string &from) {
                      if (key == "pkg.onnxscript.optimizer.folded_from")
                        model.graph.metadata[key + " " + value.name()] =
                            printable(from);
                    });
  for (const auto &function : proto->functions())
    if (llvm::Error error = readFunction(function))
      return std::move(error);
  if (llvm::Error error = expand())
    return std::move(error);
  return std::move(model);
}

llvm::Expected<Model> onnx_frontend::readModel(llvm::StringRef path) {
  auto proto = parseModelFile(path);
  if (!proto)
    return proto.takeError();
  try {
    return Reader(*proto, path).read();
  } catch (const std::bad_alloc &) {
    return inputError("'" + path + "' does not fit into memory");
  }
}
