//===- ModelFile.cpp - bytes, protobuf messages and tensors ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files are mapped, not read; tensors stored as raw bytes become views of the
// parsed message or of the mapped external file. External data may lie only
// below the model's own folder, symbolic links resolved: a model file is
// untrusted input and must not make us read elsewhere (ONNX's document on
// external data security).
//
//===----------------------------------------------------------------------===//
#include "ModelFile.h"
#include "ckopt/Base/PrintableText.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/InputBuffer.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <climits>
#include <cstring>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <new>

using namespace ckopt;
using namespace ckopt::onnx_frontend;

//===----------------------------------------------------------------------===//
// The message
//===----------------------------------------------------------------------===//

static bool parseBytes(onnx::ModelProto &model, llvm::StringRef bytes) {
  // Protobuf prints complaints of its own, but ckopt's errors say more.
  auto *old = google::protobuf::SetLogHandler(nullptr);
  google::protobuf::io::ArrayInputStream raw(bytes.data(), int(bytes.size()));
  google::protobuf::io::CodedInputStream coded(&raw);
  coded.SetTotalBytesLimit(INT_MAX);
  bool ok = model.ParseFromCodedStream(&coded) && coded.ConsumedEntireMessage();
  google::protobuf::SetLogHandler(old);
  return ok;
}

llvm::Error onnx_frontend::checkNames(llvm::StringRef path,
                                      const google::protobuf::Message &from) {
  using Field = google::protobuf::FieldDescriptor;
  const auto &reader = *from.GetReflection();
  std::vector<const Field *> fields;
  reader.ListFields(from, &fields);
  for (const Field *field : fields) {
    bool isMessage = field->cpp_type() == Field::CPPTYPE_MESSAGE;
    // Texts for people have lines, and numbers of any kind are bytes.
    if (field->name() == "doc_string" || field->name() == "metadata_props" ||
        (!isMessage && field->type() != Field::TYPE_STRING))
      continue;
    bool isList = field->is_repeated();
    for (int i = 0, n = isList ? reader.FieldSize(from, field) : 1; i < n;
         ++i) {
      if (isMessage) {
        if (llvm::Error error = checkNames(
                path, isList ? reader.GetRepeatedMessage(from, field, i)
                             : reader.GetMessage(from, field)))
          return error;
        continue;
      }
      std::string fault =
          faultOfName(isList ? reader.GetRepeatedString(from, field, i)
                             : reader.GetString(from, field));
      if (!fault.empty())
        return inputError("'" + path + "': " + field->full_name() + ": " +
                          fault);
    }
  }
  return llvm::Error::success();
}

llvm::Expected<std::shared_ptr<llvm::MemoryBuffer>>
onnx_frontend::mapModelFile(llvm::StringRef path) {
  auto buffer = readInput(path);
  if (!buffer)
    return buffer.takeError();
  if ((*buffer)->getBufferSize() == 0)
    return inputError("'" + path + "' is empty: expected an ONNX model");
  if ((*buffer)->getBufferSize() > size_t(INT_MAX))
    return inputError("'" + path +
                      "' is larger than 2 GiB, the most that an ONNX file can "
                      "hold: store its weights as external data");
  return std::shared_ptr<llvm::MemoryBuffer>(std::move(*buffer));
}

llvm::Expected<std::shared_ptr<onnx::ModelProto>>
onnx_frontend::parseModel(llvm::StringRef path, llvm::StringRef bytes) {
  try {
    auto model = std::make_shared<onnx::ModelProto>();
    if (!parseBytes(*model, bytes))
      return inputError("'" + path +
                        "' is not an ONNX model, or is truncated or damaged");
    if (!model->has_graph() || !model->has_ir_version())
      return inputError("'" + path + "' is not an ONNX model: it has no " +
                        (model->has_graph() ? "IR version" : "graph"));
    if (llvm::Error error = checkNames(path, *model))
      return std::move(error);
    return model;
  } catch (const std::bad_alloc &) {
    return inputError("'" + path + "' does not fit into memory");
  }
}

