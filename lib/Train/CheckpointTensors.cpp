//===- CheckpointTensors.cpp - what a checkpoint has of a session ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a run that goes on needs the bits of all its weights, but most bytes
// of a fine-tuned model never change, and every checkpoint would hold them.
// Method: a checkpoint holds what updates change, and of frozen weights names,
// types, shapes and hashes; their values come from the model, and others are
// refused. A weight that ranks share is hashed by one after another, each its
// own part, so that the hash is that of one process and no values are sent.
// O(bytes of the frozen weights) once in a run, O(bytes of the others) each
// time.
//
//===----------------------------------------------------------------------===//
#include "CheckpointTensors.h"
#include "ckopt/Base/ContentHash.h"
#include "ckopt/Ranks/Ranks.h"
#include "ckopt/Runtime/KeepAlive.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/TensorParts.h"

#include <cstring>
#include <set>

using namespace ckopt;
using runtime::TensorInfo;
using runtime::TensorRole;

namespace {
/// A ContentHash of bytes that come in ranges of any length. It is sent from
/// rank to rank as it lies in memory.
class RangeHash {
public:
  void add(const void *data, size_t size) {
    auto *bytes = static_cast<const char *>(data);
    size_t taken = std::min(size, (sizeof(rest) - held) % sizeof(rest));
    std::memcpy(rest + held, bytes, taken);
    held += taken;
    if (held == sizeof(rest)) {
      hash.add(rest, held);
      held = 0;
    }
    if (held)
      return;
    size_t words = (size - taken) / sizeof(rest) * sizeof(rest);
    hash.add(bytes + taken, words);
    held = size - taken - words;
    std::memcpy(rest, bytes + taken + words, held);
  }
  uint64_t value() const {
    ContentHash whole = hash;
    whole.add(rest, held);
    return whole.value();
  }

private:
  ContentHash hash;
  char rest[8] = {}; ///< the last bytes, which make no word yet
  size_t held = 0;   ///< how many of them there are
};
static_assert(std::is_trivially_copyable_v<RangeHash>);
} // namespace

/// Adds what this rank has of a tensor, without padding.
static llvm::Error addOwn(const Session &session, int64_t index,
                          RangeHash &hash) {
  const TensorInfo &tensor = session.infoOf(index);
  Shards shards = tensor.sharing();
  int64_t count = shards.count(shards.shardOf(session.ranks().number()));
  int64_t most = kPieceBytes / runtime::dtypeSize(tensor.dtype);
  for (int64_t begin = 0; begin < count; begin += most) {
    auto piece = session.readPart(index, begin, std::min(most, count - begin));
    if (!piece)
      return piece.takeError();
    hash.add(piece->rawData(), size_t(piece->sizeInBytes()));
  }
  return llvm::Error::success();
}

/// Gives bytes of one rank of a group to the next one, or to all others.
static llvm::Error passOn(const Session &session,
                          std::vector<RangeHash> &hashes, int64_t from,
                          llvm::ArrayRef<int64_t> to) {
  const Ranks &ranks = session.ranks();
  auto bytes = int64_t(hashes.size() * sizeof(RangeHash));
  std::vector<runtime::Transfer> list;
  if (ranks.number() == from)
    for (int64_t rank : to)
      list.push_back({true, hashes.data(), bytes, int32_t(rank)});
  else if (llvm::is_contained(to, ranks.number()))
    list.push_back({false, hashes.data(), bytes, int32_t(from)});
  std::string error;
  if (!list.empty() && !ranks.world().transfer(list, error))
    return rankError(error);
  return llvm::Error::success();
}

