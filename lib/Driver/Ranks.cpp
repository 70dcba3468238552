//===- Ranks.cpp - the processes of a program's run -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Driver/Ranks.h"

#include "Parallel.h"
#include "ckopt/Support/Error.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cstdlib>
#include <mutex>

using namespace ckopt;
using runtime::World;

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

int64_t ckopt::rankNumber() {
  World *world = World::current();
  return world ? world->rank() : launchedPlace().first;
}

int64_t ckopt::rankCount() {
  return World::current() ? numRanks() : launchedPlace().second;
}

llvm::Error ckopt::joinRanks(StepSettings &settings) {
  int64_t ranks = settings.compile.step.ranks;
  auto line = [&](int64_t count) {
    std::string number = std::to_string(count);
    return "mpirun -n " + number + " " + ownLine() +
           (ranks == count ? std::string()
                           : ", with the setting --parallel=dp:" + number);
  };
  bool first = !World::current();
  auto several = meetOthers(ranks, settings.ncclId, settings.rankTimeout, line);
  if (!several || !*several)
    return several.takeError();
  static std::once_flag registered;
  std::call_once(registered, [] { std::atexit(leaveRanks); });
  settings.compile.together = true;
  if (llvm::Error error =
          meetRanks({Call::Compile, 0, ""}, llvm::Error::success()))
    return error;
  if (llvm::Error error = agreeOnFlags(settings.compile))
    return error;
  if (llvm::Error error = agreeOnCpu(settings.compile.target))
    return error;
  if (!isMainRank()) {
    leaveFilesToMain(settings.train);
    settings.compile.phases.verbose = false;
    settings.compile.phases.dumpDirectory.clear();
  }
  if (!first)
    return llvm::Error::success();
  if (isMainRank())
    if (auto message = describeBinding(settings.compile.step.threads);
        message && settings.compile.messages)
      settings.compile.messages(*message);
  return llvm::Error::success();
}

void ckopt::leaveRanks() {
  if (World *world = World::current())
    world->close();
}
