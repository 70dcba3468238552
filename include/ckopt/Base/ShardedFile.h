//===- ShardedFile.h - tensors in one file for each rank --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: several processes write one set of tensors, each a share of it, so
// that a reader finds the whole set or none, and sees what is damaged. Method:
// an index, PATH, and files of shares in the folder PATH.shards, all of them
// safetensors. A share has parts of tensors under the tensors' names: whole
// rows keep their shape, other parts are vectors. Its metadata "part.NAME" give
// their elements, their checksum, and the whole shape. The index has no
// tensors: its metadata "ckopt.shard.N" name each file, with its length and the
// checksum of its header. So the index checks the headers, and they check the
// data; a reader checks only what it reads. File names contain the number of
// the save, so that the files of the previous save stay until the new index has
// replaced the old one.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_BASE_SHARDEDFILE_H
#define CKOPT_BASE_SHARDEDFILE_H

#include "ckopt/Base/Safetensors.h"

namespace ckopt {

/// The value of "ckopt.format" in the metadata.
inline constexpr const char *kFormatKey = "ckopt.format";
inline constexpr const char *kIndexFormat = "checkpoint-sharded-1";
inline constexpr const char *kShareFormat = "checkpoint-share-1";

/// The entry of a share in the index.
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
/// Returns the number of the save that a file of a share, or its temporary,
/// belongs to; -1: the file is neither.
int64_t saveOfShard(std::string_view name);

/// The shape that a part has in its file.
std::vector<int64_t> partShape(const ShardPart &part);

/// Adds the entries of its shares to an index's metadata.
void describeShards(const std::vector<ShardFile> &files,
                    StringMetadata &metadata);
/// Adds the entry of a part to a share's metadata.
void describePart(const ShardPart &part, StringMetadata &metadata);

/// Tell whether a file's metadata are those of an index, or of a share.
bool isShardIndex(const StringMetadata &metadata);
bool isShare(const StringMetadata &metadata);
/// Inverses of the above; they return "" or the defect.
std::string parseShards(const StringMetadata &metadata,
                        std::vector<ShardFile> &files);
/// The parts of a share are in the order of the header's tensors.
std::string parseParts(const SafetensorsHeader &header,
                       std::vector<ShardPart> &parts);
/// Compares a share with its entry in the index, and parses its header.
std::string openShard(std::string_view bytes, const ShardFile &file,
                      SafetensorsHeader &header, std::vector<ShardPart> &parts);

/// The checksum of the header of a safetensors file, its length included.
uint64_t hashHeader(std::string_view bytes);

} // namespace ckopt

#endif // CKOPT_BASE_SHARDEDFILE_H
