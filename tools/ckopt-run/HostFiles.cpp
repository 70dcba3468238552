//===- HostFiles.cpp - arrays in files, without any library ---------------===//
//
// ckopt-run must not need more than the runtime, so it reads .npy by itself.
// Headers are untrusted: every length is checked against the file before use.
//
//===----------------------------------------------------------------------===//
#include "HostFiles.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <unistd.h>

using namespace ckopt;
using namespace ckopt::run;
using runtime::DType;

int64_t HostArray::elements() const {
  int64_t total = 1;
  for (int64_t extent : shape)
    total *= extent;
  return total;
}

std::string ckopt::run::shapeText(const int64_t *shape, int64_t rank) {
  std::string text;
  for (int64_t d = 0; d < rank; ++d)
    text += (d ? "x" : "") + std::to_string(shape[d]);
  return rank ? text : "scalar";
}

bool ckopt::run::readFile(const std::string &path, std::vector<char> &bytes,
                          std::string &error) {
  std::FILE *file = std::fopen(path.c_str(), "rb");
  if (!file) {
    error = path + ": " + std::strerror(errno);
    return false;
  }
  char block[1 << 16];
  bytes.clear();
  for (size_t got; (got = std::fread(block, 1, sizeof(block), file)) > 0;)
    bytes.insert(bytes.end(), block, block + got);
  bool whole = !std::ferror(file);
  if (!whole)
    error = path + ": " + std::strerror(errno);
  std::fclose(file);
  return whole;
}

bool ckopt::run::writeFile(const std::string &path,
                           const std::vector<char> &bytes, std::string &error) {
  std::string temporary = path + ".tmp" + std::to_string(getpid());
  std::FILE *file = std::fopen(temporary.c_str(), "wb");
  bool written =
      file && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  if (file && std::fflush(file) != 0)
    written = false;
  int reason = errno;
  if (file && std::fclose(file) != 0 && written) {
    written = false;
    reason = errno;
  }
  if (written && std::rename(temporary.c_str(), path.c_str()) != 0) {
    written = false;
    reason = errno;
  }
  if (!written) {
    std::remove(temporary.c_str());
    error = "cannot write " + path + ": " + std::strerror(reason);
  }
  return written;
}

//===----------------------------------------------------------------------===//
// .npy
//===----------------------------------------------------------------------===//

namespace {

struct NpyType {
  const char *code;
  DType dtype;
};

const NpyType kTypes[] = {
    {"<f8", DType::F64}, {"<f4", DType::F32}, {"<f2", DType::F16},
    {"<i8", DType::I64}, {"<i4", DType::I32}, {"<i2", DType::I16},
    {"|i1", DType::I8},  {"|u1", DType::U8},  {"|b1", DType::Bool},
    {"<u8", DType::U64}, {"<u4", DType::U32}, {"<u2", DType::U16}};

/// The text after `'key':` in the header's dictionary.
bool valueOf(const std::string &header, const std::string &key,
             std::string &value) {
  size_t at = header.find("'" + key + "'");
  at = at == std::string::npos ? at : header.find(':', at);
  if (at == std::string::npos)
    return false;
  at = header.find_first_not_of(' ', at + 1);
  if (at == std::string::npos)
    return false;
  value = header.substr(at);
  return true;
}

bool parseShape(const std::string &text, std::vector<int64_t> &shape) {
  if (text.empty() || text[0] != '(')
    return false;
  int64_t total = 1;
  for (size_t at = 1; at < text.size();) {
    if (text[at] == ')')
      return true;
    if (text[at] == ' ' || text[at] == ',') {
      ++at;
      continue;
    }
    int64_t extent = 0;
    size_t first = at;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
      if (__builtin_mul_overflow(extent, int64_t(10), &extent) ||
          __builtin_add_overflow(extent, int64_t(text[at] - '0'), &extent))
        return false;
    if (at == first || __builtin_mul_overflow(total, extent, &total))
      return false;
    shape.push_back(extent);
  }
  return false;
}

} // namespace

bool ckopt::run::parseNpy(const std::vector<char> &bytes, HostArray &array,
                          std::string &error) {
  error = "not a .npy file";
  if (bytes.size() < 12 || std::memcmp(bytes.data(), "\x93NUMPY", 6) != 0)
    return false;
  auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  bool first = byte(6) == 1;
  size_t start = first ? 10 : 12;
  size_t length = byte(8) | byte(9) << 8;
  if (!first)
    length |= size_t(byte(10)) << 16 | size_t(byte(11)) << 24;
  if (length > bytes.size() - start)
    return false;
  std::string header(bytes.data() + start, length), type, order, shape;
  if (!valueOf(header, "descr", type) || !valueOf(header, "shape", shape) ||
      !valueOf(header, "fortran_order", order))
    return false;
  if (order.compare(0, 5, "False") != 0) {
    error = "the array is in Fortran order; save numpy.ascontiguousarray of it";
    return false;
  }
  HostArray parsed;
  const NpyType *known = nullptr;
  for (const NpyType &candidate : kTypes)
    if (type.compare(1, 3, candidate.code) == 0)
      known = &candidate;
  if (!known) {
    error = "element type " + type.substr(0, 6) + " is not supported";
    return false;
  }
  parsed.dtype = known->dtype;
  if (!parseShape(shape, parsed.shape))
    return false;
  size_t left = bytes.size() - start - length;
  auto size = static_cast<size_t>(runtime::dtypeBytes(parsed.dtype));
  if (left % size != 0 ||
      left / size != static_cast<size_t>(parsed.elements())) {
    error = "the file holds " + std::to_string(left) +
            " bytes of data, shape " +
            shapeText(parsed.shape.data(),
                      static_cast<int64_t>(parsed.shape.size())) +
            " needs another number";
    return false;
  }
  parsed.data.assign(bytes.end() - static_cast<std::ptrdiff_t>(left),
                     bytes.end());
  array = std::move(parsed);
  return true;
}

std::vector<char> ckopt::run::formatNpy(const HostArray &array) {
  const char *code = "<f4";
  for (const NpyType &type : kTypes)
    if (type.dtype == array.dtype)
      code = type.code;
  std::string header = std::string("{'descr': '") + code +
                       "', 'fortran_order': False, 'shape': (";
  for (int64_t extent : array.shape)
    header += std::to_string(extent) + ",";
  header += "), }";
  // Data starts at a multiple of 64.
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 11, ' ');
  header += '\n';
  std::vector<char> bytes = {'\x93',
                             'N',
                             'U',
                             'M',
                             'P',
                             'Y',
                             1,
                             0,
                             static_cast<char>(header.size() & 0xFF),
                             static_cast<char>(header.size() >> 8)};
  bytes.insert(bytes.end(), header.begin(), header.end());
  bytes.insert(bytes.end(), array.data.begin(), array.data.end());
  return bytes;
}
