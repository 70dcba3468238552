//===- Quantize.cpp - a copy of a model with few bits a weight ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: make the frozen base of a fine-tuning run from a model of f32, f16
// or bf16, so that every reader of the file dequantizes it alike. Method: a
// matrix's initializer goes; nodes in front of all others make a value of its
// name and type from new initializers, its integers and scales, so that no
// other node changes. Guarantee: only matrices that nothing but products and
// lookups read; the same bytes for the same file. Complexity: O(nodes and
// numbers).
//
//===----------------------------------------------------------------------===//
#include "ModelStream.h"
#include "QuantizeWeights.h"
#include "ckopt/Support/Error.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Regex.h"
#include <algorithm>
#include <memory>
#include <new>
#include <utility>
#include <vector>

using namespace ckopt;
using namespace ckopt::onnx_frontend;

namespace {
/// Who reads a matrix.
struct Readers {
  bool product = false, lookup = false, other = false;
  int64_t axis = 1; ///< that products sum over
};

class Quantizer {
public:
  Quantizer(ModelStream &stream, const Model &model, llvm::StringRef path,
            const QuantizeOptions &options)
      : stream(stream), model(model), path(path), options(options),
        freeze("^(" + options.freezeRegex + ")$"),
        train("^(" + options.trainRegex + ")$") {}

  llvm::Error run();
  QuantizeResult result;

private:
  void findUses();
  void follow(const std::string &name, bool swapped, Readers &readers) const;
  std::string whyKept(const Tensor &tensor, const Readers &readers) const;
  llvm::Error quantize(const Tensor &tensor, int64_t axis);
  onnx::TensorProto &addTensor(const std::string &name, int32_t type,
                               llvm::ArrayRef<int64_t> dims);
  void addNumbers(onnx::TensorProto &tensor, const HostTensor &value);
  std::string addInts(const std::string &name, llvm::ArrayRef<int64_t> values);
  onnx::NodeProto &addNode(llvm::StringRef op,
                           std::initializer_list<std::string> inputs,
                           const std::string &output);
  void addDequantize(const QuantizedWeight &weight, const std::string &name,
                     const std::string &output);
  void addElementwise(const QuantizedWeight &weight, const std::string &name,
                      const std::string &output);
  bool hasBlocks() const {
    return opset >= 21 && options.type != QuantizedType::Nf4;
  }

  ModelStream &stream;
  const Model &model;
  llvm::StringRef path;
  const QuantizeOptions &options;
  llvm::Regex freeze, train;
  /// By value: the nodes that read it, and as which input.
  llvm::StringMap<std::vector<std::pair<const Node *, size_t>>> uses;
  llvm::StringSet<> readElsewhere; ///< by subgraphs, or outputs
  int64_t opset = 0;
  google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
  google::protobuf::RepeatedPtrField<onnx::TensorProto> tensors;
};
} // namespace

/// Notes once which nodes read each value, and what else does.
void Quantizer::findUses() {
  for (const ValueInfo &output : model.graph.outputs)
    readElsewhere.insert(output.name);
  for (const Node &node : model.graph.nodes) {
    for (const NodeAttribute &attribute : node.attributes)
      if (attribute.graph)
        forEachNode(attribute.graph->nodes, [&](const Node &inner) {
          readElsewhere.insert(inner.inputs.begin(), inner.inputs.end());
        });
    for (auto [i, input] : llvm::enumerate(node.inputs))
      uses[input].push_back({&node, i});
  }
}

/// Finds the readers of a value, through casts and transposes.
void Quantizer::follow(const std::string &name, bool swapped,
                       Readers &readers) const {
  readers.other |= readElsewhere.contains(name);
  for (auto [node, i] : uses.lookup(name)) {
    bool isOwn = node->domain.empty();
    if (isOwn && (node->op == "Cast" || node->op == "Identity") && i == 0) {
      follow(node->outputs[0], swapped, readers);
    } else if (isOwn && node->op == "Transpose") {
      follow(node->outputs[0], !swapped, readers);
    } else if (isOwn && (node->op == "MatMul" || node->op == "Gemm") && i < 2) {
      bool transposed =
          node->op == "Gemm" && node->intAttribute(i ? "transB" : "transA");
      readers.product = true;
      readers.axis = (i == 1) != (swapped != transposed) ? 0 : 1;
    } else if (isOwn && node->op == "Gather" && i == 0 && !swapped &&
               node->intAttribute("axis") == 0) {
      readers.lookup = true;
    } else {
      readers.other = true;
    }
  }
}

