//===- ModelWriter.cpp - trained weights into a copy of the file ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes a model with new weights. The message is parsed, tensors are replaced,
// the message is written; fields that this schema does not know are kept. Where
// importing took parameters out of merged or folded initializers, the copy also
// holds them under their own names. External tensors become internal ones, so
// that the copy is complete wherever it lies, unless it would exceed the 2 GiB
// that a file can hold.
//
//===----------------------------------------------------------------------===//
#include "ExportAnalysis.h"
#include "ModelFile.h"
#include "ckopt/Frontend/Onnx/Export.h"
#include "ckopt/Support/AtomicFile.h"
#include "ckopt/Support/Error.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Path.h"
#include <climits>
#include <new>

using namespace ckopt;
using namespace ckopt::onnx_frontend;

/// `value` in the element type and shape of the file's weight.
static llvm::Expected<HostTensor> fitted(const HostTensor &value,
                                         const std::string &name,
                                         std::optional<DType> type,
                                         llvm::ArrayRef<int64_t> shape) {
  if (shape != value.shape())
    return inputError("weight '" + name + "' has shape " +
                      shapeString(value.shape()) + ", the model wants " +
                      shapeString(shape));
  if (!type)
    return value;
  auto converted = value.convertTo(*type);
  if (!converted)
    return withContext(converted.takeError(), "weight '" + name + "'");
  return converted;
}

/// Replaces existing initializers, in subgraphs too, and makes the others
/// internal.
static llvm::Error
replaceInitializers(onnx::GraphProto &graph, llvm::StringRef path,
                    const std::map<std::string, HostTensor> &weights,
                    llvm::StringMap<bool> &done) {
  for (onnx::TensorProto &tensor : *graph.mutable_initializer()) {
    auto found = weights.find(tensor.name());
    if (found != weights.end()) {
      std::vector<int64_t> shape(tensor.dims().begin(), tensor.dims().end());
      auto value = fitted(found->second, tensor.name(),
                          dtypeFromOnnx(tensor.data_type()), shape);
      if (!value)
        return value.takeError();
      storeTensor(tensor, *value);
      done[tensor.name()] = true;
    } else if (tensor.data_location() == onnx::TensorProto::EXTERNAL) {
      auto value = readTensor(tensor, path,
                              "initializer '" + tensor.name() + "'", nullptr);
      if (!value)
        return value.takeError();
      storeTensor(tensor, *value);
    }
  }
  for (onnx::NodeProto &node : *graph.mutable_node())
    for (onnx::AttributeProto &attribute : *node.mutable_attribute())
      if (attribute.has_g())
        if (llvm::Error error = replaceInitializers(*attribute.mutable_g(),
                                                    path, weights, done))
          return error;
  return llvm::Error::success();
}

/// Turns graph inputs that are weights into initializers. From IR version 4 on,
/// an initializer need not be an input as well, so the input is removed.
static llvm::Error
convertInputs(onnx::GraphProto &graph, bool keepInputs,
              const std::map<std::string, HostTensor> &weights,
              llvm::StringMap<bool> &done) {
  google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> kept;
  for (const onnx::ValueInfoProto &input : graph.input()) {
    auto found = weights.find(input.name());
    if (found == weights.end() || done.lookup(input.name())) {
      *kept.Add() = input;
      continue;
    }
    const auto &type = input.type().tensor_type();
    std::vector<int64_t> shape;
    for (const auto &dim : type.shape().dim())
      shape.push_back(dim.dim_value());
    auto value = fitted(found->second, input.name(),
                        dtypeFromOnnx(type.elem_type()), shape);
    if (!value)
      return value.takeError();
    onnx::TensorProto &tensor = *graph.add_initializer();
    tensor.set_name(input.name());
    storeTensor(tensor, *value);
    done[input.name()] = true;
    if (keepInputs)
      *kept.Add() = input;
  }
  graph.mutable_input()->Swap(&kept);
  return llvm::Error::success();
}

