//===- Ranks.h - the processes of one run -----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a step is compiled and trained by one process or by several, and
// code that works on it must know by which. Method: the processes that
// connected are a `Ranks`, which options of a compilation carry, and then
// compilations and sessions. So a process that has connected to others can
// still compile a step by itself. Guarantee: all ranks make the same calls of
// these functions; a rank that does not is an error on all of them.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_RANKS_RANKS_H
#define CKOPT_RANKS_RANKS_H

#include "ckopt/Runtime/World.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Messages.h"

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ckopt {

/// Makes the error of ranks that differ or do not answer.
inline llvm::Error rankError(const MessageText &text) {
  return makeError(ExitRank, text);
}

/// Makes the error of a rank that stops because of another rank's error.
inline llvm::Error failedRank(size_t rank) {
  return rankError("rank " + llvm::Twine(rank) +
                   " failed; its own message says why");
}

/// The calls that the ranks of a program make together.
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
  Resume,
  Profile,
  Batch, ///< fit: this rank has another batch
  End,   ///< fit: this rank has no more batches in this epoch
};
/// What ranks compare before a call.
struct Meeting {
  Call call = Call::Step;
  uint64_t same = 0;        ///< must be equal on all ranks
  const char *differs = ""; ///< the error otherwise: "rank 1 ..."
  int64_t step = 0;         ///< number of the compiled step, from 1; 0: none
};
/// The processes that compile and train one step, as one of them sees them:
/// small, and copied freely. They share the process's only World.
class Ranks {
public:
  /// This process by itself, even if it has connected to others.
  Ranks() = default;
  /// The processes that this one has connected to; itself if there are none.
  static Ranks met();

  bool areSeveral() const { return shared != nullptr; }
  /// Tells whether this process is the one that prints, writes and evaluates.
  bool isMain() const { return number() == 0; }
  int64_t size() const;
  int64_t number() const;
  /// Null for a single process; only for tasks that the functions below do not
  /// cover.
  runtime::World &world() const;
  /// Returns "rank 1 on HOST".
  std::string name() const;

  /// Makes a failure of this rank end the others, without telling them before.
  void endAllOnFailure();
  bool failureEndsAll() const;
  /// Tells ranks with a timeout that this one is working, from now until the
  /// first step, which ends it.
  void beginPreparing();
  void endPreparing() const;

  /// Begins a call that all ranks make together. It is an error on all ranks if
  /// one makes another call, or a call of another step, has another number, or
  /// has failed before (`own`; that rank returns its own error). Without other
  /// ranks it does nothing else. The messages of all calls have one form, so
  /// that ranks can go on after an error.
  llvm::Error meet(const Meeting &meeting, llvm::Error own) const;
  /// Returns an error if another rank has one: all ranks call it with their
  /// own. If a failure ends all ranks, the others wait for that instead.
  llvm::Error agreeOnError(llvm::Error own) const;

  /// Returns each rank's value.
  template <typename T>
  llvm::Expected<std::vector<T>> gather(const T &own) const {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> all(size_t(size()), own);
    if (llvm::Error error = gatherBytes(&own, sizeof(T), all.data()))
      return std::move(error);
    return std::move(all);
  }
  llvm::Expected<std::vector<std::string>>
  gatherTexts(const std::string &own) const;
  /// Gives rank 0's value to all ranks.
  template <typename T> llvm::Error broadcast(T &value) const {
    static_assert(std::is_trivially_copyable_v<T>);
    return broadcastBytes(&value, sizeof(T));
  }
  /// Gives `bytes` bytes of rank 0 to all ranks.
  llvm::Error broadcastBytes(void *data, int64_t bytes) const;
  llvm::Error broadcastText(std::string &text) const;
  /// Gives a path of rank 0 to the others, as an absolute one; "" stays "".
  llvm::Error shareMainPath(std::string &path) const;

  /// Starts to count the messages between ranks.
  void forgetCollectives() const;
  /// Returns how long this rank has been in collectives since then, in seconds.
  double collectiveSeconds() const;
  /// Puts the rank, its machine and the step before an error's message, where
  /// there are several ranks.
  llvm::Error withRank(llvm::Error error, int64_t step) const;
  /// Disconnects from the other ranks after waiting until they disconnect, too.
  void leave() const;

private:
  struct Shared;
  llvm::Error gatherBytes(const void *own, int64_t bytes, void *all) const;

  std::shared_ptr<Shared> shared; ///< null: a single process
};

/// Refuses numbers of processes other than `wanted`; `line` makes the command
/// line that starts that many.
llvm::Error checkLaunch(int64_t wanted,
                        llvm::function_ref<MessageText(int64_t)> line);
/// Opens the world of this number of ranks, unless it is open already.
llvm::Expected<Ranks> openWorld(int64_t ranks, double timeout);
/// Opens the world of this number of ranks on devices. RANK and WORLD_SIZE
/// number them, and they connect through a file; refuses other values of
/// WORLD_SIZE.
llvm::Expected<Ranks> meetByFile(int64_t ranks, llvm::StringRef file,
                                 double timeout);
/// Connects the ranks: through the file if it has a name, else through mpirun.
/// Returns this process by itself if there are no others.
llvm::Expected<Ranks> meetOthers(int64_t ranks, llvm::StringRef file,
                                 double timeout,
                                 llvm::function_ref<MessageText(int64_t)> line);
/// Warns if mpirun left a rank fewer cores than it has threads.
std::optional<Message> describeBinding(int64_t threads);
/// Returns the number of processes that mpirun started; 0: this one was started
/// without it.
int64_t launchedRanks();
/// Returns this process's number and the number of processes, from mpirun or
/// RANK and WORLD_SIZE; 0 and 1 for a single one.
std::pair<int64_t, int64_t> launchedPlace();
/// Returns the same, but once this process has connected to others, its number
/// and count among them.
std::pair<int64_t, int64_t> placeOfProcess();
/// Returns how many of these processes share this machine; at least 1.
int64_t ranksOfMachine(int64_t ranks);

} // namespace ckopt

#endif // CKOPT_RANKS_RANKS_H