std::string Quantizer::whyKept(const Tensor &tensor,
                               const Readers &readers) const {
  int64_t axis = readers.lookup ? 1 : readers.axis;
  if (train.match(tensor.name) ||
      (!options.freezeRegex.empty() && !freeze.match(tensor.name)))
    return "is trained";
  if (readers.other)
    return "is read by more than products and lookups";
  if (!readers.product && !readers.lookup)
    return "is not read by a product or a lookup";
  if (tensor.value.dim(axis) % options.group)
    return "has " + std::to_string(tensor.value.dim(axis)) +
           " entries along dimension " + std::to_string(axis) +
           ", no multiple of the group";
  if (options.type != QuantizedType::Int8 && tensor.value.dim(1) % 2)
    return "has rows of an odd length";
  return "";
}

onnx::TensorProto &Quantizer::addTensor(const std::string &name, int32_t type,
                                        llvm::ArrayRef<int64_t> dims) {
  onnx::TensorProto &tensor = *tensors.Add();
  tensor.set_name(name);
  tensor.set_data_type(type);
  for (int64_t size : dims)
    tensor.add_dims(size);
  return tensor;
}

void Quantizer::addNumbers(onnx::TensorProto &tensor, const HostTensor &value) {
  auto bytes = uint64_t(value.sizeInBytes());
  if (bytes < ModelStream::kLarge) {
    tensor.set_raw_data(value.rawData(), size_t(bytes));
    return;
  }
  stream.setNumbers(tensor, bytes, [value](AtomicFile &file) {
    return file.write(value.rawData(), size_t(value.sizeInBytes()));
  });
}

std::string Quantizer::addInts(const std::string &name,
                               llvm::ArrayRef<int64_t> values) {
  addNumbers(
      addTensor(name, onnx::TensorProto::INT64, {int64_t(values.size())}),
      HostTensor::of<int64_t>({int64_t(values.size())}, values));
  return name;
}

onnx::NodeProto &Quantizer::addNode(llvm::StringRef op,
                                    std::initializer_list<std::string> inputs,
                                    const std::string &output) {
  onnx::NodeProto &node = *nodes.Add();
  node.set_op_type(op.str());
  node.set_name(output + "/" + op.str());
  for (const std::string &input : inputs)
    node.add_input(input);
  node.add_output(output);
  return node;
}

static void setInt(onnx::NodeProto &node, const char *name, int64_t value) {
  onnx::AttributeProto &attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
}

static void setText(onnx::NodeProto &node, const char *name, const char *text) {
  onnx::AttributeProto &attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::STRING);
  attribute.set_s(text);
}

void Quantizer::addDequantize(const QuantizedWeight &weight,
                              const std::string &name,
                              const std::string &output) {
  onnx::NodeProto &node = addNode(
      "DequantizeLinear", {name + "/quantized", name + "/scale"}, output);
  setInt(node, "axis", weight.axis);
  setInt(node, "block_size", weight.group);
}

