//===- Sharing.cpp - data that ranks share on the host --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gives texts, numbers, errors and calls of one rank to all of them, and counts
// their messages. All ranks make the same calls of these functions.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Ranks/Ranks.h"

#include "ckopt/Runtime/KeepAlive.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"

#include <cassert>

using namespace ckopt;
using runtime::World;

struct Ranks::Shared {
  World &world;
  bool failureEndsAll = false;
  std::unique_ptr<runtime::KeepAlive> preparing;
};

Ranks Ranks::met() {
  // All copies share what is known of the other ranks.
  static std::shared_ptr<Shared> shared;
  World *world = World::current();
  if (world && (!shared || &shared->world != world))
    shared = std::make_shared<Shared>(Shared{*world, false, nullptr});
  Ranks ranks;
  ranks.shared = world ? shared : nullptr;
  return ranks;
}

int64_t Ranks::size() const { return shared ? shared->world.size() : 1; }

int64_t Ranks::number() const { return shared ? shared->world.rank() : 0; }

runtime::World &Ranks::world() const {
  assert(shared && "a process alone has no world");
  return shared->world;
}

std::string Ranks::name() const {
  return "rank " + std::to_string(number()) +
         (shared ? " on " + shared->world.host() : std::string());
}

void Ranks::endAllOnFailure() {
  if (shared)
    shared->failureEndsAll = true;
}

bool Ranks::failureEndsAll() const { return shared && shared->failureEndsAll; }

void Ranks::beginPreparing() {
  if (shared)
    shared->preparing = std::make_unique<runtime::KeepAlive>();
}

void Ranks::endPreparing() const {
  if (shared)
    shared->preparing.reset();
}

llvm::Error Ranks::gatherBytes(const void *own, int64_t bytes,
                               void *all) const {
  std::string error;
  if (shared && !shared->world.gatherAll(own, bytes, all, error))
    return rankError(error);
  return llvm::Error::success();
}

llvm::Error Ranks::broadcastBytes(void *data, int64_t bytes) const {
  std::string error;
  if (shared && !shared->world.broadcast(data, bytes, error))
    return rankError(error);
  return llvm::Error::success();
}

llvm::Error Ranks::broadcastText(std::string &text) const {
  int64_t bytes = int64_t(text.size());
  if (llvm::Error error = broadcast(bytes))
    return error;
  text.resize(size_t(bytes));
  return broadcastBytes(text.data(), bytes);
}

llvm::Error Ranks::shareMainPath(std::string &path) const {
  if (!shared)
    return llvm::Error::success();
  std::string given = path;
  if (isMain() && !path.empty()) {
    llvm::SmallString<256> absolute(path);
    if (std::error_code code = llvm::sys::fs::make_absolute(absolute))
      return ioError("'" + path + "': " + code.message());
    given = absolute.str();
  }
  if (llvm::Error error = broadcastText(given))
    return error;
  if (!isMain())
    path = given;
  return llvm::Error::success();
}

llvm::Error Ranks::agreeOnError(llvm::Error own) const {
  if (own && failureEndsAll())
    return own;
  auto all = gather<int64_t>(own ? 1 : 0);
  if (own) {
    llvm::consumeError(all.takeError());
    return own;
  }
  if (!all)
    return all.takeError();
  for (size_t rank = 0; rank < all->size(); ++rank)
    if ((*all)[rank])
      return failedRank(rank);
  return llvm::Error::success();
}

void Ranks::forgetCollectives() const {
  if (shared)
    shared->world.clearRecords();
}

double Ranks::collectiveSeconds() const {
  double seconds = 0;
  if (shared)
    for (const runtime::CollectiveRecord &record : shared->world.records())
      seconds += record.seconds;
  return seconds;
}

llvm::Error Ranks::withRank(llvm::Error error, int64_t step) const {
  if (!error || !shared)
    return error;
  return withContext(std::move(error), name() + ", step " + llvm::Twine(step));
}

void Ranks::leave() const {
  if (shared)
    shared->world.close();
}

llvm::Expected<std::vector<std::string>>
Ranks::gatherTexts(const std::string &own) const {
  auto sizes = gather(int64_t(own.size()));
  if (!sizes)
    return sizes.takeError();
  int64_t most = *llvm::max_element(*sizes);
  std::string padded = own, all(size_t(most * size()), '\0');
  padded.resize(size_t(most));
  if (!shared)
    all = padded;
  if (llvm::Error error = gatherBytes(padded.data(), most, all.data()))
    return std::move(error);
  std::vector<std::string> texts;
  for (size_t rank = 0; rank < sizes->size(); ++rank)
    texts.push_back(all.substr(rank * size_t(most), size_t((*sizes)[rank])));
  return std::move(texts);
}

/// A rank's next call, in the form of others' errors.
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
  case Call::Resume:
    return "resumes from a checkpoint";
  case Call::Profile:
    return "profiles";
  case Call::Batch:
    return "has another batch";
  case Call::End:
    return "has no more batches";
  }
  return "does something else";
}

llvm::Error Ranks::meet(const Meeting &meeting, llvm::Error own) const {
  if (!shared)
    return own;
  // Its size differs from that of every other message that ranks compare: a
  // rank that makes another call is noticed by it.
  struct Numbers {
    Call call;
    int64_t step;
    uint64_t same;
    int64_t failed;
    int64_t unused = 0;
  };
  Numbers mine = {meeting.call, meeting.step, meeting.same, bool(own)};
  auto gathered = gather(mine);
  if (own) {
    llvm::consumeError(gathered.takeError());
    return own;
  }
  if (!gathered)
    return gathered.takeError();
  const std::vector<Numbers> &all = *gathered;
  auto rankNamed = [](size_t rank) { return "rank " + std::to_string(rank); };
  auto isBatch = [](Call call) {
    return call == Call::Batch || call == Call::End;
  };
  auto stepNamed = [](int64_t step) {
    return std::to_string(step) + llvm::getOrdinalSuffix(unsigned(step)).str();
  };
  for (size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank].failed)
      return failedRank(rank);
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
