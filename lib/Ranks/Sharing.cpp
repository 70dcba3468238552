//===- Sharing.cpp - what ranks tell each other ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Texts, numbers, errors and calls of one rank for all of them, and what they
// sent. All ranks walk through the same calls of these functions.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Ranks/Ranks.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"

using namespace ckopt;
using runtime::World;

llvm::Error ckopt::shareMainPath(std::string &path) {
  World *world = World::current();
  if (!world)
    return llvm::Error::success();
  std::string given = path;
  if (world->isMain() && !path.empty()) {
    llvm::SmallString<256> absolute(path);
    if (std::error_code code = llvm::sys::fs::make_absolute(absolute))
      return ioError("'" + path + "': " + code.message());
    given = absolute.str();
  }
  if (llvm::Error error = broadcastText(*world, given))
    return error;
  if (!world->isMain())
    path = given;
  return llvm::Error::success();
}

llvm::Error ckopt::broadcastText(World &world, std::string &text) {
  std::string error;
  int64_t bytes = int64_t(text.size());
  if (!world.broadcast(&bytes, sizeof(bytes), error))
    return rankError(error);
  text.resize(size_t(bytes));
  if (!world.broadcast(text.data(), bytes, error))
    return rankError(error);
  return llvm::Error::success();
}

llvm::Error ckopt::agreeOnError(llvm::Error own) {
  if (own && failureEndsAll())
    return own;
  auto all = gatherNumbers(own ? 1 : 0);
  if (own) {
    llvm::consumeError(all.takeError());
    return own;
  }
  if (!all)
    return all.takeError();
  for (size_t rank = 0; rank < all->size(); ++rank)
    if ((*all)[rank])
      return rankError("rank " + std::to_string(rank) +
                       " failed; its own message says why");
  return llvm::Error::success();
}

llvm::Expected<std::vector<int64_t>> ckopt::gatherNumbers(int64_t own) {
  World *world = World::current();
  if (!world)
    return std::vector<int64_t>{own};
  std::vector<int64_t> all(size_t(world->size()));
  std::string error;
  if (!world->gatherAll(&own, sizeof(own), all.data(), error))
    return rankError(error);
  return std::move(all);
}

void ckopt::forgetCollectives() {
  if (World *world = World::current())
    world->clearRecords();
}

double ckopt::collectiveSeconds() {
  double seconds = 0;
  if (World *world = World::current())
    for (const runtime::CollectiveRecord &record : world->records())
      seconds += record.seconds;
  return seconds;
}

llvm::Error ckopt::withRank(llvm::Error error, int64_t step) {
  World *world = World::current();
  if (!error || !world)
    return error;
  return withContext(std::move(error), "rank " + llvm::Twine(world->rank()) +
                                           " on " + world->host() + ", step " +
                                           llvm::Twine(step));
}

/// Returns the texts of all ranks.
llvm::Expected<std::vector<std::string>>
ckopt::gatherTexts(const std::string &own) {
  World &world = *World::current();
  auto sizes = gatherNumbers(int64_t(own.size()));
  if (!sizes)
    return sizes.takeError();
  int64_t most = *llvm::max_element(*sizes);
  std::string padded = own, all(size_t(most * world.size()), '\0'), error;
  padded.resize(size_t(most));
  if (!world.gatherAll(padded.data(), most, all.data(), error))
    return rankError(error);
  std::vector<std::string> texts;
  for (size_t rank = 0; rank < sizes->size(); ++rank)
    texts.push_back(all.substr(rank * size_t(most), size_t((*sizes)[rank])));
  return std::move(texts);
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