/// Adds nodes that compute element by element, in a shape where groups and the
/// nibbles of a byte are dimensions.
void Quantizer::addElementwise(const QuantizedWeight &weight,
                               const std::string &name,
                               const std::string &output) {
  auto value = [&](const char *suffix) { return name + "/" + suffix; };
  std::string numbers = value("quantized");
  if (weight.type != QuantizedType::Int8) {
    // BitwiseAnd is newer than the least opset.
    std::string four = value("four");
    addNumbers(addTensor(four, onnx::TensorProto::UINT8, {}),
               HostTensor::scalar<uint8_t>(4));
    setText(addNode("BitShift", {numbers, four}, value("raised")), "direction",
            "LEFT");
    setText(addNode("BitShift", {value("raised"), four}, value("low")),
            "direction", "RIGHT");
    setText(addNode("BitShift", {numbers, four}, value("high")), "direction",
            "RIGHT");
    std::string last = addInts(value("last"), {3});
    addNode("Unsqueeze", {value("low"), last}, value("lows"));
    addNode("Unsqueeze", {value("high"), last}, value("highs"));
    numbers = value("nibbles");
    setInt(addNode("Concat", {value("lows"), value("highs")}, numbers), "axis",
           3);
  }
  std::string plain = value("numbers");
  if (weight.type == QuantizedType::Nf4) {
    addNumbers(addTensor(value("levels"), onnx::TensorProto::FLOAT, {16}),
               HostTensor::of<float>({16}, kNf4Levels));
    setInt(addNode("Cast", {numbers}, value("indices")), "to",
           onnx::TensorProto::INT32);
    addNode("Gather", {value("levels"), value("indices")}, plain);
  } else {
    setInt(addNode("Cast", {numbers}, plain), "to", onnx::TensorProto::FLOAT);
  }
  if (weight.type == QuantizedType::Int4) {
    addNumbers(addTensor(value("eight"), onnx::TensorProto::FLOAT, {}),
               HostTensor::scalar<float>(8));
    addNode("Sub", {plain, value("eight")}, value("signed"));
    plain = value("signed");
  }
  addNode("Mul", {plain, value("scale")}, value("scaled"));
  addNode("Reshape",
          {value("scaled"),
           addInts(value("shape"), {weight.rows(), weight.columns()})},
          output);
}

llvm::Error Quantizer::quantize(const Tensor &tensor, int64_t axis) {
  const std::string &name = tensor.name;
  auto weight = std::make_shared<QuantizedWeight>(
      QuantizedWeight{tensor.value, axis, options.group, options.type,
                      !hasBlocks() && options.type == QuantizedType::Int4});
  auto scales = weight->scales();
  if (!scales)
    return withContext(scales.takeError(),
                       "'" + path + "': weight '" + name + "'");
  bool isNibbles = options.type != QuantizedType::Int8;
  std::vector<int64_t> shape = tensor.value.shape().vec();
  std::vector<int64_t> scaleShape = shape;
  scaleShape[size_t(axis)] /= options.group;
  constexpr int32_t kInt4 = 22; // newer than the schema that is compiled in
  int32_t type = isNibbles ? kInt4 : int32_t(onnx::TensorProto::INT8);
  if (!hasBlocks()) {
    type = isNibbles ? onnx::TensorProto::UINT8 : onnx::TensorProto::INT8;
    shape[size_t(axis)] /= options.group;
    shape.insert(shape.begin() + axis + 1, options.group);
    scaleShape.insert(scaleShape.begin() + axis + 1, 1);
    if (isNibbles) {
      shape.back() /= 2;
      bool apart = scaleShape.back() > 1;
      scaleShape.back() /= apart ? 2 : 1;
      scaleShape.push_back(apart ? 2 : 1);
    }
  }
  HostTensor scale = HostTensor::of<float>(scaleShape, *scales);
  addNumbers(addTensor(name + "/scale", onnx::TensorProto::FLOAT, scaleShape),
             scale);
  onnx::TensorProto &numbers = addTensor(name + "/quantized", type, shape);
  auto values = std::make_shared<std::vector<float>>(std::move(*scales));
  if (weight->bytes() < ModelStream::kLarge) {
    if (llvm::Error error = weight->store(*values, [&](llvm::StringRef bytes) {
          numbers.mutable_raw_data()->append(bytes.data(), bytes.size());
          return llvm::Error::success();
        }))
      return error;
  } else {
    stream.setNumbers(
        numbers, weight->bytes(), [weight, values](AtomicFile &file) {
          return weight->store(*values, [&](llvm::StringRef bytes) {
            return file.write(bytes);
          });
        });
  }
  bool isHalf = tensor.value.dtype() != DType::F32;
  std::string output = isHalf ? name + "/wide" : name;
  if (hasBlocks())
    addDequantize(*weight, name, output);
  else
    addElementwise(*weight, name, output);
  if (isHalf)
    setInt(addNode("Cast", {output}, name), "to",
           dtypeToOnnx(tensor.value.dtype()));
  ++result.weights;
  result.numbers += tensor.value.numElements();
  result.bytesBefore += uint64_t(tensor.value.sizeInBytes());
  result.bytesAfter += weight->bytes() + uint64_t(scale.sizeInBytes());
  return llvm::Error::success();
}

