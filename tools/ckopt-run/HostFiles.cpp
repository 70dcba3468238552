//===- HostFiles.cpp - arrays in files, without any library ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads and writes arrays as plain bytes, since ckopt-run must not need more
// libraries than the runtime.
//
//===----------------------------------------------------------------------===//
#include "HostFiles.h"

#include "ckopt/Base/ContentHash.h"
#include "ckopt/Base/InputFile.h"
#include "ckopt/Base/Npy.h"
#include "ckopt/Base/ShardedFile.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
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
  const int opened = openInput(path, error);
  std::FILE *file = opened < 0 ? nullptr : fdopen(opened, "rb");
  if (!file) {
    error = path + ": " + error;
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
  // Devices and pipes are written to, and links kept.
  std::error_code none;
  std::string target = path;
  if (std::filesystem::is_symlink(path, none))
    target = std::filesystem::weakly_canonical(path, none).string();
  bool isOther = std::filesystem::exists(target, none) &&
                 !std::filesystem::is_regular_file(target, none);
  std::string temporary =
      isOther ? target : target + ".tmp" + std::to_string(getpid());
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
  if (written && !isOther &&
      std::rename(temporary.c_str(), target.c_str()) != 0) {
    written = false;
    reason = errno;
  }
  if (!written) {
    if (!isOther)
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

/// Adds a share's parts to the whole tensors, and their elements to `filled`.
static bool addShare(const std::string &file, const ShardFile &share,
                     std::map<std::string, HostArray> &whole,
                     std::map<std::string, int64_t> &filled,
                     std::string &error) {
  std::vector<char> bytes;
  if (!readFile(file, bytes, error))
    return false;
  SafetensorsHeader header;
  std::vector<ShardPart> parts;
  error = openShard({bytes.data(), bytes.size()}, share, header, parts);
  for (size_t i = 0; i < parts.size() && error.empty(); ++i) {
    const ShardPart &part = parts[i];
    std::string_view data =
        header.data.substr(header.tensors[i].begin,
                           header.tensors[i].end - header.tensors[i].begin);
    HostArray &array = whole[part.name];
    int64_t size = dtypeSize(part.dtype);
    if (!filled.count(part.name)) {
      array = {part.dtype, part.shape, {}};
      array.data.resize(size_t(array.elements() * size));
    }
    if (array.dtype != part.dtype || array.shape != part.shape)
      error = "tensor '" + part.name + "' differs from other shares";
    else if (ContentHash::of(data.data(), data.size()) != part.hash)
      error = "damaged: tensor '" + part.name + "' has another checksum";
    else
      std::copy(data.begin(), data.end(),
                array.data.begin() + part.begin * size);
    filled[part.name] += part.count;
  }
  if (!error.empty())
    error = file + ": " + error;
  return error.empty();
}

bool ckopt::run::readSafetensors(const std::string &path,
                                 std::vector<NamedArray> &arrays,
                                 std::string &error) {
  std::vector<char> bytes;
  SafetensorsHeader header;
  if (!readFile(path, bytes, error))
    return false;
  error = parseSafetensorsHeader({bytes.data(), bytes.size()}, header);
  std::vector<ShardFile> shares;
  if (error.empty() && isShardIndex(header.metadata))
    error = parseShards(header.metadata, shares);
  else if (error.empty() && isShare(header.metadata))
    error = "one rank's share of a checkpoint; give the checkpoint itself";
  else if (error.empty())
    parseSafetensors(bytes, arrays, error);
  if (!error.empty())
    error = path + ": " + error;
  std::map<std::string, HostArray> whole;
  std::map<std::string, int64_t> filled;
  std::string folder;
  if (!shares.empty()) // beside the file that a link names
    folder = shardFolder(std::filesystem::canonical(path).string());
  for (const ShardFile &share : shares)
    if (error.empty() &&
        !addShare(folder + "/" + share.name, share, whole, filled, error))
      return false;
  for (auto &[name, array] : whole) {
    if (error.empty() && filled[name] != array.elements())
      error = path + ": tensor '" + name + "' is not whole in its shares";
    arrays.push_back({name, std::move(array)});
  }
  return error.empty();
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
    if (tensor.hash &&
        ContentHash::of(data.data(), data.size()) != *tensor.hash)
      error = "damaged: tensor '" + tensor.name + "' has another checksum";
    arrays.push_back({std::move(tensor.name),
                      {tensor.dtype, std::move(tensor.shape),
                       std::vector<char>(data.begin(), data.end())}});
  }
  return error.empty();
}
