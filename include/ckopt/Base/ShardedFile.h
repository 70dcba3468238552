//===- ShardedFile.h - tensors in one file for each rank --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: several processes write one set of tensors, each a share of it, so
// that a reader finds the whole set or none, and sees what is damaged. Method:
// an index, PATH, and files of shares in the folder PATH.shards, all of them
// safetensors. A share has parts of tensors under the tensors' names: whole
// rows keep their shape, other parts are vectors. Its metadata "part.NAME" say
// which elements they are, their checksum, and the whole shape. The index has
// no tensors: its metadata "ckopt.shard.N" name each file, with its length and
// the checksum of its header. So the index vouches for the headers, and they
// for the data; a reader checks what it reads, and nothing else.
// Files of one save have a number of their own in their names, so that those of
// the save before it stay until the new index has replaced the old one.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_BASE_SHARDEDFILE_H
#define CKOPT_BASE_SHARDEDFILE_H

#include "ckopt/Base/Safetensors.h"

namespace ckopt {

/// What metadata say under "ckopt.format".
inline constexpr const char *kFormatKey = "ckopt.format";
inline constexpr const char *kIndexFormat = "checkpoint-sharded-1";
inline constexpr const char *kShareFormat = "checkpoint-share-1";

/// What the index says of a share.
struct ShardFile {
  std::string name; ///< in the folder
  uint64_t bytes = 0, headerHash = 0;
};

/// A part of a tensor: elements [begin, begin + count) of the whole one, in
/// row-major order.
struct ShardPart {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape; ///< of the whole tensor
  int64_t begin = 0, count = 0;
  uint64_t hash = 0; ///< of its bytes
};

inline std::string shardFolder(const std::string &path) {
  return path + ".shards";
}
/// "save3-rank1of4.safetensors"
std::string shardName(int64_t save, int64_t rank, int64_t ranks);
/// Returns the save that a file of a share, or a temporary of one, belongs to;
/// -1: it is neither.
int64_t saveOfShard(std::string_view name);

/// The shape that a part has in its file.
std::vector<int64_t> partShape(const ShardPart &part);

/// Adds what the index says of its shares.
void describeShards(const std::vector<ShardFile> &files,
                    StringMetadata &metadata);
/// Adds what a share says of a part.
void describePart(const ShardPart &part, StringMetadata &metadata);

/// Tell whether a file's metadata are those of an index, or of a share.
bool isShardIndex(const StringMetadata &metadata);
bool isShare(const StringMetadata &metadata);
/// Inverses of the above; "" or what is wrong.
std::string parseShards(const StringMetadata &metadata,
                        std::vector<ShardFile> &files);
/// The parts of a share are in the order of the header's tensors.
std::string parseParts(const SafetensorsHeader &header,
                       std::vector<ShardPart> &parts);
/// Checks a share against what the index says of it, and parses its header.
std::string openShard(std::string_view bytes, const ShardFile &file,
                      SafetensorsHeader &header, std::vector<ShardPart> &parts);

/// The checksum of the header of a safetensors file, its length included.
uint64_t hashHeader(std::string_view bytes);

} // namespace ckopt

#endif // CKOPT_BASE_SHARDEDFILE_H
