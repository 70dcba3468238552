//===- Parallel.h - training by several processes ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_DRIVER_PARALLEL_H
#define CKOPT_LIB_DRIVER_PARALLEL_H

#include "CommandLine.h"

#include "ckopt/Driver/Ranks.h"
#include "ckopt/Runtime/World.h"

namespace ckopt {

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
/// Says so where mpirun left a rank fewer cores than it has threads.
std::optional<Message> describeBinding(int64_t threads);
/// Returns the processes that mpirun started; 0: this one was started alone.
int64_t launchedRanks();
/// Returns how many of them share this machine; at least 1.
int64_t ranksOfMachine(int64_t ranks);

/// Meets the other processes where flags ask for them. Refuses processes that
/// would each do the same, alone, and ranks that nobody started.
llvm::Error joinWorld(DriverOptions &options);

/// Plans on rank 0 alone, whose search may depend on time; all ranks get the
/// plan, or the error, where `compilation` is planned together.
llvm::Error planOnMain(Compilation &compilation);

/// Compares a rank's step, weights, samples and options with those of rank 0;
/// the error names the rank that differs, and in what.
llvm::Error checkRanksAgree(const Compilation &compilation,
                            const Session &session, const BatchSource &source,
                            const BatchSource *validation,
                            const TrainOptions &train);
/// The same of a step whose batches the caller brings.
llvm::Error checkRanksAgree(const Compilation &compilation,
                            const Session &session, const TrainOptions &train);
/// Leaves files and progress to rank 0.
void leaveFilesToMain(TrainOptions &train);
/// Compares the weights and states that all ranks go on from, where they
/// `changed` since the last step.
llvm::Error checkSameStart(const Session &session, bool changed);
/// Compares what all ranks trained; a difference is a defect of ckopt.
llvm::Error checkSameState(const Session &session);
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

/// Returns an error where another rank has one: all ranks come here, with their
/// own.
llvm::Error agreeOnError(llvm::Error own);

/// Puts the rank, its machine and the step before an error's message, where
/// there are several ranks.
llvm::Error withRank(llvm::Error error, int64_t step);

} // namespace ckopt

#endif // CKOPT_LIB_DRIVER_PARALLEL_H
