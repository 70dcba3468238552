//===- HostFiles.cpp - arrays in files, without any library ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads and writes arrays as plain bytes, since ckopt-run must not need more
// libraries than the runtime.
//
//===----------------------------------------------------------------------===//
#include "HostFiles.h"

#include "ckopt/Base/Npy.h"
#include "ckopt/Base/Safetensors.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <unistd.h>

using namespace ckopt;
using namespace ckopt::run;

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

bool ckopt::run::parseNpy(const std::vector<char> &bytes, HostArray &array,
                          std::string &error) {
  NpyArray stored;
  error = parseNpyArray({bytes.data(), bytes.size()}, stored);
  if (!error.empty())
    return false;
  array = {stored.dtype, stored.shape, std::vector<char>(stored.data.size())};
  stored.copyTo(array.data.data());
  return true;
}

std::vector<char> ckopt::run::formatNpy(const HostArray &array) {
  const std::string header = npyHeader(array.dtype, array.shape);
  std::vector<char> bytes(header.begin(), header.end());
  bytes.insert(bytes.end(), array.data.begin(), array.data.end());
  return bytes;
}

bool ckopt::run::parseSafetensors(const std::vector<char> &bytes,
                                  std::vector<NamedArray> &arrays,
                                  std::string &error) {
  SafetensorsHeader header;
  error = parseSafetensorsHeader({bytes.data(), bytes.size()}, header);
  if (!error.empty())
    return false;
  for (SafetensorsEntry &tensor : header.tensors) {
    const std::string_view data =
        header.data.substr(tensor.begin, tensor.end - tensor.begin);
    arrays.push_back({std::move(tensor.name),
                      {tensor.dtype, std::move(tensor.shape),
                       std::vector<char>(data.begin(), data.end())}});
  }
  return true;
}
