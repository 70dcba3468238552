//===- ShardedCheckpoint.cpp - checkpoints that all ranks write -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: many processes write one checkpoint at once, and any of them may end
// at any point. Method: each writes a file of its own, under a name that no
// earlier save used, whole and on the disk before it has that name; one of them
// writes the index when all have said that theirs is there. Guarantee: at any
// point the path holds the old checkpoint or the new one, both with all their
// shares; what a killed run left is removed by the next save. A share is
// written tensor by tensor: beside the session there is one of them in memory.
// O(bytes of the share).
//
//===----------------------------------------------------------------------===//
#include "CheckpointParts.h"

#include "ckopt/Base/ContentHash.h"
#include "ckopt/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace ckopt {

static std::string folderOf(StringRef path) {
  return shardFolder(targetOfLink(path));
}

/// Calls `visit` for each share and each temporary of one in the folder.
static std::error_code
forEachShare(const std::string &folder,
             function_ref<void(StringRef file, int64_t save)> visit) {
  std::error_code code;
  for (sys::fs::directory_iterator it(folder, code), end; it != end && !code;
       it.increment(code))
    if (int64_t save = saveOfShard(sys::path::filename(it->path())); save >= 0)
      visit(it->path(), save);
  return code;
}

void removeShares(StringRef path, int64_t keep) {
  std::string folder = folderOf(path);
  std::vector<std::string> old;
  if (forEachShare(folder, [&](StringRef file, int64_t save) {
        if (save != keep)
          old.push_back(file.str());
      }))
    return;
  for (const std::string &file : old)
    (void)sys::fs::remove(file);
  if (keep < 0)
    (void)sys::fs::remove(folder); // fails where others keep files in it
}

Expected<int64_t> beginSave(StringRef path) {
  std::string folder = folderOf(path);
  sys::fs::file_status status;
  if (!sys::fs::status(path, status) && !sys::fs::is_regular_file(status))
    return ioError("cannot write '" + path +
                   "': a checkpoint of several ranks is a file and a folder "
                   "beside it, '" +
                   folder + "'");
  if (std::error_code code = sys::fs::create_directory(
          folder, /*IgnoreExisting=*/true, sys::fs::all_all))
    return ioError("cannot make the folder '" + folder +
                   "': " + code.message());
  int64_t last = 0;
  if (std::error_code code = forEachShare(folder, [&](StringRef, int64_t save) {
        last = std::max(last, save);
      }))
    return ioError("cannot read the folder '" + folder +
                   "': " + code.message());
  return last + 1;
}

Expected<ShardFile>
writeShare(StringRef path, int64_t save, int64_t rank, int64_t ranks,
           std::vector<ShardPart> parts,
           function_ref<Expected<HostTensor>(const ShardPart &)> read) {
  StringMetadata metadata{{kFormatKey, kShareFormat}};
  std::vector<TensorSpec> specs;
  uint64_t bytes = 0;
  for (ShardPart &part : parts) {
    auto value = read(part);
    if (!value)
      return value.takeError();
    part.hash = ContentHash::of(value->rawData(), size_t(value->sizeInBytes()));
    bytes += uint64_t(value->sizeInBytes());
    describePart(part, metadata);
    specs.push_back({part.name, part.dtype, partShape(part)});
  }
  ShardFile file;
  file.name = shardName(save, rank, ranks);
  auto header =
      writeSafetensors(folderOf(path) + "/" + file.name, specs, metadata,
                       [&](size_t number) { return read(parts[number]); });
  if (!header)
    return header.takeError();
  file.bytes = header->size() + bytes;
  file.headerHash = hashHeader(*header);
  return file;
}

Error finishSave(StringRef path, const TrainingState &state,
                 ArrayRef<ShardFile> shares) {
  std::string folder = folderOf(path);
  for (size_t rank = 0; rank < shares.size(); ++rank) {
    std::string file = folder + "/" + shares[rank].name;
    uint64_t bytes = 0;
    std::error_code code = sys::fs::file_size(file, bytes);
    if (code || bytes != shares[rank].bytes)
      return ioError("'" + file + "', which rank " + Twine(rank) +
                     " has written, is not seen by rank 0" +
                     (code ? ": " + code.message() : "") +
                     "; the folder of a checkpoint must be the same for all "
                     "ranks");
  }
  StringMetadata metadata = describeState(state);
  describeShards(shares.vec(), metadata);
  if (Error error = writeSafetensors(path, TensorMap(), metadata))
    return error;
  removeShares(path, saveOfShard(shares[0].name));
  return Error::success();
}

} // namespace ckopt
