//===- RankAgreement.cpp - what ranks compare -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Hashes of the step and of all else that the bits of a run depend on are
// compared before the first step, and of what was trained at the end. All ranks
// walk through the same calls of these functions, or an error ends all of them.
//
//===----------------------------------------------------------------------===//
#include "Parallel.h"

#include "ckopt/Driver/Step.h"
#include "ckopt/Support/Error.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

#include <array>

using namespace ckopt;
using runtime::TensorRole;
using runtime::World;

static uint64_t hashOf(llvm::StringRef bytes) {
  return llvm::xxh3_64bits(bytes);
}

static void hashTensor(std::string &hashes, llvm::StringRef name,
                       const HostTensor &value) {
  uint64_t hash = hashOf({static_cast<const char *>(value.rawData()),
                          size_t(value.sizeInBytes())});
  hashes += name.str() + " " + std::to_string(hash) + "\n";
}

namespace {
/// Hashes of what all ranks have, and of what only ranks with this one's shards
/// have.
struct StateHashes {
  uint64_t common = 0, shards = 0;
  int64_t numShards = 1;
};
} // namespace

static llvm::Expected<StateHashes> hashState(const Session &session) {
  StateHashes result;
  std::string common, shards;
  for (TensorRole role : Session::stateRoles())
    for (int64_t index : session.tensors(role)) {
      auto value = session.read(index);
      if (!value)
        return value.takeError();
      const runtime::TensorInfo &info = session.info_of(index);
      result.numShards = std::max(result.numShards, info.shards);
      hashTensor(info.shards > 1 ? shards : common, info.name, *value);
    }
  result.common = hashOf(common);
  result.shards = hashOf(shards);
  return result;
}

/// What a run starts with, shared or not: the file's weights, and the state.
static llvm::Expected<uint64_t> hashStart(const Compilation &compilation,
                                          const Session &session) {
  auto state = hashState(session);
  if (!state)
    return state.takeError();
  std::string text = std::to_string(state->common);
  if (state->numShards > 1)
    for (const auto &[name, value] : compilation.weights())
      hashTensor(text, name, value);
  return hashOf(text);
}

/// The planned step: what it computes, in which order, and where.
static uint64_t hashStep(const Compilation &compilation) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  compilation.module().print(stream);
  std::vector<uint8_t> manifest = runtime::serialize(compilation.manifest());
  text.append(manifest.begin(), manifest.end());
  return hashOf(text);
}

/// What the loop depends on beside the step.
static uint64_t hashOptions(const Compilation &compilation,
                            const Session &session, const TrainOptions &train) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (const auto &[key, value] :
       runIdentity(compilation.given(), train, session, /*data=*/""))
    stream << key << "=" << value << "\n";
  stream << train.epochs << " " << train.maxSteps << " " << train.validateEvery
         << " " << train.checkpointEvery << " " << train.bestBy.name() << " "
         << train.earlyStop << " " << train.keepBest.empty() << " "
         << train.resume.empty() << " " << bool(train.stopAsked);
  return hashOf(text);
}

static llvm::Error compareRanks(const Compilation &compilation,
                                const Session &session, const std::string &data,
                                const TrainOptions &train) {
  World *world = World::current();
  if (!world)
    return llvm::Error::success();
  auto state = hashStart(compilation, session);
  if (!state)
    return state.takeError();
  constexpr std::array<const char *, 4> kinds = {"data", "options",
                                                 "compiled step", "weights"};
  using Hashes = std::array<uint64_t, kinds.size()>;
  Hashes own = {hashOf(data), hashOptions(compilation, session, train),
                hashStep(compilation), *state};
  std::vector<Hashes> all(size_t(world->size()));
  std::string error;
  if (!world->gatherAll(own.data(), sizeof(Hashes), all.data(), error))
    return rankError(error);
  for (size_t rank = 1; rank < all.size(); ++rank)
    for (size_t kind = 0; kind < kinds.size(); ++kind)
      if (all[rank][kind] != all[0][kind])
        return rankError("rank " + std::to_string(rank) +
                         " differs from rank 0 in its " + kinds[kind] +
                         ": all ranks take the same command line, files and "
                         "kind of machine");
  return llvm::Error::success();
}

llvm::Error ckopt::checkRanksAgree(const Compilation &compilation,
                                   const Session &session,
                                   const BatchSource &source,
                                   const BatchSource *validation,
                                   const TrainOptions &train) {
  return compareRanks(compilation, session,
                      source.identity() + "\n" +
                          (validation ? validation->identity() : std::string()),
                      train);
}

