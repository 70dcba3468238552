//===- ModelWriter.cpp - trained weights into a copy of the file ----------===//
//
// The message is parsed, tensors are replaced, the message is written: what
// this schema does not know stays as unknown fields. External tensors become
// internal ones, so that the copy is whole wherever it lies.
//
//===----------------------------------------------------------------------===//
#include "ModelFile.h"
#include "ckopt/Frontend/Onnx/Export.h"
#include "ckopt/Support/AtomicFile.h"
#include "ckopt/Support/Error.h"
#include "llvm/ADT/StringMap.h"
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

/// Replaces what is an initializer already, in subgraphs, too; makes the others
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

/// Graph inputs that are weights become initializers. From IR version 4 on an
/// initializer need not be an input too, and then is none.
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

static llvm::Error
exportChecked(llvm::StringRef originalPath, llvm::StringRef outPath,
              const std::map<std::string, HostTensor> &weights) {
  auto model = parseModelFile(originalPath);
  if (!model)
    return model.takeError();
  onnx::GraphProto &graph = *(*model)->mutable_graph();
  llvm::StringMap<bool> done;
  if (llvm::Error error =
          replaceInitializers(graph, originalPath, weights, done))
    return withContext(std::move(error), "'" + originalPath + "'");
  if (llvm::Error error =
          convertInputs(graph, (*model)->ir_version() < 4, weights, done))
    return withContext(std::move(error), "'" + originalPath + "'");
  for (const auto &[name, value] : weights)
    if (!done.lookup(name))
      return inputError("'" + originalPath + "' has no weight '" + name + "'");
  size_t size = (*model)->ByteSizeLong();
  if (size > size_t(INT_MAX))
    return inputError("cannot write '" + outPath +
                      "': with its weights the "
                      "model has " +
                      llvm::Twine(uint64_t(size)) +
                      " bytes, more than the 2 GiB that an ONNX file can hold; "
                      "save a safetensors checkpoint instead");
  std::string bytes;
  if (!(*model)->SerializeToString(&bytes))
    return inputError("cannot write '" + outPath +
                      "': the model does not serialize");
  return writeFileAtomically(outPath, bytes);
}

llvm::Error
onnx_frontend::exportModel(llvm::StringRef originalPath,
                           llvm::StringRef outPath,
                           const std::map<std::string, HostTensor> &weights) {
  try {
    return exportChecked(originalPath, outPath, weights);
  } catch (const std::bad_alloc &) {
    return inputError("'" + originalPath +
                      "' with its weights does not fit into memory");
  }
}
