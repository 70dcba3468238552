//===- ModelWriter.cpp - trained weights into a copy of the file ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes a model with new weights. The message is parsed, tensors are replaced,
// the message is written; fields that this schema does not know are kept. Where
// importing took parameters out of merged or folded initializers, the copy also
// holds them under their own names. External tensors become internal ones, so
// that the copy is complete wherever it lies, unless it would exceed the 2 GiB
// that a file can hold. Large tensors are never in memory as a whole: they are
// read, converted and written in pieces.
//
//===----------------------------------------------------------------------===//
#include "Export/ExportAnalysis.h"
#include "ModelStream.h"
#include "WriteBack.h"
#include "ckopt/Frontend/Onnx/Export.h"
#include "ckopt/Support/Error.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Path.h"
#include <new>

using namespace ckopt;
using namespace ckopt::onnx_frontend;

namespace {
/// Puts weights into a model.
class Replacement {
public:
  Replacement(ModelStream &stream, llvm::StringRef path, TensorParts &weights)
      : stream(stream), path(path), weights(weights) {
    for (const TensorSpec &spec : weights.specs())
      numbers[spec.name] = numbers.size();
    done.resize(weights.specs().size());
  }
  const llvm::StringMap<size_t> &names() const { return numbers; }
  llvm::Error replace(onnx::GraphProto &graph);
  llvm::Error checkDone() const;

private:
  llvm::Error replaceInitializers(onnx::GraphProto &graph);
  llvm::Error convertInputs(onnx::GraphProto &graph);
  llvm::Error replaceConstants(onnx::GraphProto &graph);
  /// Returns the number of a weight that has no place yet, or nothing.
  std::optional<size_t> find(const std::string &name) const {
    auto found = numbers.find(name);
    if (found == numbers.end() || done[found->second])
      return std::nullopt;
    return found->second;
  }
  llvm::Error checkShape(size_t number, llvm::ArrayRef<int64_t> shape) const;
  llvm::Error store(onnx::TensorProto &tensor, size_t number,
                    std::optional<DType> type);

  ModelStream &stream;
  llvm::StringRef path; ///< of the model
  TensorParts &weights;
  llvm::StringMap<size_t> numbers; ///< of weights, by name
  std::vector<bool> done;
};
} // namespace

/// Lets a tensor have type and shape, and no numbers.
static void describe(onnx::TensorProto &tensor, DType type,
                     llvm::ArrayRef<int64_t> shape) {
  storeTensor(tensor, HostTensor(type, {0}));
  tensor.clear_dims();
  for (int64_t size : shape)
    tensor.add_dims(size);
}

static llvm::Error writeTensor(AtomicFile &file, const HostTensor &value) {
  return file.write(value.rawData(), size_t(value.sizeInBytes()));
}

llvm::Error Replacement::checkShape(size_t number,
                                    llvm::ArrayRef<int64_t> shape) const {
  const TensorSpec &spec = weights.specs()[number];
  if (shape == llvm::ArrayRef<int64_t>(spec.shape))
    return llvm::Error::success();
  return inputError("weight '" + spec.name + "' has shape " +
                    shapeString(spec.shape) + ", the model wants " +
                    shapeString(shape));
}

/// Lets a tensor have the weight's values, in the file's type.
llvm::Error Replacement::store(onnx::TensorProto &tensor, size_t number,
                               std::optional<DType> type) {
  const TensorSpec &spec = weights.specs()[number];
  DType stored = type.value_or(spec.dtype);
  int64_t elements = 1;
  for (int64_t extent : spec.shape)
    elements *= extent;
  uint64_t bytes = uint64_t(elements * dtypeSize(stored));
  done[number] = true;
  auto convert = [&weights = weights, number, stored](
                     llvm::function_ref<llvm::Error(const HostTensor &)> take) {
    return forEachPiece(
        weights, number,
        [&](const HostTensor &piece, int64_t begin) -> llvm::Error {
          auto converted = piece.convertTo(stored);
          if (converted)
            return take(*converted);
          std::string where = "weight '" + weights.specs()[number].name + "'";
          if (begin)
            where += ", from element " + std::to_string(begin) + " on";
          return withContext(converted.takeError(), where);
        });
  };
  describe(tensor, stored, spec.shape);
  if (bytes >= ModelStream::kLarge) {
    stream.setNumbers(tensor, bytes, [convert](AtomicFile &file) {
      return convert(
          [&](const HostTensor &piece) { return writeTensor(file, piece); });
    });
    return llvm::Error::success();
  }
  return convert([&](const HostTensor &piece) {
    tensor.mutable_raw_data()->append(
        static_cast<const char *>(piece.rawData()),
        size_t(piece.sizeInBytes()));
    return llvm::Error::success();
  });
}