llvm::Error Quantizer::run() {
  auto found = model.opsets.find("");
  opset = found == model.opsets.end() ? 1 : found->second;
  constexpr int64_t kLeast = 13; // Unsqueeze takes its axes from a tensor
  if (opset < kLeast)
    return makeError(ExitUnsupported,
                     "'" + path + "' is of opset " + llvm::Twine(opset) +
                         ", and quantized weights need " + llvm::Twine(kLeast) +
                         ": export it again with that, or a later one");
  findUses();
  llvm::StringSet<> gone;
  for (const Tensor &tensor : model.graph.initializers) {
    DType type = tensor.value.dtype();
    bool isMatrix =
        !tensor.nibbles && tensor.value.rank() == 2 &&
        (type == DType::F32 || type == DType::F16 || type == DType::BF16);
    // Smaller ones are no base.
    if (!isMatrix ||
        std::min(tensor.value.dim(0), tensor.value.dim(1)) < options.group)
      continue;
    Readers readers;
    follow(tensor.name, /*swapped=*/false, readers);
    if (std::string why = whyKept(tensor, readers); !why.empty()) {
      result.kept.push_back("'" + tensor.name + "' " + why);
      continue;
    }
    if (llvm::Error error = quantize(tensor, readers.lookup ? 1 : readers.axis))
      return error;
    gone.insert(tensor.name);
  }
  if (gone.empty())
    return inputError("'" + path + "' has no matrix to quantize");
  onnx::GraphProto &graph = *stream.model().mutable_graph();
  for (onnx::TensorProto &tensor : *graph.mutable_initializer())
    if (!gone.count(tensor.name())) {
      if (llvm::Error error = storeInside(stream, tensor, path))
        return error;
      tensors.Add()->Swap(&tensor);
    }
  graph.mutable_initializer()->Swap(&tensors);
  for (onnx::NodeProto &node : *graph.mutable_node())
    nodes.Add()->Swap(&node);
  graph.mutable_node()->Swap(&nodes);
  google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> inputs;
  for (onnx::ValueInfoProto &input : *graph.mutable_input())
    if (!gone.count(input.name()))
      inputs.Add()->Swap(&input);
  graph.mutable_input()->Swap(&inputs);
  constexpr int64_t kHasNibbles = 10;
  if (hasBlocks() && stream.model().ir_version() < kHasNibbles)
    stream.model().set_ir_version(kHasNibbles);
  return llvm::Error::success();
}

static llvm::Expected<QuantizeResult>
quantizeChecked(llvm::StringRef path, llvm::StringRef outPath,
                const QuantizeOptions &options) {
  auto model = readModel(path);
  if (!model)
    return model.takeError();
  auto stream = ModelStream::open(path);
  if (!stream)
    return stream.takeError();
  Quantizer quantizer(*stream, *model, path, options);
  if (llvm::Error error = quantizer.run())
    return std::move(error);
  if (llvm::Error error = writeModel(*stream, outPath, options.mostBytes))
    return std::move(error);
  return std::move(quantizer.result);
}

llvm::Expected<QuantizeResult>
onnx_frontend::quantizeModel(llvm::StringRef path, llvm::StringRef outPath,
                             const QuantizeOptions &options) {
  try {
    return quantizeChecked(path, outPath, options);
  } catch (const std::bad_alloc &) {
    return inputError("'" + path + "' does not fit into memory");
  }
}