/// Hashes tensors that groups of `shards` ranks share, shard by shard.
static llvm::Error hashShards(const Session &session,
                              llvm::ArrayRef<int64_t> indices, int64_t shards,
                              std::vector<RangeHash> &hashes) {
  const Ranks &ranks = session.ranks();
  if (!ranks.areSeveral())
    return usageError("the weights are shared by ranks, and this process runs "
                      "alone");
  int64_t first = ranks.number() / shards * shards, last = first + shards - 1;
  llvm::Error own = llvm::Error::success();
  for (int64_t rank = first; rank <= last; ++rank) {
    if (rank == ranks.number())
      for (auto [index, hash] : llvm::zip_equal(indices, hashes))
        if (!own)
          own = addOwn(session, index, hash);
    if (rank == last)
      break;
    if (llvm::Error error = passOn(session, hashes, rank, {rank + 1}))
      return llvm::joinErrors(std::move(own), std::move(error));
  }
  std::vector<int64_t> others;
  for (int64_t rank = first; rank < last; ++rank)
    others.push_back(rank);
  return llvm::joinErrors(std::move(own),
                          passOn(session, hashes, last, others));
}

/// Hashes the frozen tensors that lie in so many shards and are not known.
static llvm::Error hashFrozen(const Session &session, int64_t shards) {
  std::vector<int64_t> indices;
  for (int64_t index : session.tensors(TensorRole::Frozen))
    if (session.infoOf(index).shards == shards)
      indices.push_back(index);
  auto isKnown = [&](int64_t index) {
    return session.unchanged().hashes.contains(session.infoOf(index).name);
  };
  if (shards == 1)
    llvm::erase_if(indices, isKnown);
  else if (auto known =
               session.ranks().gather(int64_t(llvm::all_of(indices, isKnown)));
           !known)
    return known.takeError();
  else if (llvm::all_of(*known, [](int64_t all) { return all; }))
    return llvm::Error::success();
  std::vector<RangeHash> hashes(indices.size());
  if (shards > 1) {
    if (llvm::Error error = hashShards(session, indices, shards, hashes))
      return error;
  } else {
    for (auto [index, hash] : llvm::zip_equal(indices, hashes))
      if (llvm::Error error = addOwn(session, index, hash))
        return error;
  }
  for (auto [index, hash] : llvm::zip_equal(indices, hashes))
    session.unchanged().hashes[session.infoOf(index).name] = hash.value();
  return llvm::Error::success();
}

llvm::Expected<std::vector<FrozenTensor>>
ckopt::describeFrozen(const Session &session) {
  runtime::KeepAlive alive; // the others wait for this rank's part
  const std::vector<int64_t> frozen = session.tensors(TensorRole::Frozen);
  std::set<int64_t> forms;
  for (int64_t index : frozen)
    forms.insert(session.infoOf(index).shards);
  for (int64_t shards : forms)
    if (llvm::Error error = hashFrozen(session, shards))
      return std::move(error);
  std::vector<FrozenTensor> result;
  for (TensorSpec &spec : session.specs(frozen)) {
    uint64_t hash = session.unchanged().hashes.lookup(spec.name);
    result.push_back({std::move(spec), hash});
  }
  llvm::append_range(result, session.unchanged().constants);
  return result;
}

//===----------------------------------------------------------------------===//
// Restoring
//===----------------------------------------------------------------------===//

/// Compares names, types and shapes.
static llvm::Error checkSpecs(const Session &session,
                              const OpenCheckpoint &checkpoint,
                              llvm::StringRef what) {
  const auto frozen = session.specs(session.tensors(TensorRole::Frozen));
  const auto changed = session.specs(session.changedTensors());
  llvm::StringMap<bool> isFrozen;
  for (const TensorSpec &spec : frozen)
    isFrozen[spec.name] = true;
  std::vector<TensorSpec> values, kept;
  for (const TensorSpec &spec : checkpoint.tensors.specs())
    (isFrozen.lookup(spec.name) ? kept : values).push_back(spec);
  for (const FrozenTensor &tensor : checkpoint.state.frozen) {
    const std::string &name = tensor.spec.name;
    if (tensor.isConstant)
      continue;
    if (llvm::any_of(changed,
                     [&](const TensorSpec &spec) { return spec.name == name; }))
      return inputError(what + ": '" + name +
                        "' was frozen in the run, and is trained here");
    kept.push_back(tensor.spec);
  }
  return llvm::joinErrors(checkTensors(values, changed, what),
                          checkTensors(kept, frozen, what));
}

