//===- StoredTensors.cpp - tensors in one file or in shares ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: give any part of any tensor, from shares that any number of
// processes wrote. Method: each tensor has a list of pieces that tile it; a
// part is a view of one piece, or is copied from those that it meets. A run
// that saves meanwhile replaces the index and removes the shares of the old
// one: an index whose shares are gone is read once more if it is another now.
// Guarantee: what is returned was compared with its checksum, where the file
// has one. O(headers) to open, O(bytes) of the pieces that a part meets, the
// first time, to read.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/StoredTensors.h"

#include "ckopt/Base/ContentHash.h"
#include "ckopt/Base/ShardedFile.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/InputBuffer.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <cstring>
#include <sys/mman.h>

using namespace llvm;

namespace ckopt {

static int64_t elementsOf(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

Expected<StoredTensors> StoredTensors::open(StringRef path) {
  StoredTensors result;
  StringMetadata before;
  while (true) {
    auto opened = readInput(path);
    if (!opened)
      return opened.takeError();
    std::shared_ptr<MemoryBuffer> buffer = std::move(*opened);
    auto file = parseSafetensors(buffer, path);
    if (!file)
      return file.takeError();
    result.data = std::move(file->metadata);
    if (isShare(result.data))
      return inputError(path + ": one rank's share of a checkpoint; give the "
                               "checkpoint, the file beside the folder of its "
                               "shares");
    result.checksums = file->hasChecksum;
    if (!isShardIndex(result.data)) {
      result.files.push_back(path.str());
      result.buffers.push_back(std::move(buffer));
      for (auto &[name, value] : file->tensors) {
        result.numbers[name] = result.tensors.size();
        result.tensors.push_back({name, value.dtype(), value.shape().vec()});
        Piece whole;
        whole.value = std::move(value);
        if (auto hash = file->hashes.find(name); hash != file->hashes.end())
          whole.hash = hash->second;
        result.pieces.push_back({std::move(whole)});
      }
      return std::move(result);
    }
    Error error = result.openShares(path);
    if (!error)
      return std::move(result);
    if (result.data == before)
      return std::move(error);
    before = std::move(result.data);
    result = StoredTensors();
    consumeError(std::move(error));
  }
}

Error StoredTensors::openShares(StringRef path) {
  std::vector<ShardFile> files;
  if (std::string why = parseShards(data, files); !why.empty())
    return inputError(path + ": " + why);
  std::string folder = shardFolder(targetOfLink(path));
  for (const ShardFile &share : files)
    if (Error error = openShare(folder + "/" + share.name, share))
      return withContext(std::move(error), path);
  return checkWhole(path);
}

Error StoredTensors::openShare(const std::string &file,
                               const ShardFile &share) {
  auto opened = openInputBuffer(file);
  if (!opened)
    return withContext(opened.takeError(),
                       "its share '" + file + "' cannot be read");
  std::shared_ptr<MemoryBuffer> buffer = std::move(*opened);
  SafetensorsHeader header;
  std::vector<ShardPart> parts;
  if (std::string why =
          ckopt::openShard(buffer->getBuffer(), share, header, parts);
      !why.empty())
    return inputError("its share '" + file + "' is " + why);
  auto views = parseSafetensors(buffer, file);
  if (!views)
    return views.takeError();
  for (ShardPart &part : parts) {
    auto [entry, isNew] = numbers.try_emplace(part.name, tensors.size());
    if (isNew) {
      tensors.push_back({part.name, part.dtype, part.shape});
      pieces.emplace_back();
    }
    const TensorSpec &spec = tensors[entry->second];
    if (spec.dtype != part.dtype || spec.shape != part.shape)
      return inputError("its share '" + file + "': tensor '" + part.name +
                        "' differs from other shares in type or shape");
    Piece piece{part.begin, std::move(*views->tensors.find(part.name)),
                files.size(), part.hash};
    pieces[entry->second].push_back(std::move(piece));
  }
  files.push_back(file);
  buffers.push_back(std::move(buffer));
  return Error::success();
}

/// Checks that the pieces of each tensor tile it.
Error StoredTensors::checkWhole(StringRef path) {
  for (auto [spec, list] : zip_equal(tensors, pieces)) {
    llvm::sort(list, [](const Piece &a, const Piece &b) {
      return std::pair(a.begin, a.value.numElements()) <
             std::pair(b.begin, b.value.numElements());
    });
    int64_t at = 0;
    for (const Piece &piece : list) {
      if (piece.begin != at)
        break;
      at += piece.value.numElements();
    }
    if (at != elementsOf(spec.shape))
      return inputError(path + ": tensor '" + spec.name +
                        "' is not whole in its shares");
  }
  return Error::success();
}

Error StoredTensors::check(const Piece &piece, StringRef tensor) const {
  if (piece.checked || !piece.hash)
    return Error::success();
  if (ContentHash::of(piece.value.rawData(),
                      size_t(piece.value.sizeInBytes())) != *piece.hash)
    return inputError("'" + files[piece.file] + "' is damaged: tensor '" +
                      tensor + "' has another checksum than its header says");
  piece.checked = true;
  return Error::success();
}

Expected<HostTensor> StoredTensors::read(size_t number, int64_t begin,
                                         int64_t count) const {
  const TensorSpec &spec = tensors[number];
  int64_t size = dtypeSize(spec.dtype), end = begin + count;
  HostTensor result;
  char *to = nullptr;
  for (const Piece &piece : pieces[number]) {
    int64_t last = piece.begin + piece.value.numElements();
    int64_t from = std::max(begin, piece.begin), until = std::min(end, last);
    if (from >= until)
      continue;
    if (Error error = check(piece, spec.name))
      return std::move(error);
    if (from == piece.begin && until == last && count == last - piece.begin)
      return piece.value.reshaped({count});
    if (!to) {
      result = HostTensor(spec.dtype, {count});
      to = static_cast<char *>(result.mutableRawData());
    }
    std::memcpy(to + (from - begin) * size,
                static_cast<const char *>(piece.value.rawData()) +
                    (from - piece.begin) * size,
                size_t((until - from) * size));
  }
  return to ? std::move(result) : HostTensor(spec.dtype, {count});
}

Expected<HostTensor> StoredTensors::read(size_t number) const {
  const TensorSpec &spec = tensors[number];
  auto flat = read(number, 0, elementsOf(spec.shape));
  if (!flat)
    return flat;
  return flat->reshaped(spec.shape);
}

void StoredTensors::letGo() const {
  // MemoryBuffer::dontNeedIfMmap() asks for posix_madvise(), in which glibc
  // does nothing. A mapping begins at a page, since it begins with the file.
  for (const std::shared_ptr<MemoryBuffer> &buffer : buffers)
    if (buffer->getBufferKind() == MemoryBuffer::MemoryBuffer_MMap)
      (void)madvise(const_cast<char *>(buffer->getBufferStart()),
                    buffer->getBufferSize(), MADV_DONTNEED);
}

Expected<TensorMap> StoredTensors::readAll() const {
  TensorMap result;
  for (size_t i = 0; i < tensors.size(); ++i) {
    auto value = read(i);
    if (!value)
      return value.takeError();
    result.set(tensors[i].name, std::move(*value));
  }
  return result;
}

} // namespace ckopt
