//===- Corpus.cpp - ONNX backend test folders -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads the folders with the importer's own reader of tensors. The families
// that ckopt refuses by design follow from types and operators in the file, not
// from names of tests; a case of a family that ckopt does compute counts as any
// other.
//
//===----------------------------------------------------------------------===//
#include "Corpus.h"
#include "../../lib/Frontend/Onnx/Reader/ModelFile.h"
#include "ckopt/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <set>

using namespace ckopt;
using namespace conformance;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

static std::string join(llvm::StringRef folder, const llvm::Twine &name) {
  llvm::SmallString<128> full(folder);
  path::append(full, name);
  return full.str().str();
}

/// Adds the case in `folder`, or those below it.
static llvm::Error collect(llvm::StringRef folder, const std::string &name,
                           std::vector<Case> &cases) {
  std::vector<std::string> children;
  std::error_code code;
  for (fs::directory_iterator it(folder, code), end; it != end && !code;
       it.increment(code))
    if (fs::is_directory(it->path()))
      children.push_back(path::filename(it->path()).str());
  if (code)
    return inputError("cannot read '" + folder + "': " + code.message());
  auto number = [](llvm::StringRef child) {
    int64_t value = -1;
    if (child.consume_front("test_data_set_") && child.getAsInteger(10, value))
      value = -1;
    return value;
  };
  llvm::sort(children, [&](const std::string &a, const std::string &b) {
    return std::pair(number(a), a) < std::pair(number(b), b);
  });
  if (fs::exists(join(folder, "model.onnx"))) {
    Case found{name, join(folder, "model.onnx"), {}};
    for (const std::string &child : children)
      if (number(child) >= 0)
        found.dataSets.push_back(join(folder, child));
    cases.push_back(std::move(found));
    return llvm::Error::success();
  }
  for (const std::string &child : children)
    if (llvm::Error error =
            collect(join(folder, child),
                    name.empty() ? child : name + "/" + child, cases))
      return error;
  return llvm::Error::success();
}

llvm::Expected<std::vector<Case>> conformance::findCases(llvm::StringRef root) {
  std::vector<Case> cases;
  llvm::StringRef trimmed = root.rtrim('/');
  bool single = fs::exists(join(root, "model.onnx"));
  if (llvm::Error error = collect(
          root, single ? path::filename(trimmed).str() : std::string(), cases))
    return std::move(error);
  return cases;
}

//===----------------------------------------------------------------------===//
// Families
//===----------------------------------------------------------------------===//

/// Of an element type (TensorProto.DataType, by number: newer ones than the
/// schema that is compiled in have no names here).
static const char *familyOfType(int64_t type) {
  switch (type) {
  case 8:
    return "strings";
  case 17:
  case 18:
  case 19:
  case 20:
  case 23:
  case 24:
    return "float8 and float4";
  case 21:
  case 22:
  case 25:
  case 26:
    return "integers of 2 and 4 bits";
  default:
    return "";
  }
}

static std::string familyOfOp(const onnx::NodeProto &node) {
  return llvm::StringSwitch<const char *>(node.op_type())
      .Cases({"Optional", "OptionalGetElement", "OptionalHasElement"},
             "optionals and maps")
      .Cases({"DictVectorizer", "CastMap", "ZipMap"}, "optionals and maps")
      .Case("ImageDecoder", "image decoding")
      .Cases({"Det", "MaxRoiPool", "TfIdfVectorizer"},
             "operators that no network in training has")
      .Cases(
          {"StringNormalizer", "StringConcat", "StringSplit", "RegexFullMatch"},
          "strings")
      .Cases({"NonZero", "Unique", "NonMaxSuppression", "Compress"},
             "output shapes that depend on data")
      .Default("");
}

static std::string familyOfValue(const onnx::TypeProto &type) {
  if (type.has_sequence_type())
    return "sequences";
  if (type.has_map_type() || type.has_optional_type())
    return "optionals and maps";
  return type.has_tensor_type() ? familyOfType(type.tensor_type().elem_type())
                                : "";
}

namespace {
/// Walks graphs, subgraphs and functions; the first family found stays.
class FamilyFinder {
public:
  void visit(const onnx::GraphProto &graph);
  void visit(const onnx::NodeProto &node);
  std::string family;
  bool narrow = false;
  std::set<std::string> functions; ///< domains of the model's own functions

private:
  void note(const std::string &found) {
    if (family.empty())
      family = found;
  }
  void noteType(int64_t type) {
    note(familyOfType(type));
    narrow |= type == onnx::TensorProto::FLOAT16 ||
              type == onnx::TensorProto::BFLOAT16;
  }
};
} // namespace

