//===- RankAgreement.cpp - what ranks compare -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Hashes of the step and of all else that the bits of a run depend on are
// compared before the first step, and of what was trained at the end. All ranks
// walk through the same calls of these functions, or an error ends all of them.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Train/TrainRanks.h"

#include "ckopt/Compiler/Together.h"
#include "ckopt/Runtime/KeepAlive.h"
#include "ckopt/Support/Error.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

#include <array>
#include <type_traits>

using namespace ckopt;
using runtime::TensorRole;

static uint64_t hashOf(llvm::StringRef bytes) {
  return llvm::xxh3_64bits(bytes);
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
      const runtime::TensorInfo &info = session.infoOf(index);
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
static StringMetadata loopOptions(const Compilation &compilation,
                                  const Session &session,
                                  const TrainOptions &train) {
  StringMetadata options =
      runIdentity(compilation.given(), train, session, /*data=*/"");
  auto set = [&](const char *name, const auto &value) {
    if (value)
      options[name] = std::to_string(value);
  };
  options["epochs"] = std::to_string(train.epochs);
  set("max-steps", train.maxSteps);
  set("validate-every", train.validateEvery);
  set("checkpoint-every", train.checkpointEvery);
  set("early-stop", train.earlyStop);
  set("keep-best", !train.keepBest.empty());
  set("resume", !train.resume.empty());
  if (train.bestBy)
    options["best-by"] = train.bestBy->name();
  if (train.stopAsked)
    options["stop-asked"] = "yes";
  return options;
}

/// Ranks whose options differ are told which.
static llvm::Error compareLoops(const Ranks &ranks, const StringMetadata &own) {
  auto all = gatherNamed(ranks, own);
  if (!all)
    return all.takeError();
  for (size_t rank = 1; rank < all->size(); ++rank)
    for (const OptionDifference &option :
         compareOptions(all->front(), (*all)[rank]))
      return rankError("rank " + std::to_string(rank) +
                       " differs from rank 0 in its options: " + option.name +
                       " is " + option.is + ", of rank 0 " + option.was +
                       "; all ranks take the same settings");
  return llvm::Error::success();
}

static llvm::Error compareRanks(const Compilation &compilation,
                                const Session &session, const std::string &data,
                                const TrainOptions &train) {
  const Ranks &ranks = session.ranks();
  if (!ranks.areSeveral())
    return llvm::Error::success();
  auto state = hashStart(compilation, session);
  if (!state)
    return state.takeError();
  if (llvm::Error error =
          compareLoops(ranks, loopOptions(compilation, session, train)))
    return error;
  constexpr std::array<const char *, 3> kinds = {"data", "compiled step",
                                                 "weights"};
  using Hashes = std::array<uint64_t, kinds.size()>;
  Hashes own = {hashOf(data), hashStep(compilation), *state};
  auto gathered = ranks.gather(own);
  if (!gathered)
    return gathered.takeError();
  const std::vector<Hashes> &all = *gathered;
  for (size_t rank = 1; rank < all.size(); ++rank)
    for (size_t kind = 0; kind < kinds.size(); ++kind)
      if (all[rank][kind] != all[0][kind])
        return rankError("rank " + std::to_string(rank) +
                         " differs from rank 0 in its " + kinds[kind] +
                         ": all ranks take the same settings, files and kind "
                         "of machine");
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

llvm::Error ckopt::checkSameState(const Session &session) {
  const Ranks &ranks = session.ranks();
  if (!ranks.areSeveral())
    return llvm::Error::success();
  auto own = hashState(session);
  if (!own)
    return own.takeError();
  auto gathered = ranks.gather(*own);
  if (!gathered)
    return gathered.takeError();
  const std::vector<StateHashes> &all = *gathered;
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

void ckopt::leaveFilesToMain(TrainOptions &train) {
  train.progress = false;
  // Of checkpoints each rank writes its share: train() tells it the path.
  for (std::string *path : {&train.checkpoint, &train.log})
    path->clear();
}

llvm::Error ckopt::gatherTraffic(const Ranks &ranks, Communication &traffic) {
  if (!ranks.areSeveral())
    return llvm::Error::success();
  int64_t messages = 0, bytes = 0;
  for (const runtime::CollectiveRecord &record : ranks.world().records()) {
    traffic.collectives.push_back({record.kind, record.bytes, record.seconds});
    messages += record.messages;
    bytes += record.sentBytes;
  }
  if (llvm::Error error = ranks.gather(messages).moveInto(traffic.messages))
    return error;
  return ranks.gather(bytes).moveInto(traffic.sentBytes);
}

llvm::Expected<Evaluation> ckopt::evaluateOnMain(Session &session,
                                                 BatchSource &source,
                                                 const StepData &data) {
  const Ranks &ranks = session.ranks();
  // Ranks that share weights compute the same numbers together.
  if (session.isSharded())
    return evaluate(session, source, data);
  runtime::KeepAlive alive;
  Evaluation result;
  int64_t code = ExitOk;
  llvm::Error failed = llvm::Error::success();
  if (ranks.isMain()) {
    auto own = evaluate(session, source, data);
    if (!ranks.areSeveral() || (!own && ranks.failureEndsAll()))
      return own;
    if (own)
      result = *own;
    else
      failed = own.takeError();
    code = failed ? ExitRank : ExitOk;
  }
  if (llvm::Error error = ranks.broadcast(code))
    return llvm::joinErrors(std::move(failed), std::move(error));
  if (failed)
    return std::move(failed);
  if (code != ExitOk)
    return rankError("rank 0 could not evaluate; its own message says why");
  if (llvm::Error error = ranks.broadcast(result))
    return std::move(error);
  return result;
}