/// Refuses a session whose frozen weights are others than the run's.
static llvm::Error checkBase(const Session &session,
                             llvm::ArrayRef<FrozenTensor> expected,
                             llvm::StringRef what) {
  if (expected.empty())
    return llvm::Error::success();
  auto own = describeFrozen(session);
  llvm::Error failed = own ? llvm::Error::success() : own.takeError();
  if (session.isSharded())
    failed = session.ranks().agreeOnError(std::move(failed));
  if (failed)
    return failed;
  llvm::StringMap<const FrozenTensor *> saved;
  for (const FrozenTensor &tensor : expected)
    saved[tensor.spec.name] = &tensor;
  std::vector<std::string> others;
  for (const FrozenTensor &tensor : *own)
    // A constant of another shape (a mask) is that of another length.
    if (const FrozenTensor *was = saved.lookup(tensor.spec.name);
        was && was->hash != tensor.hash && was->spec.shape == tensor.spec.shape)
      others.push_back(tensor.spec.name);
  if (others.empty())
    return llvm::Error::success();
  return inputError(
      what + ": the frozen weight '" + others.front() +
      "' has other values than in the run" +
      (others.size() > 1
           ? ", the first of " + std::to_string(others.size()) + " that do"
           : std::string()) +
      "; a checkpoint holds what training changes: give the model, and " +
      Setting("weights") + " if the run had it, that the run began with");
}

/// Returns this rank's part of a stored tensor, in the form of the session's.
static llvm::Expected<HostTensor> readStored(const Session &session,
                                             int64_t index,
                                             const StoredTensors &values,
                                             size_t number) {
  const TensorInfo &tensor = session.infoOf(index);
  Shards shards = tensor.sharing();
  int64_t own = shards.shardOf(session.ranks().number());
  auto part = values.read(number, shards.begin(own), shards.count(own));
  if (!part)
    return part;
  if (shards.shards == 1)
    return part->reshaped(tensor.shape);
  HostTensor value(tensor.dtype, tensor.shape); // zeros behind its own
  std::memcpy(value.mutableRawData(), part->rawData(),
              size_t(part->sizeInBytes()));
  return value;
}

/// Writes all tensors that the file has. `other` becomes the index of the first
/// frozen one that had other values here.
static llvm::Error writeStored(Session &session, const StoredTensors &values,
                               llvm::StringRef what, int64_t &other) {
  llvm::StringMap<size_t> numbers;
  for (const TensorSpec &spec : values.specs())
    numbers.try_emplace(spec.name, numbers.size());
  for (int64_t index : session.stateTensors()) {
    const TensorInfo &tensor = session.infoOf(index);
    auto number = numbers.find(tensor.name);
    if (number == numbers.end()) // frozen, and the same
      continue;
    auto value = readStored(session, index, values, number->second);
    if (!value)
      return withContext(value.takeError(), what);
    if (tensor.role == TensorRole::Frozen) {
      auto before = session.read(index);
      if (!before)
        return before.takeError();
      if (before->bitEqual(*value))
        continue;
      other = std::min(other, index);
    }
    if (llvm::Error error = session.write(index, *value))
      return error;
    values.letGo(); // the file is as large as the state, which has them now
  }
  return llvm::Error::success();
}

llvm::Expected<std::string>
ckopt::restoreTensors(Session &session, const OpenCheckpoint &checkpoint,
                      llvm::StringRef what) {
  if (llvm::Error error = checkSpecs(session, checkpoint, what))
    return std::move(error);
  if (llvm::Error error = checkBase(session, checkpoint.state.frozen, what))
    return std::move(error);
  constexpr int64_t kNone = INT64_MAX;
  int64_t other = kNone;
  llvm::Error failed = writeStored(session, checkpoint.tensors, what, other);
  if (session.isSharded()) { // each rank has seen its own parts
    if (llvm::Error error = session.ranks().agreeOnError(std::move(failed)))
      return std::move(error);
    auto all = session.ranks().gather(other);
    if (!all)
      return all.takeError();
    other = *llvm::min_element(*all);
  } else if (failed) {
    return std::move(failed);
  }
  return other == kNone ? std::string() : session.infoOf(other).name;
}
