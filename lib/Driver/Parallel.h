//===- Parallel.h - training by several processes ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_DRIVER_PARALLEL_H
#define CKOPT_LIB_DRIVER_PARALLEL_H

#include "CommandLine.h"

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
/// Returns the processes that mpirun started; 0: this one was started alone.
int64_t launchedRanks();
/// Returns how many of them share this machine; at least 1.
int64_t ranksOfMachine(int64_t ranks);

/// Meets the other processes where flags ask for them. Refuses processes that
/// would each do the same, alone, and ranks that nobody started.
llvm::Error joinWorld(DriverOptions &options);

/// Plans on rank 0 alone, whose search may depend on time; all ranks get the
/// plan.
llvm::Error planOnMain(Compilation &compilation);

/// Compares a rank's step, weights, samples and options with those of rank 0;
/// the error names the rank that differs, and in what.
llvm::Error checkRanksAgree(const Compilation &compilation,
                            const Session &session, const BatchSource &source,
                            const BatchSource *validation,
                            const DriverOptions &options);
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

/// Puts the rank, its machine and the step before an error's message, where
/// there are several ranks.
llvm::Error withRank(llvm::Error error, int64_t step);

} // namespace ckopt

#endif // CKOPT_LIB_DRIVER_PARALLEL_H
