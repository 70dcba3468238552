//===- ShardedFile.cpp - tensors in one file for each rank ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See the header. Numbers in metadata are decimal but for checksums, which are
// 16 hexadecimal digits; blanks part them. O(length of the metadata).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Base/ShardedFile.h"

#include "ckopt/Base/ContentHash.h"
#include "ckopt/Base/Shape.h"

#include <algorithm>
#include <charconv>

using namespace ckopt;
using std::string_view;

static constexpr string_view kSave = "save", kRank = "-rank", kOf = "of",
                             kEnding = ".safetensors", kPart = "part.";
static constexpr const char *kNumShards = "ckopt.shards";

static std::string shardKey(size_t number) {
  return "ckopt.shard." + std::to_string(number);
}

/// Takes a prefix off a text.
static bool accept(string_view &text, string_view prefix) {
  if (!text.starts_with(prefix))
    return false;
  text.remove_prefix(prefix.size());
  return true;
}

template <typename T>
static bool acceptNumber(string_view &text, T &value, int base = 10) {
  auto [end, code] =
      std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (code != std::errc() || text.starts_with('-'))
    return false;
  text.remove_prefix(size_t(end - text.data()));
  return true;
}

std::string ckopt::shardName(int64_t save, int64_t rank, int64_t ranks) {
  return std::string(kSave) + std::to_string(save) + std::string(kRank) +
         std::to_string(rank) + std::string(kOf) + std::to_string(ranks) +
         std::string(kEnding);
}

int64_t ckopt::saveOfShard(string_view name) {
  bool isTemporary = accept(name, "."); // ".NAME.tmp-PID-N"
  int64_t save = 0, rank = 0, ranks = 0;
  if (!accept(name, kSave) || !acceptNumber(name, save) ||
      !accept(name, kRank) || !acceptNumber(name, rank) || !accept(name, kOf) ||
      !acceptNumber(name, ranks) || !accept(name, kEnding))
    return -1;
  return isTemporary    ? name.starts_with(".tmp-") ? save : -1
         : name.empty() ? save
                        : -1;
}

/// The elements of an index of dimension 0.
static int64_t rowElements(const std::vector<int64_t> &shape) {
  int64_t elements = 1;
  for (size_t i = 1; i < shape.size(); ++i)
    elements *= shape[i];
  return elements;
}

std::vector<int64_t> ckopt::partShape(const ShardPart &part) {
  std::vector<int64_t> shape = part.shape;
  int64_t row = rowElements(shape);
  int64_t all = shape.empty() ? 1 : row * shape[0];
  if (part.count == all)
    return shape;
  if (!row || part.begin % row || part.count % row)
    return {part.count};
  shape[0] = part.count / row;
  return shape;
}

void ckopt::describeShards(const std::vector<ShardFile> &files,
                           StringMetadata &metadata) {
  metadata[kFormatKey] = kIndexFormat;
  metadata[kNumShards] = std::to_string(files.size());
  for (size_t i = 0; i < files.size(); ++i)
    metadata[shardKey(i)] = files[i].name + " " +
                            std::to_string(files[i].bytes) + " " +
                            hexText(files[i].headerHash);
}

void ckopt::describePart(const ShardPart &part, StringMetadata &metadata) {
  std::string text = std::to_string(part.begin) + " " + hexText(part.hash);
  for (int64_t size : part.shape)
    text += " " + std::to_string(size);
  metadata[std::string(kPart) + part.name] = std::move(text);
}

static bool hasFormat(const StringMetadata &metadata, string_view format) {
  auto found = metadata.find(kFormatKey);
  return found != metadata.end() && found->second == format;
}

bool ckopt::isShardIndex(const StringMetadata &metadata) {
  return hasFormat(metadata, kIndexFormat);
}

bool ckopt::isShare(const StringMetadata &metadata) {
  return hasFormat(metadata, kShareFormat);
}

std::string ckopt::parseShards(const StringMetadata &metadata,
                               std::vector<ShardFile> &files) {
  auto bad = [](const std::string &key, const std::string &value) {
    return "damaged index: '" + key + "' is '" + value + "'";
  };
  auto found = metadata.find(kNumShards);
  const std::string number = found == metadata.end() ? "" : found->second;
  string_view text = number;
  size_t count = 0;
  if (!acceptNumber(text, count) || !text.empty() || count < 1 || count > 65536)
    return bad(kNumShards, number);
  files.clear();
  for (size_t i = 0; i < count; ++i) {
    auto entry = metadata.find(shardKey(i));
    if (entry == metadata.end())
      return "damaged index: '" + shardKey(i) + "' is missing";
    ShardFile file;
    text = entry->second;
    size_t blank = text.find(' ');
    file.name = text.substr(0, blank);
    text.remove_prefix(file.name.size());
    // A name of another form could lead out of the folder.
    if (file.name.starts_with('.') || saveOfShard(file.name) < 0 ||
        !accept(text, " ") || !acceptNumber(text, file.bytes) ||
        !accept(text, " ") || !acceptNumber(text, file.headerHash, 16) ||
        !text.empty())
      return bad(entry->first, entry->second);
    files.push_back(std::move(file));
  }
  return "";
}

/// Parses one part, whose tensor's entry is known to be sound.
static bool parsePart(string_view text, const SafetensorsEntry &entry,
                      ShardPart &part) {
  if (!acceptNumber(text, part.begin) || !accept(text, " ") ||
      !acceptNumber(text, part.hash, 16))
    return false;
  while (accept(text, " "))
    if (!acceptNumber(text, part.shape.emplace_back()))
      return false;
  int64_t all = 0;
  if (!text.empty() ||
      !countElements(part.shape, dtypeSize(entry.dtype), all).empty())
    return false;
  part.name = entry.name;
  part.dtype = entry.dtype;
  part.count = int64_t(entry.end - entry.begin) / dtypeSize(entry.dtype);
  return part.begin <= all && part.count <= all - part.begin &&
         entry.shape == partShape(part);
}

std::string ckopt::parseParts(const SafetensorsHeader &header,
                              std::vector<ShardPart> &parts) {
  parts.clear();
  for (const SafetensorsEntry &entry : header.tensors) {
    auto found = header.metadata.find(std::string(kPart) + entry.name);
    if (found == header.metadata.end() ||
        !parsePart(found->second, entry, parts.emplace_back()))
      return "tensor '" + entry.name + "': it is not said which part it is";
  }
  return "";
}

std::string ckopt::openShard(string_view bytes, const ShardFile &file,
                             SafetensorsHeader &header,
                             std::vector<ShardPart> &parts) {
  if (bytes.size() != file.bytes)
    return "damaged: it has " + std::to_string(bytes.size()) +
           " bytes, its checkpoint says " + std::to_string(file.bytes);
  if (hashHeader(bytes) != file.headerHash)
    return "damaged, or of another checkpoint: its header has another checksum "
           "than its checkpoint says";
  std::string error = parseSafetensorsHeader(bytes, header);
  return error.empty() ? parseParts(header, parts) : error;
}

uint64_t ckopt::hashHeader(string_view bytes) {
  uint64_t size = 0;
  for (size_t i = 0; i < 8 && i < bytes.size(); ++i)
    size |= uint64_t(uint8_t(bytes[i])) << (8 * i);
  size_t header = size_t(std::min<uint64_t>(size, bytes.size())) + 8;
  return ContentHash::of(bytes.data(), std::min(header, bytes.size()));
}