/// Replaces ConstantOfShape nodes by initializers where importing took them for
/// parameters.
static void replaceConstants(onnx::GraphProto &graph,
                             const std::map<std::string, HostTensor> &weights,
                             llvm::StringMap<bool> &done) {
  google::protobuf::RepeatedPtrField<onnx::NodeProto> kept;
  for (onnx::NodeProto &node : *graph.mutable_node()) {
    auto found = node.op_type() == "ConstantOfShape" && node.output_size() == 1
                     ? weights.find(node.output(0))
                     : weights.end();
    if (found == weights.end() || done.lookup(found->first)) {
      kept.Add()->Swap(&node);
      continue;
    }
    onnx::TensorProto &tensor = *graph.add_initializer();
    tensor.set_name(found->first);
    storeTensor(tensor, found->second);
    done[found->first] = true;
  }
  graph.mutable_node()->Swap(&kept);
}

static void writeAttribute(const NodeAttribute &from, onnx::NodeProto &to) {
  onnx::AttributeProto &attribute = *to.add_attribute();
  attribute.set_name(from.name);
  if (from.kind == NodeAttribute::Int) {
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(from.i);
    return;
  }
  attribute.set_type(onnx::AttributeProto::INTS);
  for (int64_t value : from.ints)
    attribute.add_ints(value);
}

/// Inserts copies of nodes after the originals.
static void writeCopies(llvm::ArrayRef<NodeCopy> copies,
                        onnx::GraphProto &graph) {
  if (copies.empty())
    return;
  google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
  for (onnx::NodeProto &node : *graph.mutable_node()) {
    std::string name = node.output_size() ? node.output(0) : "";
    nodes.Add()->Swap(&node);
    int original = nodes.size() - 1;
    for (const NodeCopy &copy : copies) {
      if (copy.original != name)
        continue;
      // The copy has no metadata, which describe the original's call.
      onnx::NodeProto made;
      made.set_name(copy.node.name);
      made.set_op_type(nodes[original].op_type());
      made.set_domain(nodes[original].domain());
      *made.mutable_attribute() = nodes[original].attribute();
      for (const std::string &input : copy.node.inputs)
        made.add_input(input);
      for (const std::string &output : copy.node.outputs)
        made.add_output(output);
      *nodes.Add() = std::move(made);
    }
  }
  graph.mutable_node()->Swap(&nodes);
}

/// Applies the edits of the model in memory, so that both are the same graph.
/// Nodes are found by their first result, because `graph` may have calls of
/// functions where `plain`, the graph in memory, has the functions' nodes.
static llvm::Error applyEdits(const GraphEdits &edits, const Graph &plain,
                              onnx::GraphProto &graph) {
  writeCopies(edits.copies, graph);
  llvm::StringMap<int> numbers;
  for (int i = 0; i < graph.node_size(); ++i)
    if (graph.node(i).output_size())
      numbers[graph.node(i).output(0)] = i;
  std::set<int> dropped;
  for (size_t node : edits.dropped)
    dropped.insert(numbers.lookup(plain.nodes[node].outputs[0]));
  // First, because other edits may refer to these.
  auto rewired = edits.copyReads;
  llvm::append_range(rewired, edits.rewired);
  for (const auto &[node, operand, to] : rewired) {
    auto found = numbers.find(plain.nodes[node].outputs[0]);
    onnx::NodeProto *target =
        found == numbers.end() ? nullptr : graph.mutable_node(found->second);
    if (!target || target->op_type() != plain.nodes[node].op)
      return inputError("a function of the model holds " +
                        plain.nodes[node].describe() +
                        ": its weights cannot be written back; save a "
                        "safetensors checkpoint instead");
    if (int(operand) < target->input_size())
      target->set_input(int(operand), to);
    else
      target->add_input(to);
  }
  google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
  for (const Node &node : edits.nodes) {
    onnx::NodeProto &to = *nodes.Add();
    to.set_name(node.name);
    to.set_op_type(node.op);
    for (const std::string &input : node.inputs)
      to.add_input(input);
    for (const std::string &output : node.outputs)
      to.add_output(output);
    for (const NodeAttribute &attribute : node.attributes)
      writeAttribute(attribute, to);
  }
  int number = 0;
  for (onnx::NodeProto &node : *graph.mutable_node())
    if (!dropped.count(number++))
      nodes.Add()->Swap(&node);
  graph.mutable_node()->Swap(&nodes);
  google::protobuf::RepeatedPtrField<onnx::TensorProto> initializers;
  for (onnx::TensorProto &tensor : *graph.mutable_initializer())
    if (!edits.removed.count(tensor.name()))
      initializers.Add()->Swap(&tensor);
  for (const Tensor &tensor : edits.added) {
    initializers.Add()->set_name(tensor.name);
    storeTensor(initializers[initializers.size() - 1], tensor.value);
  }
  graph.mutable_initializer()->Swap(&initializers);
  google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> inputs;
  for (onnx::ValueInfoProto &input : *graph.mutable_input())
    if (!edits.removed.count(input.name()))
      inputs.Add()->Swap(&input);
  graph.mutable_input()->Swap(&inputs);
  return llvm::Error::success();
}