llvm::Error onnx_frontend::storeInside(ModelStream &stream,
                                       onnx::TensorProto &tensor,
                                       llvm::StringRef path) {
  if (tensor.data_location() != onnx::TensorProto::EXTERNAL)
    return llvm::Error::success();
  std::string what = "initializer '" + tensor.name() + "'";
  auto value = readTensor(tensor, path, what, nullptr, /*nibbles=*/true);
  if (!value)
    return value.takeError();
  tensor.clear_external_data();
  tensor.clear_data_location();
  auto bytes = uint64_t(value->sizeInBytes());
  if (bytes < ModelStream::kLarge) {
    tensor.set_raw_data(value->rawData(), size_t(bytes));
    return llvm::Error::success();
  }
  stream.setNumbers(tensor, bytes,
                    [value = std::move(*value)](AtomicFile &file) {
                      return writeTensor(file, value);
                    });
  return llvm::Error::success();
}

/// Replaces existing initializers, in subgraphs too, and makes the others
/// internal.
llvm::Error Replacement::replaceInitializers(onnx::GraphProto &graph) {
  for (onnx::TensorProto &tensor : *graph.mutable_initializer()) {
    auto found = numbers.find(tensor.name());
    if (found != numbers.end()) {
      std::vector<int64_t> shape(tensor.dims().begin(), tensor.dims().end());
      if (llvm::Error error = checkShape(found->second, shape))
        return error;
      if (llvm::Error error =
              store(tensor, found->second, dtypeFromOnnx(tensor.data_type())))
        return error;
    } else if (llvm::Error error = storeInside(stream, tensor, path)) {
      return error;
    }
  }
  for (onnx::NodeProto &node : *graph.mutable_node())
    for (onnx::AttributeProto &attribute : *node.mutable_attribute())
      if (attribute.has_g())
        if (llvm::Error error = replaceInitializers(*attribute.mutable_g()))
          return error;
  return llvm::Error::success();
}

/// Turns graph inputs that are weights into initializers. From IR version 4 on,
/// an initializer need not be an input as well, so the input is removed.
llvm::Error Replacement::convertInputs(onnx::GraphProto &graph) {
  constexpr int64_t kInitializersAlone = 4;
  bool keepInputs = stream.model().ir_version() < kInitializersAlone;
  google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> kept;
  for (const onnx::ValueInfoProto &input : graph.input()) {
    auto found = find(input.name());
    if (!found) {
      *kept.Add() = input;
      continue;
    }
    const auto &type = input.type().tensor_type();
    std::vector<int64_t> shape;
    for (const auto &dim : type.shape().dim())
      shape.push_back(dim.dim_value());
    if (llvm::Error error = checkShape(*found, shape))
      return error;
    onnx::TensorProto &tensor = *graph.add_initializer();
    tensor.set_name(input.name());
    if (llvm::Error error =
            store(tensor, *found, dtypeFromOnnx(type.elem_type())))
      return error;
    if (keepInputs)
      *kept.Add() = input;
  }
  graph.mutable_input()->Swap(&kept);
  return llvm::Error::success();
}

/// Replaces ConstantOfShape nodes by initializers where importing took them for
/// parameters.
llvm::Error Replacement::replaceConstants(onnx::GraphProto &graph) {
  google::protobuf::RepeatedPtrField<onnx::NodeProto> kept;
  for (onnx::NodeProto &node : *graph.mutable_node()) {
    auto found = node.op_type() == "ConstantOfShape" && node.output_size() == 1
                     ? find(node.output(0))
                     : std::nullopt;
    if (!found) {
      kept.Add()->Swap(&node);
      continue;
    }
    onnx::TensorProto &tensor = *graph.add_initializer();
    tensor.set_name(node.output(0));
    if (llvm::Error error = store(tensor, *found, std::nullopt))
      return error;
  }
  graph.mutable_node()->Swap(&kept);
  return llvm::Error::success();
}

llvm::Error Replacement::replace(onnx::GraphProto &graph) {
  if (llvm::Error error = replaceInitializers(graph))
    return error;
  if (llvm::Error error = convertInputs(graph))
    return error;
  return replaceConstants(graph);
}

llvm::Error Replacement::checkDone() const {
  for (size_t number = 0; number < done.size(); ++number)
    if (!done[number])
      return inputError("'" + path + "' has no weight '" +
                        weights.specs()[number].name + "'");
  return llvm::Error::success();
}

