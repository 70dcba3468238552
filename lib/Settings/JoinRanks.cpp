//===- JoinRanks.cpp - settings that several processes take together ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Settings/JoinRanks.h"
#include "ckopt/Compiler/Together.h"
#include "ckopt/Settings/Flags.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Train/TrainRanks.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cstdlib>
#include <mutex>

using namespace ckopt;

llvm::Error ckopt::parseParallel(llvm::StringRef text, StepOptions &options) {
  auto bad = [&]() {
    return usageError(Setting("parallel") + ": '" + text +
                      "' is not dp:N, fsdp:N or dp:M,fsdp:N, with 1 to 1024 "
                      "ranks");
  };
  int64_t replicas = 0, shards = 0;
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, ',');
  for (llvm::StringRef part : parts) {
    auto [kind, number] = part.split(':');
    int64_t count = 0;
    int64_t *into = kind == "dp"     ? &replicas
                    : kind == "fsdp" ? &shards
                                     : nullptr;
    if (!into || *into || number.getAsInteger(10, count) || count < 1 ||
        count > 1024)
      return bad();
    *into = count;
  }
  options.shards = std::max<int64_t>(shards, 1);
  options.ranks = std::max<int64_t>(replicas, 1) * options.shards;
  return options.ranks > 1024 ? bad() : llvm::Error::success();
}

/// Returns the line that started this process, as a shell takes it.
static std::string ownLine() {
  auto file = llvm::MemoryBuffer::getFileAsStream("/proc/self/cmdline");
  if (!file)
    return "PROGRAM";
  llvm::SmallVector<llvm::StringRef> words;
  (*file)->getBuffer().split(words, '\0', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  std::string line;
  for (llvm::StringRef word : words) {
    bool plain = llvm::all_of(word, [](char c) {
      return llvm::isAlnum(c) || llvm::StringRef("_-+=./:,@%").contains(c);
    });
    line += (line.empty() ? "" : " ") +
            (plain ? word.str() : "'" + word.str() + "'");
  }
  return line;
}

llvm::Error ckopt::joinRanks(StepSettings &settings) {
  int64_t ranks = settings.compile.step.ranks;
  auto line = [&](int64_t count) -> MessageText {
    std::string number = std::to_string(count);
    return "mpirun -n " + number + " " + ownLine() +
           (ranks == count
                ? MessageText()
                : ", with the setting " + Setting("parallel", "dp:" + number));
  };
  bool first = !Ranks::met().areSeveral();
  auto met = meetOthers(ranks, settings.ncclId, settings.rankTimeout, line);
  if (!met || !met->areSeveral())
    return met.takeError();
  static std::once_flag registered;
  std::call_once(registered, [] { std::atexit([] { Ranks::met().leave(); }); });
  settings.compile.ranks = *met;
  if (llvm::Error error =
          met->meet({Call::Compile, 0, ""}, llvm::Error::success()))
    return error;
  if (llvm::Error error = agreeOnGiven(settings.compile))
    return error;
  if (!met->isMain()) {
    leaveFilesToMain(settings.train);
    settings.compile.phases.verbose = false;
    settings.compile.phases.dumpDirectory.clear();
  }
  if (!first)
    return llvm::Error::success();
  if (met->isMain())
    if (auto message = describeBinding(settings.compile.step.threads);
        message && settings.compile.messages)
      settings.compile.messages(*message);
  return llvm::Error::success();
}