llvm::Expected<std::shared_ptr<onnx::ModelProto>>
onnx_frontend::parseModelFile(llvm::StringRef path) {
  auto buffer = mapModelFile(path);
  if (!buffer)
    return buffer.takeError();
  return parseModel(path, (*buffer)->getBuffer());
}

//===----------------------------------------------------------------------===//
// Element types
//===----------------------------------------------------------------------===//

std::optional<DType> onnx_frontend::dtypeFromOnnx(int32_t type) {
  switch (type) {
  case onnx::TensorProto::DOUBLE:
    return DType::F64;
  case onnx::TensorProto::FLOAT:
    return DType::F32;
  case onnx::TensorProto::FLOAT16:
    return DType::F16;
  case onnx::TensorProto::BFLOAT16:
    return DType::BF16;
  case onnx::TensorProto::INT64:
    return DType::I64;
  case onnx::TensorProto::INT32:
    return DType::I32;
  case onnx::TensorProto::INT16:
    return DType::I16;
  case onnx::TensorProto::INT8:
    return DType::I8;
  case onnx::TensorProto::UINT64:
    return DType::U64;
  case onnx::TensorProto::UINT32:
    return DType::U32;
  case onnx::TensorProto::UINT16:
    return DType::U16;
  case onnx::TensorProto::UINT8:
    return DType::U8;
  case onnx::TensorProto::BOOL:
    return DType::Bool;
  default:
    return std::nullopt;
  }
}

int32_t onnx_frontend::dtypeToOnnx(DType type) {
  switch (type) {
  case DType::F64:
    return onnx::TensorProto::DOUBLE;
  case DType::F32:
    return onnx::TensorProto::FLOAT;
  case DType::F16:
    return onnx::TensorProto::FLOAT16;
  case DType::BF16:
    return onnx::TensorProto::BFLOAT16;
  case DType::I64:
    return onnx::TensorProto::INT64;
  case DType::I32:
    return onnx::TensorProto::INT32;
  case DType::I16:
    return onnx::TensorProto::INT16;
  case DType::I8:
    return onnx::TensorProto::INT8;
  case DType::U64:
    return onnx::TensorProto::UINT64;
  case DType::U32:
    return onnx::TensorProto::UINT32;
  case DType::U16:
    return onnx::TensorProto::UINT16;
  case DType::U8:
    return onnx::TensorProto::UINT8;
  case DType::Bool:
    return onnx::TensorProto::BOOL;
  }
  return onnx::TensorProto::UNDEFINED;
}