void FamilyFinder::visit(const onnx::NodeProto &node) {
  note(familyOfOp(node));
  if (!node.domain().empty() && node.domain() != "ai.onnx" &&
      !functions.count(node.domain()))
    note("operators of domain " + node.domain());
  for (const auto &attribute : node.attribute()) {
    if (attribute.has_g())
      visit(attribute.g());
    if (attribute.has_t())
      noteType(attribute.t().data_type());
    if (attribute.name() == "value_string" ||
        attribute.name() == "value_strings")
      note("strings");
    if (attribute.has_i() &&
        llvm::StringSwitch<bool>(attribute.name())
            .Cases({"to", "dtype", "output_dtype", "softmax_precision"}, true)
            .Default(false))
      noteType(attribute.i());
  }
}

void FamilyFinder::visit(const onnx::GraphProto &graph) {
  for (const auto *list : {&graph.input(), &graph.output()})
    for (const auto &value : *list) {
      note(familyOfValue(value.type()));
      if (value.type().has_tensor_type())
        noteType(value.type().tensor_type().elem_type());
    }
  for (const auto &tensor : graph.initializer())
    noteType(tensor.data_type());
  for (const auto &node : graph.node())
    visit(node);
}

//===----------------------------------------------------------------------===//
// Signatures and data
//===----------------------------------------------------------------------===//

static Port portOf(const onnx::ValueInfoProto &value) {
  Port port;
  port.name = value.name();
  port.isTensor = value.type().has_tensor_type();
  if (!port.isTensor)
    return port;
  auto type =
      onnx_frontend::dtypeFromOnnx(value.type().tensor_type().elem_type());
  port.isFloat = type && isFloat(*type);
  port.isWide = type == DType::F32 || type == DType::F64;
  return port;
}

llvm::Expected<Signature> conformance::readSignature(const std::string &model) {
  auto proto = onnx_frontend::parseModelFile(model);
  if (!proto)
    return proto.takeError();
  const onnx::GraphProto &graph = (*proto)->graph();
  Signature result;
  for (const auto &input : graph.input()) {
    result.inputs.push_back(portOf(input));
    for (const auto &tensor : graph.initializer())
      result.inputs.back().hasInitializer |= tensor.name() == input.name();
  }
  for (const auto &output : graph.output())
    result.outputs.push_back(portOf(output));
  FamilyFinder finder;
  for (const auto &function : (*proto)->functions())
    finder.functions.insert(function.domain());
  finder.visit(graph);
  for (const auto &function : (*proto)->functions())
    for (const auto &node : function.node())
      finder.visit(node);
  result.family = finder.family;
  result.narrow = finder.narrow;
  return result;
}

static llvm::Expected<HostTensor> readTensorFile(const std::string &file) {
  auto buffer = llvm::MemoryBuffer::getFile(file);
  if (!buffer)
    return inputError("cannot read '" + file +
                      "': " + buffer.getError().message());
  auto proto = std::make_shared<onnx::TensorProto>();
  if (!proto->ParseFromArray((*buffer)->getBufferStart(),
                             int((*buffer)->getBufferSize())))
    return inputError("'" + file + "' holds no tensor");
  return onnx_frontend::readTensor(*proto, file, "'" + file + "'", proto);
}

llvm::Expected<std::vector<std::pair<std::string, HostTensor>>>
conformance::readTensors(const std::string &folder, const char *kind,
                         const std::vector<Port> &ports) {
  auto fileOf = [&](size_t i) {
    return join(folder, llvm::Twine(kind) + "_" + llvm::Twine(i) + ".pb");
  };
  size_t files = 0;
  while (fs::exists(fileOf(files)))
    ++files;
  // Old files list initializers as inputs; data is for the others alone, or
  // for all.
  std::vector<const Port *> fed;
  for (const Port &port : ports)
    if (files == ports.size() || !port.hasInitializer)
      fed.push_back(&port);
  if (files > fed.size())
    return inputError("'" + folder + "' has " + llvm::Twine(files) + " files " +
                      kind + "_K.pb for " + llvm::Twine(fed.size()) + " ports");
  std::vector<std::pair<std::string, HostTensor>> result;
  for (size_t i = 0; i < files; ++i) {
    auto tensor = readTensorFile(fileOf(i));
    if (!tensor)
      return tensor.takeError();
    result.emplace_back(fed[i]->name, std::move(*tensor));
  }
  return result;
}