/// Moves the data of large initializers into the file `outPath`.data.
static llvm::Error writeExternal(onnx::GraphProto &graph,
                                 llvm::StringRef outPath) {
  std::string dataPath = (outPath + ".data").str();
  auto file = AtomicFile::create(dataPath);
  if (!file)
    return file.takeError();
  constexpr size_t worthwhile = 1024, alignment = 4096;
  for (onnx::TensorProto &tensor : *graph.mutable_initializer()) {
    if (tensor.raw_data().size() < worthwhile)
      continue;
    size_t padding = (alignment - file->position() % alignment) % alignment;
    if (llvm::Error error = file->write(std::string(padding, '\0')))
      return error;
    std::pair<const char *, std::string> entries[] = {
        {"location", llvm::sys::path::filename(dataPath).str()},
        {"offset", std::to_string(file->position())},
        {"length", std::to_string(tensor.raw_data().size())}};
    if (llvm::Error error = file->write(tensor.raw_data()))
      return error;
    tensor.clear_raw_data();
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto &[key, value] : entries) {
      tensor.add_external_data()->set_key(key);
      tensor.mutable_external_data()->rbegin()->set_value(value);
    }
  }
  return file->commit();
}

/// A key of the model's own is not kept twice.
static void setMetadata(onnx::ModelProto &model, const std::string &key,
                        const std::string &value) {
  for (onnx::StringStringEntryProto &entry : *model.mutable_metadata_props())
    if (entry.key() == key) {
      entry.set_value(value);
      return;
    }
  onnx::StringStringEntryProto &entry = *model.add_metadata_props();
  entry.set_key(key);
  entry.set_value(value);
}

static llvm::Error
exportChecked(llvm::StringRef originalPath, llvm::StringRef outPath,
              const std::map<std::string, HostTensor> &weights,
              const std::map<std::string, std::string> &metadata) {
  auto model = parseModelFile(originalPath);
  if (!model)
    return model.takeError();
  onnx::GraphProto &graph = *(*model)->mutable_graph();
  auto plain = readModel(originalPath);
  if (!plain)
    return plain.takeError();
  GraphEdits edits = analyzeExport(*plain).edits;
  if (llvm::Error error = applyEdits(edits, plain->graph, graph))
    return withContext(std::move(error), "'" + originalPath + "'");
  llvm::StringMap<bool> done;
  if (llvm::Error error =
          replaceInitializers(graph, originalPath, weights, done))
    return withContext(std::move(error), "'" + originalPath + "'");
  if (llvm::Error error =
          convertInputs(graph, (*model)->ir_version() < 4, weights, done))
    return withContext(std::move(error), "'" + originalPath + "'");
  replaceConstants(graph, weights, done);
  for (const auto &[name, value] : weights)
    if (!done.lookup(name))
      return inputError("'" + originalPath + "' has no weight '" + name + "'");
  for (const auto &[key, value] : metadata)
    setMetadata(**model, key, value);
  // An ONNX file holds 2 GiB at most, so more data goes to a file beside it.
  if ((*model)->ByteSizeLong() > size_t(INT_MAX))
    if (llvm::Error error = writeExternal(graph, outPath))
      return error;
  if ((*model)->ByteSizeLong() > size_t(INT_MAX))
    return inputError("cannot write '" + outPath +
                      "': without its weights the model is larger than the "
                      "2 GiB that an ONNX file can hold");
  std::string bytes;
  if (!(*model)->SerializeToString(&bytes))
    return inputError("cannot write '" + outPath +
                      "': the model does not serialize");
  return writeFileAtomically(outPath, bytes);
}

llvm::Error
onnx_frontend::exportModel(llvm::StringRef originalPath,
                           llvm::StringRef outPath,
                           const std::map<std::string, HostTensor> &weights,
                           const std::map<std::string, std::string> &metadata) {
  try {
    return exportChecked(originalPath, outPath, weights, metadata);
  } catch (const std::bad_alloc &) {
    return inputError("'" + originalPath +
                      "' with its weights does not fit into memory");
  }
}
