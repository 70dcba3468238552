//===- Safetensors.cpp - weights from a .safetensors file -----------------===//
//
// Eight bytes of header length, a JSON object name -> {dtype, shape,
// data_offsets}, then the bytes. The reader below takes JSON as the format
// restricts it (objects, strings, arrays of integers) and checks every offset.
//
//===----------------------------------------------------------------------===//
#include "HostFiles.h"

#include <cstdio>
#include <cstring>

using namespace ckopt;
using namespace ckopt::run;
using runtime::DType;

namespace {

class Cursor {
public:
  const char *next, *end;
  bool failed = false;

  void skipSpace() {
    while (next < end && std::strchr(" \t\r\n", *next))
      ++next;
  }
  bool accept(char c) {
    skipSpace();
    if (next >= end || *next != c)
      return false;
    ++next;
    return true;
  }
  void expect(char c) { failed |= !accept(c); }

  std::string string() {
    std::string text;
    expect('"');
    while (!failed && next < end && *next != '"') {
      if (*next == '\\') {
        escape(text);
        continue;
      }
      text += *next++;
    }
    expect('"');
    return text;
  }
  int64_t integer() {
    skipSpace();
    int64_t value = 0;
    const char *first = next;
    for (; next < end && *next >= '0' && *next <= '9'; ++next)
      if (__builtin_mul_overflow(value, int64_t(10), &value) ||
          __builtin_add_overflow(value, int64_t(*next - '0'), &value))
        failed = true;
    failed |= first == next;
    return value;
  }
  std::vector<int64_t> integers() {
    std::vector<int64_t> values;
    expect('[');
    if (accept(']'))
      return values;
    do
      values.push_back(integer());
    while (!failed && accept(','));
    expect(']');
    return values;
  }

private:
  void escape(std::string &text) {
    static const char kFrom[] = "\"\\/bfnrt", kTo[] = "\"\\/\b\f\n\r\t";
    if (end - next < 2) {
      failed = true;
      return;
    }
    char c = next[1];
    const char *known = c ? std::strchr(kFrom, c) : nullptr;
    next += 2;
    if (known) {
      text += kTo[known - kFrom];
      return;
    }
    // \u00XX: what writers use for control characters.
    unsigned code = 0;
    if (c != 'u' || end - next < 4 ||
        std::sscanf(std::string(next, 4).c_str(), "%4x", &code) != 1 ||
        code > 0x7F) {
      failed = true;
      return;
    }
    text += static_cast<char>(code);
    next += 4;
  }
};

bool dtypeOf(const std::string &name, DType &dtype) {
  static const struct {
    const char *name;
    DType dtype;
  } kTypes[] = {{"F64", DType::F64},   {"F32", DType::F32}, {"F16", DType::F16},
                {"BF16", DType::BF16}, {"I64", DType::I64}, {"I32", DType::I32},
                {"I16", DType::I16},   {"I8", DType::I8},   {"U8", DType::U8},
                {"U64", DType::U64},   {"U32", DType::U32}, {"U16", DType::U16},
                {"BOOL", DType::Bool}};
  for (const auto &type : kTypes)
    if (name == type.name) {
      dtype = type.dtype;
      return true;
    }
  return false;
}

struct Entry {
  std::string dtype;
  std::vector<int64_t> shape, offsets;
};

void parseEntry(Cursor &json, Entry &entry) {
  json.expect('{');
  if (json.accept('}'))
    return;
  do {
    std::string key = json.string();
    json.expect(':');
    if (key == "dtype")
      entry.dtype = json.string();
    else if (key == "shape")
      entry.shape = json.integers();
    else if (key == "data_offsets")
      entry.offsets = json.integers();
    else
      json.failed = true;
  } while (!json.failed && json.accept(','));
  json.expect('}');
}

void skipMetadata(Cursor &json) {
  json.expect('{');
  if (json.accept('}'))
    return;
  do {
    json.string();
    json.expect(':');
    json.string();
  } while (!json.failed && json.accept(','));
  json.expect('}');
}

bool takeEntry(const std::string &name, const Entry &entry, const char *data,
               size_t size, NamedArray &out, std::string &error) {
  out.name = name;
  out.array.shape = entry.shape;
  if (!dtypeOf(entry.dtype, out.array.dtype)) {
    error = "tensor '" + name + "': element type '" + entry.dtype +
            "' is not supported";
    return false;
  }
  int64_t bytes = runtime::dtypeBytes(out.array.dtype);
  bool sound = entry.offsets.size() == 2;
  for (int64_t extent : entry.shape)
    sound = sound && !__builtin_mul_overflow(bytes, extent, &bytes);
  sound = sound && entry.offsets[0] <= entry.offsets[1] &&
          static_cast<size_t>(entry.offsets[1]) <= size &&
          entry.offsets[1] - entry.offsets[0] == bytes;
  if (!sound) {
    error = "tensor '" + name + "': its offsets do not fit its shape or file";
    return false;
  }
  out.array.data.assign(data + entry.offsets[0], data + entry.offsets[1]);
  return true;
}

} // namespace

bool ckopt::run::parseSafetensors(const std::vector<char> &bytes,
                                  std::vector<NamedArray> &arrays,
                                  std::string &error) {
  uint64_t length = 0;
  if (bytes.size() >= 8)
    std::memcpy(&length, bytes.data(), 8);
  if (bytes.size() < 8 || length > bytes.size() - 8) {
    error = "not a .safetensors file, or cut short";
    return false;
  }
  const char *data = bytes.data() + 8 + length;
  size_t size = bytes.size() - 8 - length;
  Cursor json{bytes.data() + 8, data};
  json.expect('{');
  if (!json.accept('}')) {
    do {
      std::string name = json.string();
      json.expect(':');
      if (name == "__metadata__") {
        skipMetadata(json);
        continue;
      }
      Entry entry;
      parseEntry(json, entry);
      if (json.failed)
        break;
      arrays.emplace_back();
      if (!takeEntry(name, entry, data, size, arrays.back(), error))
        return false;
    } while (!json.failed && json.accept(','));
    json.expect('}');
  }
  if (json.failed)
    error = "the header of the .safetensors file is damaged";
  return !json.failed;
}