std::string onnx_frontend::onnxTypeName(int32_t type) {
  // Types that are newer than the schema that is compiled in.
  static constexpr const char *newer[] = {
      "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "uint4",
      "int4",         "float4e2m1",     "float8e8m0", "uint2",          "int2"};
  constexpr int32_t firstNewer = 17;
  if (auto known = dtypeFromOnnx(type))
    return dtypeName(*known);
  if (type >= firstNewer && type < firstNewer + int32_t(std::size(newer)))
    return newer[type - firstNewer];
  if (onnx::TensorProto::DataType_IsValid(type))
    return llvm::StringRef(onnx::TensorProto::DataType_Name(
                               onnx::TensorProto::DataType(type)))
        .lower();
  return "type " + std::to_string(type);
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

/// Returns the mapped bytes that an external tensor names, and their owner.
static llvm::Expected<
    std::pair<llvm::StringRef, std::shared_ptr<llvm::MemoryBuffer>>>
mapExternal(const onnx::TensorProto &tensor, llvm::StringRef modelPath,
            uint64_t bytesWanted, const llvm::Twine &what) {
  namespace path = llvm::sys::path;
  std::string location;
  uint64_t offset = 0, length = bytesWanted;
  for (const auto &entry : tensor.external_data()) {
    llvm::StringRef value = entry.value();
    bool bad = false;
    if (entry.key() == "location")
      location = value.str();
    else if (entry.key() == "offset")
      bad = value.getAsInteger(10, offset);
    else if (entry.key() == "length")
      bad = value.getAsInteger(10, length);
    if (bad)
      return inputError(what + ": external data has a malformed " +
                        entry.key() + " '" + value + "'");
  }
  if (location.empty() || path::is_absolute(location) ||
      llvm::StringRef(location).contains('\0') ||
      std::find(path::begin(location), path::end(location), "..") !=
          path::end(location))
    return inputError(what +
                      ": external data must name a file below the "
                      "model's own folder, not '" +
                      location + "'");
  llvm::SmallString<128> folder, full(path::parent_path(modelPath)), resolved;
  if (full.empty())
    full = ".";
  std::error_code error = llvm::sys::fs::real_path(full, folder);
  path::append(full, location);
  if (!error)
    error = llvm::sys::fs::real_path(full, resolved);
  if (error)
    return inputError(what + ": cannot open external data '" + full +
                      "': " + error.message());
  if (folder != "/")
    folder += '/';
  if (!resolved.starts_with(folder))
    return inputError(what + ": external data '" + full +
                      "' leads out of the model's folder");
  auto buffer = openInputBuffer(resolved);
  if (!buffer)
    return withContext(buffer.takeError(),
                       what + ": cannot read external data '" + full + "'");
  llvm::StringRef bytes = (*buffer)->getBuffer();
  if (offset > bytes.size() || bytes.size() - offset < bytesWanted ||
      length != bytesWanted)
    return inputError(what + ": external data '" + full + "' holds " +
                      llvm::Twine(bytes.size()) + " bytes; " +
                      llvm::Twine(bytesWanted) + " are needed from offset " +
                      llvm::Twine(offset));
  return std::make_pair(
      bytes.substr(offset, bytesWanted),
      std::shared_ptr<llvm::MemoryBuffer>(std::move(*buffer)));
}

std::string onnx_frontend::externalFile(const onnx::TensorProto &tensor,
                                        llvm::StringRef modelPath) {
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL)
    for (const auto &entry : tensor.external_data())
      if (entry.key() == "location") {
        llvm::SmallString<128> full(llvm::sys::path::parent_path(modelPath));
        llvm::sys::path::append(full, entry.value());
        return full.str().str();
      }
  return "";
}

/// Copies the elements of a typed field.
template <typename T, typename Field>
static void copyField(HostTensor &to, const Field &field) {
  auto out = to.mutableData<T>();
  for (int64_t i = 0; i < to.numElements(); ++i) {
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
      out[i] = T::fromBits(uint16_t(field.Get(int(i))));
    else
      out[i] = T(field.Get(int(i)));
  }
}

/// Returns the number of elements in the field that a tensor without raw bytes
/// uses.
static int64_t fieldSize(const onnx::TensorProto &tensor, DType type) {
  switch (type) {
  case DType::F64:
    return tensor.double_data_size();
  case DType::F32:
    return tensor.float_data_size();
  case DType::I64:
    return tensor.int64_data_size();
  case DType::U64:
  case DType::U32:
    return tensor.uint64_data_size();
  default:
    return tensor.int32_data_size();
  }
}

static void copyFields(HostTensor &to, const onnx::TensorProto &tensor) {
  dispatchDType(to.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_same_v<T, double>)
      copyField<T>(to, tensor.double_data());
    else if constexpr (std::is_same_v<T, float>)
      copyField<T>(to, tensor.float_data());
    else if constexpr (std::is_same_v<T, int64_t>)
      copyField<T>(to, tensor.int64_data());
    else if constexpr (std::is_same_v<T, uint64_t> ||
                       std::is_same_v<T, uint32_t>)
      copyField<T>(to, tensor.uint64_data());
    else
      copyField<T>(to, tensor.int32_data());
  });
}

/// Types that are newer than the schema that is compiled in.
static constexpr int32_t kUInt4 = 21, kInt4 = 22;

