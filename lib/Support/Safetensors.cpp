//===- Safetensors.cpp - reading safetensors ------------------------------===//
//
// The header is checked in full before any byte of data is looked at. JSON
// parsers keep one of two equal keys silently and recurse as deep as the text
// does, so a scan of the raw text first refuses duplicates and depth. Tensors
// must tile the data exactly, as the format demands: no overlap, no hole, no
// rest. O(header + number of tensors * log); data is mapped, not read.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/Safetensors.h"
#include "ckopt/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstring>

using namespace llvm;

namespace ckopt {

static constexpr uint64_t maxHeader = 100 * 1000 * 1000; // the format's own

namespace {

/// Refuses what the JSON parser would let through: the same key twice in one
/// object, and nesting that the format does not have.
class KeyScan {
public:
  KeyScan(StringRef text) : text(text) {}
  /// What is wrong, or an empty string.
  std::string run();

private:
  struct Level {
    bool object;
    bool expectKey;
    StringSet<> keys;
  };
  bool scanString(std::string &problem);

  StringRef text;
  size_t at = 0;
  std::vector<Level> levels;
};

} // namespace

/// From the opening quote past the closing one; a key is looked up.
bool KeyScan::scanString(std::string &problem) {
  const size_t start = at++;
  while (at < text.size() && text[at] != '"')
    at += text[at] == '\\' ? 2 : 1;
  if (at >= text.size()) {
    problem = "a string does not end";
    return false;
  }
  ++at;
  if (levels.empty() || !levels.back().expectKey)
    return true;
  levels.back().expectKey = false;
  Expected<json::Value> key = json::parse(text.substr(start, at - start));
  if (!key || !key->getAsString()) {
    consumeError(key.takeError());
    problem = "a key is not a valid string";
    return false;
  }
  if (!levels.back().keys.insert(*key->getAsString()).second) {
    problem = ("'" + *key->getAsString() + "' appears twice").str();
    return false;
  }
  return true;
}

std::string KeyScan::run() {
  std::string problem;
  while (at < text.size()) {
    switch (text[at]) {
    case '"':
      if (!scanString(problem))
        return problem;
      continue;
    case '{':
    case '[':
      if (levels.size() == 3)
        return "values are nested deeper than a tensor's description";
      levels.push_back({text[at] == '{', text[at] == '{', {}});
      break;
    case '}':
    case ']':
      if (levels.empty())
        return "a bracket closes nothing";
      levels.pop_back();
      break;
    case ',':
      if (!levels.empty())
        levels.back().expectKey = levels.back().object;
      break;
    default:
      break;
    }
    ++at;
  }
  return problem;
}

static std::optional<DType> parseSafetensorsType(StringRef name) {
  static const std::pair<const char *, DType> known[] = {
      {"F64", DType::F64},   {"F32", DType::F32}, {"F16", DType::F16},
      {"BF16", DType::BF16}, {"I64", DType::I64}, {"I32", DType::I32},
      {"I16", DType::I16},   {"I8", DType::I8},   {"U64", DType::U64},
      {"U32", DType::U32},   {"U16", DType::U16}, {"U8", DType::U8},
      {"BOOL", DType::Bool}};
  for (const auto &[text, type] : known)
    if (name == text)
      return type;
  return std::nullopt;
}

namespace {
struct Described {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;
};
} // namespace

/// One tensor's entry; sizes are checked against its own shape only.
static Expected<Described> parseEntry(StringRef name, const json::Value &value,
                                      StringRef what) {
  const std::string tensor = (what + ": tensor '" + name + "'").str();
  const json::Object *entry = value.getAsObject();
  if (!entry)
    return inputError(tensor + ": its description is not an object");
  for (const auto &field : *entry)
    if (field.first != "dtype" && field.first != "shape" &&
        field.first != "data_offsets")
      return inputError(tensor + ": unknown key '" + field.first.str() + "'");
  Described result;
  result.name = name.str();
  const std::optional<StringRef> type = entry->getString("dtype");
  const json::Array *shape = entry->getArray("shape");
  const json::Array *offsets = entry->getArray("data_offsets");
  if (!type || !shape || !offsets)
    return inputError(tensor + ": dtype, shape or data_offsets is missing");
  const std::optional<DType> dtype = parseSafetensorsType(*type);
  if (!dtype)
    return inputError(tensor + ": element type '" + *type +
                      "' is not supported (F64 F32 F16 BF16 I64 I32 I16 I8 "
                      "U64 U32 U16 U8 BOOL are)");
  result.dtype = *dtype;
  for (const json::Value &extent : *shape) {
    const std::optional<int64_t> size = extent.getAsInteger();
    if (!size || *size < 0)
      return inputError(tensor + ": its shape is not a list of sizes");
    result.shape.push_back(*size);
  }
  if (offsets->size() != 2 || !(*offsets)[0].getAsUINT64() ||
      !(*offsets)[1].getAsUINT64())
    return inputError(tensor + ": data_offsets is not a pair of offsets");
  result.begin = *(*offsets)[0].getAsUINT64();
  result.end = *(*offsets)[1].getAsUINT64();
  Expected<int64_t> count = checkedNumElements(result.shape, dtypeSize(*dtype));
  if (!count)
    return withContext(count.takeError(), tensor);
  const uint64_t size = uint64_t(*count * dtypeSize(*dtype));
  if (result.end < result.begin || result.end - result.begin != size)
    return inputError(tensor + ": " + dtypeName(*dtype) + " " +
                      shapeString(result.shape) + " takes " + Twine(size) +
                      " bytes, its data_offsets are [" + Twine(result.begin) +
                      ", " + Twine(result.end) + "]");
  return result;
}

static Error parseMetadata(const json::Value &value, StringMetadata &metadata,
                           StringRef what) {
  const json::Object *object = value.getAsObject();
  if (!object)
    return inputError(what + ": __metadata__ is not an object");
  for (const auto &field : *object) {
    const std::optional<StringRef> text = field.second.getAsString();
    if (!text)
      return inputError(what + ": metadata '" + field.first.str() +
                        "' is not a string");
    metadata[field.first.str()] = text->str();
  }
  return Error::success();
}

/// Tensors, sorted by offset, must tile `size` bytes.
static Error checkTiling(ArrayRef<Described> tensors, uint64_t size,
                         StringRef what) {
  uint64_t at = 0;
  for (const Described &tensor : tensors) {
    const std::string name = (what + ": tensor '" + tensor.name + "'").str();
    if (tensor.end > size)
      return inputError(name + " ends at byte " + Twine(tensor.end) +
                        " of the data, the file has " + Twine(size) +
                        " (truncated?)");
    if (tensor.begin < at)
      return inputError(name + " overlaps the tensor before it");
    if (tensor.begin > at)
      return inputError(name + " leaves a hole of " + Twine(tensor.begin - at) +
                        " bytes before it");
    at = tensor.end;
  }
  if (at != size)
    return inputError(what + ": " + Twine(size - at) +
                      " bytes follow the last tensor");
  return Error::success();
}

static HostTensor makeView(const Described &tensor, const char *data,
                           std::shared_ptr<MemoryBuffer> keeper) {
  if (tensor.dtype != DType::Bool)
    return HostTensor::view(tensor.dtype, tensor.shape, data + tensor.begin,
                            std::move(keeper));
  // Any byte but 0 and 1 would be no valid bool in C++.
  HostTensor flags(DType::Bool, tensor.shape);
  uint8_t *target = static_cast<uint8_t *>(flags.mutableRawData());
  for (uint64_t i = 0; i < tensor.end - tensor.begin; ++i)
    target[i] = data[tensor.begin + i] != 0;
  return flags;
}

/// The header's text, or why there is none.
static Expected<StringRef> findHeader(StringRef bytes, StringRef what) {
  if (bytes.size() < 8)
    return inputError(what + ": not a safetensors file: shorter than 8 bytes");
  const uint64_t size = support::endian::read64le(bytes.data());
  if (size > maxHeader || size < 2 || (bytes.size() > 8 && bytes[8] != '{'))
    return inputError(what + ": not a safetensors file");
  if (size > bytes.size() - 8)
    return inputError(what + ": truncated safetensors file: a header of " +
                      Twine(size) + " bytes is cut off");
  return bytes.substr(8, size);
}

Expected<SafetensorsFile> parseSafetensors(std::shared_ptr<MemoryBuffer> buffer,
                                           StringRef what) {
  const StringRef bytes = buffer->getBuffer();
  Expected<StringRef> header = findHeader(bytes, what);
  if (!header)
    return header.takeError();
  const std::string problem = KeyScan(*header).run();
  if (!problem.empty())
    return inputError(what + ": bad safetensors header: " + problem);
  Expected<json::Value> value = json::parse(*header);
  if (!value)
    return inputError(
        what + ": bad safetensors header: " + toString(value.takeError()));
  const json::Object *object = value->getAsObject();
  if (!object)
    return inputError(what + ": bad safetensors header: not an object");

  SafetensorsFile file;
  std::vector<Described> tensors;
  for (const auto &field : *object) {
    if (field.first == "__metadata__") {
      if (Error error = parseMetadata(field.second, file.metadata, what))
        return std::move(error);
      continue;
    }
    Expected<Described> tensor = parseEntry(field.first, field.second, what);
    if (!tensor)
      return tensor.takeError();
    tensors.push_back(std::move(*tensor));
  }
  // json::Object has no order; empty tensors share an offset: names decide.
  llvm::sort(tensors, [](const Described &a, const Described &b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  const StringRef data = bytes.substr(8 + header->size());
  if (Error error = checkTiling(tensors, data.size(), what))
    return std::move(error);
  for (const Described &tensor : tensors)
    file.tensors.insert(tensor.name, makeView(tensor, data.data(), buffer));
  return file;
}

Expected<SafetensorsFile> readSafetensors(StringRef path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = MemoryBuffer::getFile(
      path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return inputError("cannot read '" + path +
                      "': " + buffer.getError().message());
  return parseSafetensors(std::move(*buffer), path);
}

} // namespace ckopt
