//===- WriteBack.cpp - what changes in a file besides its weights ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Importing finds parameters that the exporter merged or folded, for which it
// compares the values of all weights. What follows for the file is kept, so
// that writing trained weights need not read them again. Values that weights
// replace are not kept.
//
//===----------------------------------------------------------------------===//
#include "WriteBack.h"
#include "ModelFile.h"
#include "ckopt/Support/Error.h"
#include <set>

using namespace ckopt;
using namespace ckopt::onnx_frontend;

WriteBack::WriteBack(llvm::StringRef path, const GraphEdits &given,
                     const Graph &graph, bool keepsValues)
    : edits(given) {
  constexpr int64_t kLarge = 4096;
  for (Tensor &tensor : edits.added) {
    added.push_back({tensor.name, tensor.value.dtype(),
                     tensor.value.shape().vec(), std::nullopt});
    if (keepsValues || tensor.value.sizeInBytes() < kLarge)
      added.back().value = tensor.value;
    if (added.back().value && !keepsValues)
      added.back().value->mutableRawData(); // a copy, which keeps no file open
  }
  edits.added.clear();
  auto know = [&](size_t number) {
    const Node &node = graph.nodes[number];
    nodes[number] = {node.outputs[0], node.op, node.describe()};
  };
  for (const GraphEdits::Rewire &rewire : edits.rewired)
    know(rewire.node);
  for (size_t number : edits.dropped)
    know(number);
  llvm::sys::fs::file_status status;
  if (llvm::sys::fs::status(path, status))
    return;
  file = status.getUniqueID();
  bytes = status.getSize();
  written = status.getLastModificationTime();
}

bool WriteBack::isOf(llvm::StringRef path) const {
  llvm::sys::fs::file_status status;
  return !llvm::sys::fs::status(path, status) && status.getUniqueID() == file &&
         status.getSize() == bytes &&
         status.getLastModificationTime() == written;
}

bool WriteBack::hasAllValues(const llvm::StringMap<size_t> &weights) const {
  return llvm::all_of(added, [&](const Added &tensor) {
    return tensor.value || weights.count(tensor.name);
  });
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

llvm::Error WriteBack::apply(onnx::GraphProto &graph) const {
  llvm::StringMap<int> numbers;
  for (int i = 0; i < graph.node_size(); ++i)
    if (graph.node(i).output_size())
      numbers[graph.node(i).output(0)] = i;
  std::set<int> dropped;
  for (size_t node : edits.dropped)
    dropped.insert(numbers.lookup(nodes.at(node).result));
  for (const auto &[node, operand, to] : edits.rewired) {
    auto found = numbers.find(nodes.at(node).result);
    onnx::NodeProto *target =
        found == numbers.end() ? nullptr : graph.mutable_node(found->second);
    if (!target || target->op_type() != nodes.at(node).op)
      return inputError("a function of the model holds " + nodes.at(node).text +
                        ": its weights cannot be written back; save a "
                        "safetensors checkpoint instead");
    if (int(operand) < target->input_size())
      target->set_input(int(operand), to);
    else
      target->add_input(to);
  }
  google::protobuf::RepeatedPtrField<onnx::NodeProto> made;
  for (const Node &node : edits.nodes) {
    onnx::NodeProto &to = *made.Add();
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
      made.Add()->Swap(&node);
  graph.mutable_node()->Swap(&made);
  google::protobuf::RepeatedPtrField<onnx::TensorProto> initializers;
  for (onnx::TensorProto &tensor : *graph.mutable_initializer())
    if (!edits.removed.count(tensor.name()))
      initializers.Add()->Swap(&tensor);
  for (const Added &tensor : added) {
    onnx::TensorProto &to = *initializers.Add();
    to.set_name(tensor.name);
    if (tensor.value) {
      storeTensor(to, *tensor.value);
      continue;
    }
    to.set_data_type(dtypeToOnnx(tensor.dtype));
    for (int64_t size : tensor.shape)
      to.add_dims(size);
  }
  graph.mutable_initializer()->Swap(&initializers);
  google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> inputs;
  for (onnx::ValueInfoProto &input : *graph.mutable_input())
    if (!edits.removed.count(input.name()))
      inputs.Add()->Swap(&input);
  graph.mutable_input()->Swap(&inputs);
  return llvm::Error::success();
}
