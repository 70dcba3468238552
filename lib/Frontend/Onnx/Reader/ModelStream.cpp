//===- ModelStream.cpp - a model without its large numbers ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: change a file of any size in memory for its graph alone. Protobuf
// parses and serializes messages whole. Method: the bytes of the file are
// walked, and each large field of raw data is replaced by a mark before the
// message is parsed; the bytes of the changed message are walked again, and
// each mark is replaced by what it stands for while they are written. Lengths
// of the messages around it follow. Guarantee: what is written is what
// protobuf serializes of the whole message. Bytes that are no message stay as
// they are, for the parser to refuse. O(bytes) time, O(bytes of the graph)
// memory.
//
//===----------------------------------------------------------------------===//
#include "ModelStream.h"
#include "ckopt/Support/Error.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MemoryBuffer.h"
#include <climits>
#include <optional>
#include <random>

using namespace ckopt;
using namespace ckopt::onnx_frontend;
using llvm::StringRef;

namespace {
/// Messages that tensors lie in.
enum class Kind { Model, Graph, Function, Node, Attribute, Tensor, Other };
/// Deeper than protobuf parses.
constexpr int kDeepest = 200;
constexpr uint64_t kRawData = 9; ///< of a tensor

/// Returns what a field of bytes holds, by its number in onnx.proto.
Kind kindOf(Kind kind, uint64_t number) {
  switch (kind) {
  case Kind::Model:
    return number == 7    ? Kind::Graph
           : number == 25 ? Kind::Function
                          : Kind::Other;
  case Kind::Graph:
    return number == 1 ? Kind::Node : number == 5 ? Kind::Tensor : Kind::Other;
  case Kind::Function:
    return number == 7 ? Kind::Node : Kind::Other;
  case Kind::Node:
    return number == 5 ? Kind::Attribute : Kind::Other;
  case Kind::Attribute:
    return number == 5 || number == 10   ? Kind::Tensor
           : number == 6 || number == 11 ? Kind::Graph
                                         : Kind::Other;
  default:
    return Kind::Other;
  }
}

struct Field {
  uint64_t number = 0;
  bool hasBytes = false;
  StringRef tag, whole, bytes;
};

bool takeVarint(StringRef &rest, uint64_t &value) {
  value = 0;
  for (unsigned shift = 0; shift < 64 && !rest.empty(); shift += 7) {
    auto byte = uint8_t(rest.front());
    rest = rest.drop_front();
    value |= uint64_t(byte & 127) << shift;
    if (byte < 128)
      return true;
  }
  return false;
}

/// Takes the next field; false: none begins here that this code knows.
bool takeField(StringRef &rest, Field &field) {
  StringRef at = rest;
  uint64_t tag = 0, value = 0;
  if (!takeVarint(at, tag))
    return false;
  field.number = tag >> 3;
  field.tag = rest.drop_back(at.size());
  field.hasBytes = false;
  size_t skip = 0;
  switch (tag & 7) {
  case 0:
    if (!takeVarint(at, value))
      return false;
    break;
  case 1:
    skip = 8;
    break;
  case 2:
    if (!takeVarint(at, value) || value > at.size())
      return false;
    field.hasBytes = true;
    field.bytes = at.take_front(size_t(value));
    skip = size_t(value);
    break;
  case 5:
    skip = 4;
    break;
  default:
    return false;
  }
  if (skip > at.size())
    return false;
  at = at.drop_front(skip);
  field.whole = rest.drop_back(at.size());
  rest = at;
  return true;
}

std::string varint(uint64_t value) {
  std::string text;
  for (; value >= 128; value >>= 7)
    text += char(value | 128);
  return text += char(value);
}

/// Copies a message with other raw data in its tensors.
class Walk {
public:
  virtual ~Walk() = default;
  uint64_t sizeOf(StringRef message, Kind kind, int depth = 0);
  llvm::Error copy(StringRef message, Kind kind, int depth = 0);

protected:
  /// Returns how many bytes stand for this raw data; nothing: itself.
  virtual std::optional<uint64_t> sizeOfOther(StringRef rawData) = 0;
  virtual llvm::Error writeOther(StringRef rawData) = 0;
  virtual llvm::Error write(StringRef bytes) = 0;

private:
  /// Returns the length of the field's bytes where they are not as they were.
  std::optional<uint64_t> otherLength(const Field &field, Kind kind,
                                      int depth) {
    Kind inner = kindOf(kind, field.number);
    if (!field.hasBytes || depth > kDeepest)
      return std::nullopt;
    if (kind == Kind::Tensor && field.number == kRawData)
      return sizeOfOther(field.bytes);
    if (inner == Kind::Other)
      return std::nullopt;
    return sizeOf(field.bytes, inner, depth + 1);
  }
};
} // namespace

uint64_t Walk::sizeOf(StringRef message, Kind kind, int depth) {
  uint64_t size = 0;
  Field field;
  while (takeField(message, field)) {
    auto length = otherLength(field, kind, depth);
    size += length ? field.tag.size() + varint(*length).size() + *length
                   : field.whole.size();
  }
  return size + message.size();
}

