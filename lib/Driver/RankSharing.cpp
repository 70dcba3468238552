//===- RankSharing.cpp - what ranks tell each other -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Texts, numbers, errors and evaluations of one rank for all of them, and what
// they sent. All ranks walk through the same calls of these functions.
//
//===----------------------------------------------------------------------===//
#include "Parallel.h"

#include "ckopt/Support/Error.h"
#include "llvm/Support/FileSystem.h"

#include <type_traits>

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

llvm::Error ckopt::gatherTraffic(Communication &traffic) {
  World *world = World::current();
  if (!world)
    return llvm::Error::success();
  int64_t messages = 0, bytes = 0;
  for (const runtime::CollectiveRecord &record : world->records()) {
    traffic.collectives.push_back({record.kind, record.bytes, record.seconds});
    messages += record.messages;
    bytes += record.sentBytes;
  }
  if (llvm::Error error = gatherNumbers(messages).moveInto(traffic.messages))
    return error;
  return gatherNumbers(bytes).moveInto(traffic.sentBytes);
}

llvm::Expected<Evaluation> ckopt::evaluateOnMain(Session &session,
                                                 BatchSource &source,
                                                 const DataOptions &data) {
  World *world = World::current();
  // Ranks that share weights compute the same numbers together.
  if (session.isSharded())
    return evaluate(session, source, data);
  runtime::KeepAlive alive;
  Evaluation result;
  int64_t code = ExitOk;
  std::string error;
  llvm::Error failed = llvm::Error::success();
  if (!world || world->isMain()) {
    auto own = evaluate(session, source, data);
    if (!world || (!own && failureEndsAll()))
      return own;
    if (own)
      result = *own;
    else
      failed = own.takeError();
    code = failed ? ExitRank : ExitOk;
  }
  static_assert(std::is_trivially_copyable_v<Evaluation>);
  if (!world->broadcast(&code, sizeof(code), error))
    return llvm::joinErrors(std::move(failed), rankError(error));
  if (failed)
    return std::move(failed);
  if (code != ExitOk)
    return rankError("rank 0 could not evaluate; its own message says why");
  if (!world->broadcast(&result, sizeof(result), error))
    return rankError(error);
  return result;
}

llvm::Error ckopt::withRank(llvm::Error error, int64_t step) {
  World *world = World::current();
  if (!error || !world)
    return error;
  return withContext(std::move(error), "rank " + llvm::Twine(world->rank()) +
                                           " on " + world->host() + ", step " +
                                           llvm::Twine(step));
}
