//===- Npy.cpp - the .npy format ------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file holds a magic, a version, the length of a header, the header (a Python
// dictionary literal with exactly the keys descr, fortran_order and shape), and
// the data. The header is parsed by a small strict parser of that grammar,
// never evaluated. O(bytes).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Base/Npy.h"
#include "ckopt/Base/PrintableText.h"
#include "ckopt/Base/Shape.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

using namespace ckopt;
using std::string_view;

static_assert(std::endian::native == std::endian::little);

namespace {

/// Parses the dictionary literal of the header. Functions return "" or an
/// error.
class HeaderParser {
public:
  HeaderParser(string_view text, NpyArray &array) : rest(text), array(array) {}

  std::string parse();

private:
  static std::string bad(const std::string &why) {
    return "bad .npy header: " + why;
  }
  void skipBlanks() {
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t\n"), rest.size()));
  }
  bool consume(string_view text) {
    skipBlanks();
    if (!rest.starts_with(text))
      return false;
    rest.remove_prefix(text.size());
    return true;
  }
  bool parseString(string_view &text);
  std::string parseValue(string_view key);
  std::string parseDescr();
  std::string parseShape();

  string_view rest;
  NpyArray &array;
};

} // namespace

bool HeaderParser::parseString(string_view &text) {
  skipBlanks();
  if (rest.empty() || (rest[0] != '\'' && rest[0] != '"'))
    return false;
  const size_t end = rest.find(rest[0], 1);
  if (end == string_view::npos)
    return false;
  text = rest.substr(1, end - 1);
  rest.remove_prefix(end + 1);
  return true;
}

std::string HeaderParser::parseDescr() {
  skipBlanks();
  if (rest.starts_with("["))
    return "a structured array; ckopt reads arrays of one number type only";
  string_view descr;
  if (!parseString(descr) || descr.size() < 2)
    return bad("'descr' is not a type string");
  array.swapped = descr[0] == '>';
  const bool ordered = string_view("<>|=").find(descr[0]) != string_view::npos;
  const string_view kind = descr.substr(ordered);
  for (uint32_t i = 0; i < numDTypes; ++i)
    if (kind == dtypeTable[i].npy + 1 ||
        (kind == "?" && DType(i) == DType::Bool)) {
      array.dtype = DType(i);
      return "";
    }
  const char *hint = "";
  if (kind.starts_with("O"))
    hint = " (Python objects: convert to a number array before saving)";
  else if (kind.starts_with("U") || kind.starts_with("S"))
    hint = " (text: convert to integer labels before saving)";
  else if (kind.starts_with("c"))
    hint = " (complex numbers: save real and imaginary parts apart)";
  return "element type '" + printable(descr) + "' is not supported" + hint +
         "; supported: f8 f4 f2 i8 i4 i2 i1 u8 u4 u2 u1 b1 and V2 (bfloat16)";
}

std::string HeaderParser::parseShape() {
  std::vector<int64_t> &shape = array.shape;
  if (!consume("("))
    return bad("'shape' is not a tuple");
  while (!consume(")")) {
    if (!shape.empty() && !consume(","))
      return bad("'shape' is not a tuple of integers");
    if (!shape.empty() && consume(")"))
      break;
    skipBlanks();
    int64_t extent = 0;
    const auto [end, failed] =
        std::from_chars(rest.data(), rest.data() + rest.size(), extent);
    if (failed != std::errc() || rest[0] == '-')
      return bad("'shape' is not a tuple of sizes");
    rest.remove_prefix(size_t(end - rest.data()));
    if (rest.starts_with("L")) // Python 2 wrote long integers with this suffix
      rest.remove_prefix(1);
    shape.push_back(extent);
    if (shape.size() > 64)
      return bad("more than 64 dimensions");
  }
  return "";
}

std::string HeaderParser::parseValue(string_view key) {
  if (key == "descr")
    return parseDescr();
  if (key == "shape")
    return parseShape();
  array.fortranOrder = consume("True");
  if (!array.fortranOrder && !consume("False"))
    return bad("'fortran_order' is neither True nor False");
  return "";
}

std::string HeaderParser::parse() {
  std::vector<string_view> missing = {"descr", "fortran_order", "shape"}, seen;
  if (!consume("{"))
    return bad("it is not a dictionary");
  while (!consume("}")) {
    string_view key;
    if (!parseString(key) || !consume(":"))
      return bad("a key is not a string");
    if (std::find(seen.begin(), seen.end(), key) != seen.end())
      return bad("key '" + std::string(key) + "' twice");
    if (std::erase(missing, key) == 0)
      return bad("unknown key '" + std::string(key) + "'");
    seen.push_back(key);
    if (std::string error = parseValue(key); !error.empty())
      return error;
    if (!consume(",")) {
      if (!consume("}"))
        return bad("it does not end in '}'");
      break;
    }
  }
  if (!missing.empty())
    return bad("it lacks descr, fortran_order or shape");
  skipBlanks();
  return rest.empty() ? "" : bad("text follows the dictionary");
}

