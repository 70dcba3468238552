//===- Ranks.h - the processes of one run ------------------------*- C++
//-*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_RANKS_RANKS_H
#define CKOPT_RANKS_RANKS_H

#include "ckopt/Runtime/KeepAlive.h"
#include "ckopt/Runtime/World.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Messages.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ckopt {

/// Makes the error of ranks that differ or do not answer.
inline llvm::Error rankError(const llvm::Twine &text) {
  return makeError(ExitRank, text);
}

/// Tells whether a rank that fails ends the others: then it need not tell them.
bool failureEndsAll();
/// Makes it so from now on.
void endAllOnFailure();

/// Tells whether this process is the one that prints, writes and evaluates.
inline bool isMainRank() {
  runtime::World *world = runtime::World::current();
  return !world || world->isMain();
}
inline int64_t numRanks() {
  runtime::World *world = runtime::World::current();
  return world ? world->size() : 1;
}

/// Refuses numbers of processes that do not fit `wanted` ranks; `line` makes
/// the command line that starts so many.
llvm::Error checkLaunch(int64_t wanted,
                        llvm::function_ref<std::string(int64_t)> line);
/// Opens the world of so many ranks, unless it is open already.
llvm::Error openWorld(int64_t ranks, double timeout);
/// Opens the world of so many ranks on devices, which RANK and WORLD_SIZE
/// number and a file lets meet; refuses other numbers of them.
llvm::Error meetByFile(int64_t ranks, llvm::StringRef file, double timeout);
/// Meets the other ranks by one of these ways: by the file if it has a name,
/// else those that mpirun started. Returns false where there are none.
llvm::Expected<bool> meetOthers(int64_t ranks, llvm::StringRef file,
                                double timeout,
                                llvm::function_ref<std::string(int64_t)> line);
/// Tells ranks with a timeout that this one works, from now until the first
/// step, which ends it.
void beginPreparing();
void endPreparing();
/// Says so where mpirun left a rank fewer cores than it has threads.
std::optional<Message> describeBinding(int64_t threads);
/// Returns the processes that mpirun started; 0: this one was started alone.
int64_t launchedRanks();
/// Returns this process's number and how many there are, as mpirun or RANK and
/// WORLD_SIZE tell it; alone: 0 and 1.
std::pair<int64_t, int64_t> launchedPlace();
/// Returns how many of them share this machine; at least 1.
int64_t ranksOfMachine(int64_t ranks);

/// What the ranks of a program do together.
enum class Call : int64_t {
  Compile,
  Step,
  Gradients,
  Fit,
  Evaluate,
  Predict,
  Weights,
  Save,
  Checkpoint,
  Profile,
  Batch, ///< of fit: has one more
  End,   ///< of fit: has none in this epoch
};
/// What ranks tell each other before a call.
struct Meeting {
  Call call = Call::Step;
  uint64_t same = 0;        ///< must be equal on all
  const char *differs = ""; ///< else: "rank 1 ..."
  int64_t step = 0;         ///< which of the compiled ones, from 1; 0: none
};
/// Begins a call that all ranks make together: an error on all where one makes
/// another call, or of another step, comes with another number, or has failed
/// by itself already (`own`), which returns its own error. Without other ranks
/// that is all. Messages of all calls are alike, so that ranks can go on.
llvm::Error meetRanks(const Meeting &meeting, llvm::Error own);

/// Returns a text of each rank, where there are several.
llvm::Expected<std::vector<std::string>> gatherTexts(const std::string &own);
/// Returns a number of each rank.
llvm::Expected<std::vector<int64_t>> gatherNumbers(int64_t own);

/// Begins to count what ranks send each other.
void forgetCollectives();
/// Returns how long this rank has been in collectives since then.
double collectiveSeconds();

/// Gives rank 0's text to all ranks.
llvm::Error broadcastText(runtime::World &world, std::string &text);
/// Gives a path of rank 0 to the others, as an absolute one; "" stays "".
llvm::Error shareMainPath(std::string &path);

/// Returns an error where another rank has one: all ranks come here, with their
/// own. Where a failure ends all ranks, the others wait for that instead.
llvm::Error agreeOnError(llvm::Error own);

/// Puts the rank, its machine and the step before an error's message, where
/// there are several ranks.
llvm::Error withRank(llvm::Error error, int64_t step);

/// Parts from the other ranks, and waits until they part, too. Does nothing
/// where there are none.
void leaveRanks();

/// This process's number, from 0, and how many there are; alone: 0 and 1.
/// Before joinRanks() they are what the launcher tells.
int64_t rankNumber();
int64_t rankCount();

} // namespace ckopt

#endif // CKOPT_RANKS_RANKS_H