/// Moves the numbers of large initializers into a file beside the model's.
static llvm::Error writeExternal(ModelStream &stream, llvm::StringRef name,
                                 AtomicFile &file) {
  constexpr size_t worthwhile = 1024, alignment = 4096;
  for (onnx::TensorProto &tensor :
       *stream.model().mutable_graph()->mutable_initializer()) {
    uint64_t bytes = stream.sizeOfNumbers(tensor);
    if (bytes < worthwhile)
      continue;
    size_t padding = (alignment - file.position() % alignment) % alignment;
    if (llvm::Error error = file.write(std::string(padding, '\0')))
      return error;
    std::pair<const char *, std::string> entries[] = {
        {"location", name.str()},
        {"offset", std::to_string(file.position())},
        {"length", std::to_string(bytes)}};
    if (llvm::Error error = stream.writeNumbers(tensor, file))
      return error;
    tensor.clear_raw_data();
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto &[key, value] : entries) {
      tensor.add_external_data()->set_key(key);
      tensor.mutable_external_data()->rbegin()->set_value(value);
    }
  }
  return llvm::Error::success();
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

/// The file of numbers gets its name first: a model never names data that are
/// not there.
llvm::Error onnx_frontend::writeModel(ModelStream &stream,
                                      llvm::StringRef outPath,
                                      uint64_t mostBytes) {
  auto size = stream.size();
  if (!size)
    return withContext(size.takeError(), "cannot write '" + outPath + "'");
  std::optional<AtomicFile> data;
  if (*size > mostBytes) {
    std::string path = (outPath + ".data").str();
    auto file = AtomicFile::create(path);
    if (!file)
      return file.takeError();
    data.emplace(std::move(*file));
    if (llvm::Error error =
            writeExternal(stream, llvm::sys::path::filename(path), *data))
      return error;
    size = stream.size();
    if (!size || *size > mostBytes)
      return llvm::joinErrors(
          size.takeError(),
          inputError("cannot write '" + outPath +
                     "': without its weights the model is larger than the "
                     "2 GiB that an ONNX file can hold"));
  }
  return writeFileAtomically(outPath, [&](AtomicFile &file) -> llvm::Error {
    if (llvm::Error error = stream.write(file))
      return error;
    return data ? data->commit() : llvm::Error::success();
  });
}

/// Returns what changes besides weights.
static llvm::Expected<std::shared_ptr<const WriteBack>>
findWriteBack(llvm::StringRef path, const ExportOptions &options,
              const llvm::StringMap<size_t> &weights) {
  if (options.writeBack && options.writeBack->isOf(path) &&
      options.writeBack->hasAllValues(weights))
    return options.writeBack;
  auto model = readModel(path);
  if (!model)
    return model.takeError();
  GraphEdits edits = analyzeExport(*model).edits;
  return std::make_shared<WriteBack>(path, edits, model->graph,
                                     /*keepsValues=*/true);
}

static llvm::Error exportChecked(llvm::StringRef originalPath,
                                 llvm::StringRef outPath, TensorParts &weights,
                                 const ExportOptions &options) {
  auto stream = ModelStream::open(originalPath);
  if (!stream)
    return stream.takeError();
  Replacement replacement(*stream, originalPath, weights);
  auto changes = findWriteBack(originalPath, options, replacement.names());
  if (!changes)
    return changes.takeError();
  onnx::GraphProto &graph = *stream->model().mutable_graph();
  if (llvm::Error error = (*changes)->apply(graph))
    return withContext(std::move(error), "'" + originalPath + "'");
  if (llvm::Error error = replacement.replace(graph))
    return withContext(std::move(error), "'" + originalPath + "'");
  if (llvm::Error error = replacement.checkDone())
    return error;
  for (const auto &[key, value] : options.metadata)
    setMetadata(stream->model(), key, value);
  return writeModel(*stream, outPath, options.mostBytes);
}

llvm::Error onnx_frontend::exportModel(llvm::StringRef originalPath,
                                       llvm::StringRef outPath,
                                       TensorParts &weights,
                                       const ExportOptions &options) {
  try {
    return exportChecked(originalPath, outPath, weights, options);
  } catch (const std::bad_alloc &) {
    return inputError("'" + originalPath +
                      "' with its weights does not fit into memory");
  }
}

llvm::Error
onnx_frontend::exportModel(llvm::StringRef originalPath,
                           llvm::StringRef outPath,
                           const std::map<std::string, HostTensor> &weights,
                           const ExportOptions &options) {
  TensorMap tensors;
  for (const auto &[name, value] : weights)
    tensors.set(name, value);
  MapParts parts(tensors);
  return exportModel(originalPath, outPath, parts, options);
}