llvm::Expected<std::optional<Nibbles>>
onnx_frontend::readNibbles(const onnx::TensorProto &tensor,
                           const llvm::Twine &what) {
  if (tensor.data_type() != kUInt4 && tensor.data_type() != kInt4)
    return std::nullopt;
  Nibbles nibbles{{tensor.dims().begin(), tensor.dims().end()},
                  tensor.data_type() == kInt4};
  if (auto count = checkedNumElements(nibbles.shape); !count)
    return withContext(count.takeError(), what);
  return nibbles;
}

llvm::Expected<HostTensor>
onnx_frontend::readTensor(const onnx::TensorProto &tensor,
                          llvm::StringRef modelPath, const llvm::Twine &what,
                          std::shared_ptr<const void> keeper, bool nibbles) {
  auto type = dtypeFromOnnx(tensor.data_type());
  std::vector<int64_t> shape(tensor.dims().begin(), tensor.dims().end());
  auto packed = readNibbles(tensor, what);
  if (!packed)
    return packed.takeError();
  if (nibbles && *packed) {
    type = DType::U8;
    shape = {(llvm::cantFail(checkedNumElements(shape)) + 1) / 2};
  }
  if (!type)
    return makeError(ExitUnsupported, what + " has element type " +
                                          onnxTypeName(tensor.data_type()) +
                                          ", which ckopt does not handle");
  if (tensor.has_segment())
    return inputError(what + " is stored in segments, which ckopt does not "
                             "read");
  auto elements = checkedNumElements(shape, dtypeSize(*type));
  if (!elements)
    return withContext(elements.takeError(), what);
  uint64_t bytes = uint64_t(*elements) * uint64_t(dtypeSize(*type));
  auto sizeError = [&](uint64_t have, const char *unit, uint64_t want) {
    return inputError(what + " of type " + dtypeName(*type) + " and shape " +
                      shapeString(shape) + " needs " + llvm::Twine(want) + " " +
                      unit + ", the file holds " + llvm::Twine(have));
  };
  try {
    HostTensor result;
    if (tensor.data_location() == onnx::TensorProto::EXTERNAL) {
      auto mapped = mapExternal(tensor, modelPath, bytes, what);
      if (!mapped)
        return mapped.takeError();
      result =
          HostTensor::view(*type, shape, mapped->first.data(), mapped->second);
    } else if (tensor.has_raw_data()) {
      if (tensor.raw_data().size() != bytes)
        return sizeError(tensor.raw_data().size(), "bytes", bytes);
      result = HostTensor::view(*type, shape, tensor.raw_data().data(),
                                std::move(keeper));
    } else {
      if (fieldSize(tensor, *type) != *elements)
        return sizeError(uint64_t(fieldSize(tensor, *type)), "elements",
                         uint64_t(*elements));
      result = HostTensor(*type, shape);
      copyFields(result, tensor);
    }
    if (*type != DType::Bool)
      return result;
    // Reading a bool whose byte is neither 0 nor 1 is undefined behaviour.
    HostTensor clean(*type, shape);
    auto *out = static_cast<uint8_t *>(clean.mutableRawData());
    auto *in = static_cast<const uint8_t *>(result.rawData());
    for (int64_t i = 0; i < *elements; ++i)
      out[i] = in[i] != 0;
    return clean;
  } catch (const std::bad_alloc &) {
    return inputError(what + " of shape " + shapeString(shape) +
                      " does not fit into memory");
  }
}

void onnx_frontend::storeTensor(onnx::TensorProto &tensor,
                                const HostTensor &value) {
  tensor.clear_float_data();
  tensor.clear_int32_data();
  tensor.clear_int64_data();
  tensor.clear_double_data();
  tensor.clear_uint64_data();
  tensor.clear_external_data();
  tensor.clear_data_location();
  tensor.set_data_type(dtypeToOnnx(value.dtype()));
  tensor.clear_dims();
  for (int64_t size : value.shape())
    tensor.add_dims(size);
  tensor.set_raw_data(value.rawData(), size_t(value.sizeInBytes()));
}
