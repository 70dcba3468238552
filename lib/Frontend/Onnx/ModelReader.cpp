//===- ModelReader.cpp - a protobuf model as plain data -------------------===//
#include "ModelFile.h"
#include "OnnxModel.h"
#include "ckopt/Support/Error.h"
#include "llvm/ADT/StringSet.h"
#include <new>

using namespace ckopt;
using namespace ckopt::onnx_frontend;

std::string Node::describe() const {
  return "node '" + name + "' (" + (domain.empty() ? "" : domain + ".") + op +
         ")";
}

namespace {
/// One file being read; the first error ends it.
class Reader {
public:
  Reader(std::shared_ptr<onnx::ModelProto> model, llvm::StringRef path)
      : proto(std::move(model)), path(path) {}

  llvm::Expected<Model> read();

private:
  llvm::Expected<NodeAttribute> readAttribute(const onnx::AttributeProto &from,
                                              const Node &node);
  llvm::Error readNode(const onnx::NodeProto &from);
  llvm::Error readInitializers();
  static ValueInfo readValueInfo(const onnx::ValueInfoProto &from);
  static std::string normalDomain(const std::string &domain) {
    return domain == "ai.onnx" ? "" : domain;
  }

  std::shared_ptr<onnx::ModelProto> proto;
  llvm::StringRef path;
  Model model;
};
} // namespace

llvm::Expected<NodeAttribute>
Reader::readAttribute(const onnx::AttributeProto &from, const Node &node) {
  NodeAttribute to;
  to.name = from.name();
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
  case Proto::TENSOR: {
    to.kind = NodeAttribute::TensorValue;
    if (onnx::TensorProto::STRING == from.t().data_type()) {
      to.kind = NodeAttribute::Other;
      break;
    }
    auto tensor = readTensor(from.t(), path,
                             "'" + path + "': " + node.describe() +
                                 ": attribute '" + from.name() + "'",
                             proto);
    if (!tensor)
      return tensor.takeError();
    to.tensor = std::move(*tensor);
    break;
  }
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

/// The strings of a list as Python prints it: "['', 'net']".
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

/// Reads `metadata_props` (field 9, newer than the schema that is compiled in).
static void readMetadata(const onnx::NodeProto &from, Node &node) {
  constexpr int metadataField = 9;
  const auto &unknown = from.unknown_fields();
  for (int i = 0; i < unknown.field_count(); ++i) {
    const auto &field = unknown.field(i);
    onnx::StringStringEntryProto entry;
    if (field.number() != metadataField ||
        field.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED ||
        !entry.ParseFromString(field.length_delimited()))
      continue;
    if (entry.key() == "pkg.torch.onnx.name_scopes")
      node.scopes = readPythonList(entry.value());
    else if (entry.key() == "pkg.torch.onnx.class_hierarchy")
      node.classes = readPythonList(entry.value());
  }
  // The last pair is the node of the exported program, no module.
  if (node.scopes.size() != node.classes.size() || node.scopes.empty()) {
    node.scopes.clear();
    node.classes.clear();
    return;
  }
  node.scopes.pop_back();
  node.classes.pop_back();
}

llvm::Error Reader::readNode(const onnx::NodeProto &from) {
  Node node;
  node.op = from.op_type();
  node.domain = normalDomain(from.domain());
  node.inputs.assign(from.input().begin(), from.input().end());
  node.outputs.assign(from.output().begin(), from.output().end());
  node.name = from.name();
  if (node.name.empty()) // nodes need no name: their first value has one
    for (const std::string &output : node.outputs)
      if (node.name.empty())
        node.name = output;
  for (const auto &attribute : from.attribute()) {
    auto read = readAttribute(attribute, node);
    if (!read)
      return read.takeError();
    node.attributes.push_back(std::move(*read));
  }
  readMetadata(from, node);
  model.graph.nodes.push_back(std::move(node));
  return llvm::Error::success();
}

llvm::Error Reader::readInitializers() {
  llvm::StringSet<> seen;
  for (const auto &from : proto->graph().initializer()) {
    if (from.name().empty() || !seen.insert(from.name()).second)
      return inputError(
          "'" + path + "': initializer '" + from.name() +
          (from.name().empty() ? "' has no name" : "' is there twice"));
    auto tensor = readTensor(
        from, path, "'" + path + "': initializer '" + from.name() + "'", proto);
    if (!tensor)
      return tensor.takeError();
    model.graph.initializers.push_back({from.name(), std::move(*tensor)});
  }
  if (proto->graph().sparse_initializer_size())
    return inputError("'" + path +
                      "' has sparse initializers, which ckopt does not read; "
                      "store them dense");
  return llvm::Error::success();
}

ValueInfo Reader::readValueInfo(const onnx::ValueInfoProto &from) {
  ValueInfo to;
  to.name = from.name();
  if (!from.type().has_tensor_type()) {
    to.typeText = "no tensor";
    return to;
  }
  const auto &tensor = from.type().tensor_type();
  to.dtype = dtypeFromOnnx(tensor.elem_type());
  to.typeText = onnxTypeName(tensor.elem_type());
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

llvm::Expected<Model> Reader::read() {
  model.irVersion = proto->ir_version();
  for (const auto &import : proto->opset_import())
    model.opsets[normalDomain(import.domain())] = import.version();
  for (const auto &function : proto->functions())
    model.functions.push_back(function.domain() + "." + function.name());
  const onnx::GraphProto &graph = proto->graph();
  if (llvm::Error error = readInitializers())
    return error;
  for (const auto &info : graph.input())
    model.graph.inputs.push_back(readValueInfo(info));
  for (const auto &info : graph.output())
    model.graph.outputs.push_back(readValueInfo(info));
  for (const auto &node : graph.node())
    if (llvm::Error error = readNode(node))
      return error;
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
