//===- Safetensors.cpp - reading the header of safetensors files ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A parser of JSON as the format restricts it: objects, strings, lists of
// sizes. It knows at each point which token must follow, so that nested input
// cannot make it recurse and a repeated key is an error, unlike in general
// parsers. Tensors must tile the data exactly, as the format demands, without
// overlaps, gaps or trailing bytes. O(header + tensors * log).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Base/Safetensors.h"
#include "ckopt/Base/ContentHash.h"
#include "ckopt/Base/PrintableText.h"
#include "ckopt/Base/Shape.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <tuple>

using namespace ckopt;
using std::string_view;

// The limit that the format sets.
static constexpr uint64_t kMaxHeader = 100 * 1000 * 1000;

namespace {

class HeaderReader {
public:
  HeaderReader(string_view text, SafetensorsHeader &header)
      : next(text.data()), end(next + text.size()), header(header) {}
  /// Parses the header; returns "" or an error.
  std::string run();

private:
  bool fail(std::string why) {
    if (problem.empty())
      problem = std::move(why);
    return false;
  }
  bool bad(const std::string &why) {
    return fail("bad safetensors header: " + why);
  }
  void skipSpace() {
    while (next < end &&
           string_view(" \t\r\n").find(*next) != string_view::npos)
      ++next;
  }
  bool peek(char c) {
    skipSpace();
    return next < end && *next == c;
  }
  bool accept(char c) {
    if (!peek(c))
      return false;
    ++next;
    return true;
  }
  bool readHex(uint32_t &code);
  bool readEscape(std::string &text);
  bool readString(std::string &text);
  template <typename T> bool readList(std::vector<T> &values);
  template <typename Fn> bool readObject(Fn readValue);
  bool readMetadata();
  bool readEntry(const std::string &name);
  bool readField(const std::string &tensor, const std::string &key,
                 SafetensorsEntry &entry);