llvm::Error ckopt::checkRanksAgree(const Compilation &compilation,
                                   const Session &session,
                                   const TrainOptions &train) {
  return compareRanks(compilation, session, "the caller's batches", train);
}

llvm::Expected<uint64_t> ckopt::hashCommonState(const Session &session) {
  auto state = hashState(session);
  if (!state)
    return state.takeError();
  return state->common;
}

void ckopt::addHash(uint64_t &hash, const TensorMap &tensors) {
  std::string text = std::to_string(hash);
  for (const auto &[name, value] : tensors)
    hashTensor(text, name, value);
  hash = hashOf(text);
}

llvm::Error ckopt::addHash(uint64_t &hash, const StoredTensors &tensors) {
  std::string text = std::to_string(hash);
  for (auto [number, spec] : llvm::enumerate(tensors.specs())) {
    auto value = tensors.read(number);
    if (!value)
      return value.takeError();
    hashTensor(text, spec.name, *value);
  }
  hash = hashOf(text);
  return llvm::Error::success();
}

/// What a rank is about to do, as others' errors say it.
static const char *describe(Call call) {
  switch (call) {
  case Call::Compile:
    return "compiles";
  case Call::Step:
    return "makes a step";
  case Call::Gradients:
    return "computes gradients";
  case Call::Fit:
    return "begins to train by fit";
  case Call::Evaluate:
    return "evaluates";
  case Call::Predict:
    return "predicts";
  case Call::Weights:
    return "reads weights";
  case Call::Save:
    return "saves weights";
  case Call::Checkpoint:
    return "writes a checkpoint";
  case Call::Profile:
    return "profiles";
  case Call::Batch:
    return "has another batch";
  case Call::End:
    return "has no more batches";
  }
  return "does something else";
}

llvm::Error ckopt::meetRanks(const Meeting &meeting, llvm::Error own) {
  World *world = World::current();
  if (!world)
    return own;
  // Of a size that nothing else has which ranks compare: one that is elsewhere
  // is noticed by it.
  struct Numbers {
    Call call;
    int64_t step;
    uint64_t same;
    int64_t failed;
    int64_t unused = 0;
  };
  Numbers mine = {meeting.call, meeting.step, meeting.same, bool(own)};
  std::vector<Numbers> all(size_t(world->size()));
  std::string error;
  bool met = world->gatherAll(&mine, sizeof(mine), all.data(), error);
  if (own)
    return own;
  if (!met)
    return rankError(error);
  auto rankNamed = [](size_t rank) { return "rank " + std::to_string(rank); };
  auto isBatch = [](Call call) {
    return call == Call::Batch || call == Call::End;
  };
  auto stepNamed = [](int64_t step) {
    return std::to_string(step) + llvm::getOrdinalSuffix(unsigned(step)).str();
  };
  for (size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank].failed)
      return rankError(rankNamed(rank) + " failed; its own message says why");
  for (size_t rank = 1; rank < all.size(); ++rank) {
    std::string does = rankNamed(rank) + " " + describe(all[rank].call);
    if (all[rank].call != all[0].call)
      return rankError(does + " where rank 0 " + describe(all[0].call) +
                       (isBatch(all[rank].call) && isBatch(all[0].call)
                            ? ": all ranks train on the same batches"
                            : ": all ranks make the same calls"));
    if (all[rank].step != all[0].step)
      return rankError(does + " with the " + stepNamed(all[rank].step) +
                       " compiled step where rank 0 does so with the " +
                       stepNamed(all[0].step) +
                       ": all ranks make the same calls");
  }
  for (size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank].same != all[0].same)
      return rankError(rankNamed(rank) + " " + meeting.differs);
  return llvm::Error::success();
}

llvm::Error ckopt::checkSameState(const Session &session) {
  World *world = World::current();
  if (!world)
    return llvm::Error::success();
  auto own = hashState(session);
  if (!own)
    return own.takeError();
  std::vector<StateHashes> all(size_t(world->size()));
  std::string error;
  if (!world->gatherAll(&*own, sizeof(StateHashes), all.data(), error))
    return rankError(error);
  for (size_t rank = 1; rank < all.size(); ++rank) {
    size_t twin = rank % size_t(own->numShards);
    if (all[rank].common != all[0].common ||
        all[rank].shards != all[twin].shards)
      return makeError(
          ExitInternal,
          "rank " + llvm::Twine(rank) + " trained other weights than rank " +
              llvm::Twine(all[rank].common != all[0].common ? size_t(0)
                                                            : twin));
  }
  return llvm::Error::success();
}