llvm::Error Walk::copy(StringRef message, Kind kind, int depth) {
  Field field;
  while (takeField(message, field)) {
    auto length = otherLength(field, kind, depth);
    if (!length) {
      if (llvm::Error error = write(field.whole))
        return error;
      continue;
    }
    if (llvm::Error error = write(field.tag.str() + varint(*length)))
      return error;
    Kind inner = kindOf(kind, field.number);
    if (llvm::Error error = inner == Kind::Other
                                ? writeOther(field.bytes)
                                : copy(field.bytes, inner, depth + 1))
      return error;
  }
  return write(message);
}

/// Replaces large raw data by marks.
class ModelStream::Skeleton : public Walk {
public:
  Skeleton(ModelStream &stream, std::shared_ptr<llvm::MemoryBuffer> buffer)
      : stream(stream), buffer(std::move(buffer)) {}
  std::string result;

private:
  std::optional<uint64_t> sizeOfOther(StringRef rawData) override {
    if (rawData.size() < kLarge)
      return std::nullopt;
    return stream.mark.size() + sizeof(uint64_t);
  }
  llvm::Error writeOther(StringRef rawData) override {
    result += stream.add(
        {rawData.size(), [rawData, keeper = buffer](AtomicFile &file) {
           return file.write(rawData);
         }});
    return llvm::Error::success();
  }
  llvm::Error write(StringRef bytes) override {
    result += bytes;
    return llvm::Error::success();
  }

  ModelStream &stream;
  std::shared_ptr<llvm::MemoryBuffer> buffer;
};

/// Replaces marks by what they stand for.
class ModelStream::Splice : public Walk {
public:
  explicit Splice(const ModelStream &stream, AtomicFile *file = nullptr)
      : stream(stream), file(file) {}

private:
  std::optional<uint64_t> sizeOfOther(StringRef rawData) override {
    const Numbers *numbers = stream.find(rawData);
    return numbers ? std::optional(numbers->bytes) : std::nullopt;
  }
  llvm::Error writeOther(StringRef rawData) override {
    return stream.find(rawData)->fill(*file);
  }
  llvm::Error write(StringRef bytes) override { return file->write(bytes); }

  const ModelStream &stream;
  AtomicFile *file;
};

ModelStream::ModelStream() {
  std::random_device random;
  for (int i = 0; i < 6; ++i) {
    uint32_t word = random();
    mark.append(reinterpret_cast<const char *>(&word), sizeof(word));
  }
}

std::string ModelStream::add(Numbers added) {
  char number[sizeof(uint64_t)];
  llvm::support::endian::write64le(number, numbers.size());
  numbers.push_back(std::move(added));
  return mark + std::string(number, sizeof(number));
}

const ModelStream::Numbers *ModelStream::find(StringRef rawData) const {
  if (rawData.size() != mark.size() + sizeof(uint64_t) ||
      !rawData.consume_front(mark))
    return nullptr;
  return &numbers[llvm::support::endian::read64le(rawData.data())];
}

llvm::Expected<ModelStream> ModelStream::open(StringRef path) {
  auto buffer = mapModelFile(path);
  if (!buffer)
    return buffer.takeError();
  ModelStream result;
  Skeleton skeleton(result, *buffer);
  if (llvm::Error error = skeleton.copy((*buffer)->getBuffer(), Kind::Model))
    return std::move(error);
  auto proto = parseModel(path, skeleton.result);
  if (!proto)
    return proto.takeError();
  result.proto = std::move(*proto);
  return std::move(result);
}

void ModelStream::setNumbers(onnx::TensorProto &tensor, uint64_t bytes,
                             Fill fill) {
  tensor.set_raw_data(add({bytes, std::move(fill)}));
}

uint64_t ModelStream::sizeOfNumbers(const onnx::TensorProto &tensor) const {
  const Numbers *found = find(tensor.raw_data());
  return found ? found->bytes : tensor.raw_data().size();
}

llvm::Error ModelStream::writeNumbers(const onnx::TensorProto &tensor,
                                      AtomicFile &file) const {
  const Numbers *found = find(tensor.raw_data());
  return found ? found->fill(file) : file.write(tensor.raw_data());
}

llvm::Error ModelStream::serialize(std::string &bytes) const {
  if (proto->ByteSizeLong() > size_t(INT_MAX) ||
      !proto->SerializeToString(&bytes))
    return inputError("the model without its weights is larger than the 2 GiB "
                      "that an ONNX file can hold");
  return llvm::Error::success();
}

llvm::Expected<uint64_t> ModelStream::size() const {
  std::string bytes;
  if (llvm::Error error = serialize(bytes))
    return std::move(error);
  return Splice(*this).sizeOf(bytes, Kind::Model);
}

llvm::Error ModelStream::write(AtomicFile &file) const {
  std::string bytes;
  if (llvm::Error error = serialize(bytes))
    return error;
  return Splice(*this, &file).copy(bytes, Kind::Model);
}