  const char *next, *end;
  SafetensorsHeader &header;
  std::string problem;
};

void appendUtf8(std::string &text, uint32_t code) {
  if (code < 0x80) {
    text += char(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  text += char((0xff00 >> (more + 1)) | (code >> (6 * more)));
  for (int i = more; i-- > 0;)
    text += char(0x80 | ((code >> (6 * i)) & 0x3f));
}

/// Returns whether `text` is UTF-8: shortest forms, no surrogates, up to
/// U+10FFFF.
bool isUtf8(string_view text) {
  for (size_t at = 0; at < text.size();) {
    const uint8_t lead = uint8_t(text[at]);
    const size_t more = lead < 0x80                    ? 0
                        : lead >= 0xc2 && lead <= 0xdf ? 1
                        : (lead & 0xf0) == 0xe0        ? 2
                        : lead >= 0xf0 && lead <= 0xf4 ? 3
                                                       : 4;
    if (more == 4 || text.size() - at <= more)
      return false;
    uint32_t code = more ? lead & (0x3fu >> more) : lead;
    for (size_t i = 1; i <= more; ++i) {
      if ((uint8_t(text[at + i]) & 0xc0) != 0x80)
        return false;
      code = code << 6 | (uint8_t(text[at + i]) & 0x3f);
    }
    if ((more == 2 && (code < 0x800 || (code >= 0xd800 && code < 0xe000))) ||
        (more == 3 && (code < 0x10000 || code > 0x10ffff)))
      return false;
    at += more + 1;
  }
  return true;
}

} // namespace

bool HeaderReader::readHex(uint32_t &code) {
  if (end - next < 4)
    return false;
  const auto [last, failed] = std::from_chars(next, next + 4, code, 16);
  if (failed != std::errc() || last != next + 4)
    return false;
  next = last;
  return true;
}

/// Reads an escape after its backslash; surrogates must come in pairs.
bool HeaderReader::readEscape(std::string &text) {
  static constexpr string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
  if (next == end)
    return false;
  const char c = *next++;
  if (const size_t known = kFrom.find(c); known != string_view::npos) {
    text += kTo[known];
    return true;
  }
  uint32_t code = 0, low = 0;
  if (c != 'u' || !readHex(code))
    return false;
  if (code >= 0xd800 && code < 0xe000) {
    if (code >= 0xdc00 || !string_view(next, end).starts_with("\\u"))
      return false;
    next += 2;
    if (!readHex(low) || low < 0xdc00 || low >= 0xe000)
      return false;
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }
  appendUtf8(text, code);
  return true;
}

bool HeaderReader::readString(std::string &text) {
  text.clear();
  if (!accept('"'))
    return bad("a string is missing");
  while (next < end && *next != '"') {
    const char c = *next++;
    if (uint8_t(c) < 0x20 || (c == '\\' && !readEscape(text)))
      return bad("a string is not valid");
    if (c != '\\')
      text += c;
  }
  if (!accept('"'))
    return bad("a string does not end");
  return isUtf8(text) || bad("a string is not valid");
}

/// Reads a list of non-negative integers.
template <typename T> bool HeaderReader::readList(std::vector<T> &values) {
  values.clear();
  if (!accept('['))
    return false;
  if (accept(']'))
    return true;
  do {
    T value = 0;
    if (peek('-'))
      return false;
    const auto [last, failed] = std::from_chars(next, end, value);
    if (failed != std::errc())
      return false;
    next = last;
    values.push_back(value);
  } while (accept(','));
  return accept(']');
}

/// Reads members, each key once; `readValue(key)` reads the value after the
/// colon.
template <typename Fn> bool HeaderReader::readObject(Fn readValue) {
  std::set<std::string> keys;
  ++next; // the caller has seen the brace
  if (accept('}'))
    return true;
  do {
    std::string key;
    if (!readString(key))
      return false;
    if (std::string fault = faultOfName(key); !fault.empty())
      return bad(fault);
    if (!accept(':'))
      return bad("no ':' follows '" + key + "'");
    if (!keys.insert(key).second)
      return bad("'" + key + "' appears twice");
    if (!readValue(key))
      return false;
  } while (accept(','));
  return accept('}') || bad("an object does not end");
}

bool HeaderReader::readMetadata() {
  if (!peek('{'))
    return fail("__metadata__ is not an object");
  return readObject([&](const std::string &key) {
    if (!peek('"'))
      return fail("metadata '" + key + "' is not a string");
    return readString(header.metadata[key]);
  });
}

bool HeaderReader::readField(const std::string &tensor, const std::string &key,
                             SafetensorsEntry &entry) {
  if (key == "shape")
    return readList(entry.shape) ||
           fail(tensor + ": its shape is not a list of sizes");
  if (key == "data_offsets") {
    std::vector<uint64_t> offsets;
    if (!readList(offsets) || offsets.size() != 2)
      return fail(tensor + ": data_offsets is not a pair of offsets");
    entry.begin = offsets[0];
    entry.end = offsets[1];
    return true;
  }
  if (key != "dtype")
    return fail(tensor + ": unknown key '" + key + "'");
  std::string type;
  if (!readString(type))
    return false;
  if (auto dtype = findDType(type, &DTypeRow::safetensors)) {
    entry.dtype = *dtype;
    return true;
  }
  return fail(tensor + ": element type '" + printable(type) +
              "' is not supported (F64 F32 F16 BF16 I64 I32 I16 I8 U64 U32 "
              "U16 U8 BOOL are)");
}

/// Reads one tensor's entry; sizes are checked against its own shape only.
bool HeaderReader::readEntry(const std::string &name) {
  const std::string tensor = "tensor '" + name + "'";
  if (!peek('{'))
    return next == end ? bad("it ends early")
                       : fail(tensor + ": its description is not an object");
  SafetensorsEntry entry;
  entry.name = name;
  int fields = 0;
  if (!readObject([&](const std::string &key) {
        ++fields;
        return readField(tensor, key, entry);
      }))
    return false;
  if (fields != 3)
    return fail(tensor + ": dtype, shape or data_offsets is missing");
  int64_t count = 0;
  const std::string error =
      countElements(entry.shape, dtypeSize(entry.dtype), count);
  if (!error.empty())
    return fail(tensor + ": " + error);
  const uint64_t size = uint64_t(count * dtypeSize(entry.dtype));
  if (entry.end < entry.begin || entry.end - entry.begin != size)
    return fail(tensor + ": " + dtypeName(entry.dtype) + " " +
                shapeString(entry.shape) + " takes " + std::to_string(size) +
                " bytes, its data_offsets are [" + std::to_string(entry.begin) +
                ", " + std::to_string(entry.end) + "]");
  header.tensors.push_back(std::move(entry));
  return true;
}

std::string HeaderReader::run() {
  const bool whole = readObject([&](const std::string &key) {
    return key == "__metadata__" ? readMetadata() : readEntry(key);
  });
  skipSpace();
  if (whole && next != end)
    bad("text follows the object");
  return problem;
}

/// Checks that the tensors, sorted by offset, tile `size` bytes.
static std::string checkTiling(const std::vector<SafetensorsEntry> &tensors,
                               uint64_t size) {
  uint64_t at = 0;
  for (const SafetensorsEntry &tensor : tensors) {
    const std::string name = "tensor '" + tensor.name + "'";
    if (tensor.end > size)
      return name + " ends at byte " + std::to_string(tensor.end) +
             " of the data, the file has " + std::to_string(size) +
             " (truncated?)";
    if (tensor.begin < at)
      return name + " overlaps the tensor before it";
    if (tensor.begin > at)
      return name + " leaves a hole of " + std::to_string(tensor.begin - at) +
             " bytes before it";
    at = tensor.end;
  }
  return at == size
             ? ""
             : std::to_string(size - at) + " bytes follow the last tensor";
}

/// A checksum of a header with zeros where it says its own.
static uint64_t hashWithoutOwn(string_view text) {
  std::string copy(text);
  // Within a string the quotes would follow a backslash.
  const std::string mark = '"' + std::string(kChecksumKey) + "\":\"";
  const size_t digits = hexText(0).size();
  if (size_t at = copy.find(mark); at != std::string::npos)
    for (size_t i = at + mark.size(), last = i + digits;
         i < last && i < copy.size(); ++i)
      copy[i] = '0';
  return ContentHash::of(copy.data(), copy.size());
}

void ckopt::addHeaderChecksum(string_view header, StringMetadata &metadata) {
  metadata[kChecksumKey] = hexText(hashWithoutOwn(header));
}

/// Takes the checksums out of the metadata; compares that of the header.
static std::string takeChecksums(string_view text, SafetensorsHeader &header) {
  StringMetadata &metadata = header.metadata;
  if (auto own = metadata.find(kChecksumKey); own != metadata.end()) {
    if (own->second != hexText(hashWithoutOwn(text)))
      return "damaged: its header has another checksum than it says (a program "
             "that changes the file must leave out the metadata '" +
             std::string(kChecksumKey) + "*')";
    header.hasChecksum = true;
    metadata.erase(own);
  }
  const std::string prefix = std::string(kChecksumKey) + ".";
  for (SafetensorsEntry &tensor : header.tensors) {
    auto found = metadata.find(prefix + tensor.name);
    if (found == metadata.end())
      continue;
    const std::string &digits = found->second;
    const char *last = digits.data() + digits.size();
    auto [end, code] =
        std::from_chars(digits.data(), last, tensor.hash.emplace(), 16);
    if (code != std::errc() || end != last)
      return "damaged: the checksum of tensor '" + tensor.name + "' is '" +
             digits + "'";
    metadata.erase(found);
  }
  return "";
}

std::string ckopt::parseSafetensorsHeader(string_view bytes,
                                          SafetensorsHeader &header) {
  header = {};
  if (bytes.size() < 8)
    return "not a safetensors file: shorter than 8 bytes";
  uint64_t size = 0;
  for (int i = 0; i < 8; ++i)
    size |= uint64_t(uint8_t(bytes[size_t(i)])) << (8 * i);
  if (size > kMaxHeader || size < 2 || (bytes.size() > 8 && bytes[8] != '{'))
    return "not a safetensors file";
  if (size > bytes.size() - 8)
    return "truncated safetensors file: a header of " + std::to_string(size) +
           " bytes is cut off";
  std::string error = HeaderReader(bytes.substr(8, size), header).run();
  if (error.empty())
    error = takeChecksums(bytes.substr(0, 8 + size), header);
  if (!error.empty())
    return error;
  // Empty tensors may share an offset with others, so names break ties.
  std::sort(header.tensors.begin(), header.tensors.end(),
            [](const SafetensorsEntry &a, const SafetensorsEntry &b) {
              return std::tie(a.begin, a.end, a.name) <
                     std::tie(b.begin, b.end, b.name);
            });
  header.data = bytes.substr(8 + size);
  return checkTiling(header.tensors, header.data.size());
}