/// The bytes before the data, of a file that has at least its first ones.
static size_t headerEnd(string_view bytes) {
  auto byte = [&](size_t i) { return size_t(uint8_t(bytes[i])); };
  const size_t length = byte(8) | byte(9) << 8;
  return byte(6) == 1 ? 10 + length
                      : 12 + (length | byte(10) << 16 | byte(11) << 24);
}

size_t ckopt::npyHeaderSize(string_view bytes) {
  bool known = bytes.starts_with("\x93NUMPY") && bytes.size() >= 12;
  return known ? headerEnd(bytes) : 0;
}

std::string ckopt::parseNpyHeader(string_view bytes, NpyArray &array,
                                  uint64_t &dataBytes) {
  array = {};
  if (!bytes.starts_with("\x93NUMPY"))
    return "not a .npy array (its first bytes are others)";
  auto byte = [&](size_t i) { return size_t(uint8_t(bytes[i])); };
  if (bytes.size() < 10)
    return "truncated .npy array: the header is missing";
  if (byte(6) < 1 || byte(6) > 3 || byte(7) != 0)
    return ".npy format " + std::to_string(byte(6)) + "." +
           std::to_string(byte(7)) + " is not supported (1.0, 2.0 and 3.0 are)";
  const size_t start = byte(6) == 1 ? 10 : 12;
  if (bytes.size() < start)
    return "truncated .npy array: the header is missing";
  const size_t length = headerEnd(bytes) - start;
  if (length > bytes.size() - start)
    return "truncated .npy array: a header of " + std::to_string(length) +
           " bytes is cut off";
  std::string error = HeaderParser(bytes.substr(start, length), array).parse();
  int64_t count = 0;
  const int64_t size = dtypeSize(array.dtype);
  if (error.empty())
    error = countElements(array.shape, size, count);
  if (!error.empty())
    return error;
  dataBytes = uint64_t(count) * uint64_t(size);
  return "";
}

std::string ckopt::parseNpyArray(string_view bytes, NpyArray &array) {
  uint64_t wanted = 0;
  std::string error = parseNpyHeader(bytes, array, wanted);
  if (!error.empty())
    return error;
  array.data = bytes.substr(headerEnd(bytes));
  if (array.data.size() == wanted)
    return "";
  return std::string(array.data.size() < wanted
                         ? "truncated .npy array: "
                         : "bytes after the .npy array: ") +
         dtypeName(array.dtype) + " " + shapeString(array.shape) + " takes " +
         std::to_string(wanted) + " bytes, the file has " +
         std::to_string(array.data.size());
}

/// Copies elements from column-major to row-major order.
static void copyFortranOrder(const NpyArray &stored, char *target) {
  const size_t size = size_t(dtypeSize(stored.dtype));
  const size_t rank = stored.shape.size();
  std::vector<int64_t> index(rank, 0), stride(rank, 1);
  for (size_t d = 1; d < rank; ++d)
    stride[d] = stride[d - 1] * stored.shape[d - 1];
  int64_t from = 0;
  for (size_t at = 0; at < stored.data.size(); at += size) {
    std::memcpy(target + at, stored.data.data() + size_t(from) * size, size);
    for (size_t d = rank; d-- > 0;) {
      from += stride[d];
      if (++index[d] < stored.shape[d])
        break;
      from -= stride[d] * stored.shape[d];
      index[d] = 0;
    }
  }
}

void NpyArray::copyTo(void *out) const {
  char *target = static_cast<char *>(out);
  if (fortranOrder)
    copyFortranOrder(*this, target);
  else if (!data.empty())
    std::memcpy(target, data.data(), data.size());
  const size_t size = size_t(dtypeSize(dtype));
  if (dtype == DType::Bool) // any other byte would be an invalid bool in C++
    for (size_t at = 0; at < data.size(); ++at)
      target[at] = target[at] != 0;
  else if (swapped)
    for (size_t at = 0; at < data.size(); at += size)
      std::reverse(target + at, target + at + size);
}

std::string ckopt::npyHeader(DType dtype, std::span<const int64_t> shape) {
  std::string text = std::string("{'descr': '") +
                     dtypeTable[uint32_t(dtype)].npy +
                     "', 'fortran_order': False, 'shape': (";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  text += shape.size() == 1 ? ",), }" : "), }";
  const bool large = text.size() + 10 + 64 > 65535;
  const size_t prefix = large ? 12 : 10;
  text.append(63 - (prefix + text.size()) % 64, ' ');
  text += '\n';
  std::string result("\x93NUMPY", 6);
  result += char(large ? 2 : 1);
  result += '\0';
  for (size_t i = 0; i < prefix - 8; ++i)
    result += char((text.size() >> (8 * i)) & 0xff);
  return result + text;
}
