//===- ShardedSave.cpp - a checkpoint by all ranks ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: N ranks write a session's tensors to one checkpoint, each byte once,
// though some tensors lie in shards and others on all ranks. Method: ranks with
// the same shard of a tensor (all ranks, of one that is whole) hold the same
// bytes: laid end to end, these are cut into as many equal parts as there are
// holders. Nothing is sent but a number from each rank. Rank 0 completes the
// checkpoint when all shares are on their disks; whatever fails on a rank
// before leaves the checkpoint that was there. O(own bytes).
//
//===----------------------------------------------------------------------===//
#include "CheckpointTensors.h"
#include "Updates.h"
#include "ckopt/Ranks/Ranks.h"
#include "ckopt/Runtime/KeepAlive.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Train/RunChecks.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"

#include <map>

using namespace ckopt;
using runtime::TensorInfo;

namespace {
/// A part of a tensor of the session.
struct OwnPart {
  int64_t index = 0; ///< of the tensor
  int64_t first = 0; ///< of its elements on this rank
  ShardPart part;    ///< of the whole tensor
};

/// The bytes that ranks with the same shards hold, laid end to end, of which
/// each of them writes [begin, end).
class Holding {
public:
  Holding(int64_t bytes, int64_t holders, int64_t place)
      : begin(cut(bytes, holders, place)), end(cut(bytes, holders, place + 1)),
        isLast(place + 1 == holders) {}

  /// Returns the elements that this rank writes of the next tensor.
  std::pair<int64_t, int64_t> take(int64_t elements, int64_t size) {
    int64_t bytes = elements * size, from = at;
    at += bytes;
    auto elementAt = [&](int64_t place) {
      return (std::clamp(place - from, int64_t(0), bytes) + size - 1) / size;
    };
    if (bytes >= kLeastCut)
      return {elementAt(begin), elementAt(end)};
    bool isOwn = from >= begin && (from < end || isLast);
    return {0, isOwn ? elements : 0};
  }

private:
  /// Tensors of fewer bytes are written by one rank.
  static constexpr int64_t kLeastCut = 64 << 10;
  static int64_t cut(int64_t bytes, int64_t holders, int64_t place) {
    return bytes / holders * place + bytes % holders * place / holders;
  }

  int64_t begin, end, at = 0;
  bool isLast;
};
} // namespace

/// The parts that a rank writes.
static std::vector<OwnPart> findParts(const Session &session, int64_t rank,
                                      int64_t ranks) {
  std::map<int64_t, int64_t> bytes; // by number of shards
  auto held = [&](const TensorInfo &tensor) {
    Shards shards = tensor.sharing();
    return shards.count(shards.shardOf(rank));
  };
  for (int64_t index : session.changedTensors()) {
    const TensorInfo &tensor = session.infoOf(index);
    bytes[tensor.shards] += held(tensor) * runtime::dtypeSize(tensor.dtype);
  }
  std::map<int64_t, Holding> holdings;
  for (auto [shards, sum] : bytes)
    holdings.try_emplace(shards, sum, ranks / shards, rank / shards);
  std::vector<OwnPart> parts;
  for (int64_t index : session.changedTensors()) {
    const TensorInfo &tensor = session.infoOf(index);
    Shards shards = tensor.sharing();
    auto [first, last] =
        holdings.at(tensor.shards)
            .take(held(tensor), runtime::dtypeSize(tensor.dtype));
    int64_t begin = shards.begin(shards.shardOf(rank));
    if (first < last || (shards.elements == 0 && rank == 0))
      parts.push_back({index,
                       first,
                       {tensor.name, tensor.dtype, tensor.fullShape(),
                        begin + first, last - first, 0}});
  }
  return parts;
}

static llvm::Expected<ShardFile>
writeOwnShare(llvm::StringRef path, int64_t save, const Session &session,
              int64_t step, const Ranks &ranks) {
  std::vector<OwnPart> own = findParts(session, ranks.number(), ranks.size());
  std::vector<ShardPart> parts;
  llvm::StringMap<const OwnPart *> byName;
  for (const OwnPart &one : own) {
    parts.push_back(one.part);
    byName[one.part.name] = &one;
  }
  auto read = [&](const ShardPart &part) -> llvm::Expected<HostTensor> {
    const OwnPart &one = *byName.lookup(part.name);
    auto held = session.read(one.index);
    if (!held)
      return held.takeError();
    auto bytes = std::make_shared<HostTensor>(std::move(*held));
    const char *first = static_cast<const char *>(bytes->rawData()) +
                        one.first * runtime::dtypeSize(part.dtype);
    return HostTensor::view(part.dtype, {part.count}, first, bytes);
  };
  return writeShare(path, save, ranks.number(), ranks.size(), std::move(parts),
                    read);
}

/// What rank 0 must know of a share; its name follows from the rank.
static llvm::Expected<std::vector<ShardFile>>
gatherShares(const Ranks &ranks, int64_t save, const ShardFile &own) {
  auto bytes = ranks.gather<uint64_t>(own.bytes);
  auto hashes = ranks.gather<uint64_t>(own.headerHash);
  if (!bytes || !hashes)
    return llvm::joinErrors(bytes.takeError(), hashes.takeError());
  std::vector<ShardFile> shares;
  for (int64_t rank = 0; rank < ranks.size(); ++rank)
    shares.push_back({shardName(save, rank, ranks.size()),
                      (*bytes)[size_t(rank)], (*hashes)[size_t(rank)]});
  return std::move(shares);
}

llvm::Error ckopt::saveByRanks(llvm::StringRef path, const Session &session,
                               TrainingState state) {
  const Ranks &ranks = session.ranks();
  runtime::KeepAlive alive;
  auto kept = [&](llvm::Error error) {
    bool exists = error && llvm::sys::fs::exists(path);
    return exists ? withContext(std::move(error),
                                "the checkpoint before stays as it is")
                  : std::move(error);
  };
  int64_t save = 0;
  llvm::Error own = checkState(session, state.step);
  if (session.isSharded() || ranks.isMain()) // the index has them
    own = llvm::joinErrors(std::move(own),
                           describeFrozen(session).moveInto(state.frozen));
  if (!own && ranks.isMain())
    own = beginSave(path).moveInto(save);
  if (llvm::Error error = ranks.agreeOnError(kept(std::move(own))))
    return error;
  if (llvm::Error error = ranks.broadcast(save))
    return error;
  ShardFile share;
  own = writeOwnShare(path, save, session, state.step, ranks).moveInto(share);
  if (llvm::Error error = ranks.agreeOnError(kept(std::move(own))))
    return error;
  auto shares = gatherShares(ranks, save, share);
  if (!shares)
    return shares.takeError();
  own = ranks.isMain() ? finishSave(path, state, *shares)
                       : llvm::Error::success();
  return ranks.agreeOnError(kept(std::move(own)));
}
