//===- Parallel.h - training by several processes ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_DRIVER_PARALLEL_H
#define CKOPT_LIB_DRIVER_PARALLEL_H

#include "CommandLine.h"

#include "ckopt/Driver/Ranks.h"
#include "ckopt/Runtime/KeepAlive.h"
#include "ckopt/Runtime/World.h"
#include "ckopt/Support/Error.h"

#include <utility>

namespace ckopt {

/// Makes the error of ranks that differ or do not answer.
inline llvm::Error rankError(const llvm::Twine &text) {
  return makeError(ExitRank, text);
}

/// Tells whether a rank that fails ends the others: then it need not tell them.
bool failureEndsAll();

/// Tells whether this process is the one that prints, writes and evaluates.
inline bool isMainRank() {
  runtime::World *world = runtime::World::current();
  return !world || world->isMain();
}
inline int64_t numRanks() {
  runtime::World *world = runtime::World::current();
  return world ? world->size() : 1;
}

/// Parses "dp:N", "fsdp:N" or "dp:M,fsdp:N".
llvm::Error parseParallel(llvm::StringRef text, StepOptions &options);
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

/// Meets the other processes where flags ask for them. Refuses processes that
/// would each do the same, alone, and ranks that nobody started.
llvm::Error joinWorld(DriverOptions &options);

/// Refuses options that are not those of rank 0, before anything is made of
/// them.
llvm::Error agreeOnFlags(const CompileOptions &options);
/// Compares imported models and their weights before they are planned together;
/// an error on all where one has failed by itself already (`own`).
llvm::Error agreeOnModel(const Compilation &compilation, llvm::Error own);
/// Compares weights that are given beside the model.
llvm::Error agreeOnWeights(const TensorMap &weights);

/// Plans on rank 0 alone, whose search may depend on time; all ranks get the
/// plan, or the error, where `compilation` is planned together.
llvm::Error planOnMain(Compilation &compilation);

/// Makes the code of the plan on rank 0 alone; all ranks get it, or the error.
llvm::Error emitOnMain(Compilation &compilation);
/// Makes code run on the processors of all ranks.
llvm::Error agreeOnCpu(CpuOptions &cpu);

/// Compares a rank's step, weights, samples and options with those of rank 0;
/// the error names the rank that differs, and in what.
llvm::Error checkRanksAgree(const Compilation &compilation,
                            const Session &session, const BatchSource &source,
                            const BatchSource *validation,
                            const TrainOptions &train);
/// The same of a step whose batches the caller brings.
llvm::Error checkRanksAgree(const Compilation &compilation,
                            const Session &session, const TrainOptions &train);
/// Leaves files and progress to rank 0, but for what ranks with shards write
/// together.
void leaveFilesToMain(TrainOptions &train);

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
/// Returns a hash of the weights and states that all ranks have, for meetings.
llvm::Expected<uint64_t> hashCommonState(const Session &session);
/// Adds a hash of given tensors to `hash`.
void addHash(uint64_t &hash, const TensorMap &tensors);
/// The same of a file's, which are read one by one.
llvm::Error addHash(uint64_t &hash, const StoredTensors &tensors);
/// Compares what all ranks trained; a difference is a defect of ckopt.
llvm::Error checkSameState(const Session &session);
/// Returns a text of each rank, where there are several.
llvm::Expected<std::vector<std::string>> gatherTexts(const std::string &own);
/// Returns a number of each rank.
llvm::Expected<std::vector<int64_t>> gatherNumbers(int64_t own);

/// Begins to count what ranks send each other.
void forgetCollectives();
/// Returns how long this rank has been in collectives since then.
double collectiveSeconds();
/// Returns what all ranks sent since then.
llvm::Error gatherTraffic(Communication &traffic);

/// Evaluates on rank 0 alone, or on all where none has all weights; all ranks
/// get what it found.
llvm::Expected<Evaluation> evaluateOnMain(Session &session, BatchSource &source,
                                          const DataOptions &data);

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

} // namespace ckopt

#endif // CKOPT_LIB_DRIVER_PARALLEL_H
