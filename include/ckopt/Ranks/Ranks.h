//===- Ranks.h - the processes of one run -----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a step is compiled and trained by one process or by several, and
// whoever works on it must know which of them it is. Method: processes that met
// are a `Ranks`, which options of a compilation carry, and from there on
// compilations and sessions: a step compiled alone in a process that has met
// others is that process's own. Guarantee: all ranks walk through the same
// calls of these functions; a rank that does not is an error on all of them.
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

/// Makes the error that another rank's keeps this one from its work.
inline llvm::Error failedRank(size_t rank) {
  return rankError("rank " + llvm::Twine(rank) +
                   " failed; its own message says why");
}

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
/// The processes that compile and train one step, as one of them sees them:
/// small, and copied to whoever needs it. The world behind it is the process's
/// only one.
class Ranks {
public:
  /// This process alone, whichever others it has met.
  Ranks() = default;
  /// Those that this process has met; itself alone where there are none.
  static Ranks met();

  bool areSeveral() const { return shared != nullptr; }
  /// Tells whether this process is the one that prints, writes and evaluates.
  bool isMain() const { return number() == 0; }
  int64_t size() const;
  int64_t number() const;
  /// Where there are several; only what the functions below do not do needs it.
  runtime::World &world() const;
  /// Returns "rank 1 on HOST".
  std::string name() const;

  /// Makes a failure of a rank end the others: it need not tell them.
  void endAllOnFailure();
  bool failureEndsAll() const;
  /// Tells ranks with a timeout that this one works, from now until the first
  /// step, which ends it.
  void beginPreparing();
  void endPreparing() const;

  /// Begins a call that all ranks make together: an error on all where one
  /// makes another call, or of another step, comes with another number, or has
  /// failed by itself already (`own`), which returns its own error. Without
  /// other ranks that is all. Messages of all calls are alike, so that ranks
  /// can go on.
  llvm::Error meet(const Meeting &meeting, llvm::Error own) const;
  /// Returns an error where another rank has one: all ranks come here, with
  /// their own. Where a failure ends all ranks, the others wait for that
  /// instead.
  llvm::Error agreeOnError(llvm::Error own) const;

  /// Returns a value of each rank.
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

  /// Begins to count what ranks send each other.
  void forgetCollectives() const;
  /// Returns how long this rank has been in collectives since then, in seconds.
  double collectiveSeconds() const;
  /// Puts the rank, its machine and the step before an error's message, where
  /// there are several ranks.
  llvm::Error withRank(llvm::Error error, int64_t step) const;
  /// Parts from the other ranks, and waits until they part, too.
  void leave() const;

private:
  struct Shared;
  llvm::Error gatherBytes(const void *own, int64_t bytes, void *all) const;

  std::shared_ptr<Shared> shared; ///< null: alone
};

/// Refuses numbers of processes that do not fit `wanted` ranks; `line` makes
/// the command line that starts so many.
llvm::Error checkLaunch(int64_t wanted,
                        llvm::function_ref<MessageText(int64_t)> line);
/// Opens the world of so many ranks, unless it is open already.
llvm::Expected<Ranks> openWorld(int64_t ranks, double timeout);
/// Opens the world of so many ranks on devices, which RANK and WORLD_SIZE
/// number and a file lets meet; refuses other numbers of them.
llvm::Expected<Ranks> meetByFile(int64_t ranks, llvm::StringRef file,
                                 double timeout);
/// Meets the other ranks by one of these ways: by the file if it has a name,
/// else those that mpirun started. Returns this process alone where there are
/// none.
llvm::Expected<Ranks> meetOthers(int64_t ranks, llvm::StringRef file,
                                 double timeout,
                                 llvm::function_ref<MessageText(int64_t)> line);
/// Says so where mpirun left a rank fewer cores than it has threads.
std::optional<Message> describeBinding(int64_t threads);
/// Returns the processes that mpirun started; 0: this one was started alone.
int64_t launchedRanks();
/// Returns this process's number and how many there are, as mpirun or RANK and
/// WORLD_SIZE tell it; alone: 0 and 1.
std::pair<int64_t, int64_t> launchedPlace();
/// Returns the same, or, once this process has met others, its number and how
/// many they are.
std::pair<int64_t, int64_t> placeOfProcess();
/// Returns how many of them share this machine; at least 1.
int64_t ranksOfMachine(int64_t ranks);

} // namespace ckopt

#endif // CKOPT_RANKS_RANKS_H
