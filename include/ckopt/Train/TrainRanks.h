//===- TrainRanks.h - ranks that train one step -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before the first step, ranks compare everything that their bits depend on; at
// the end, the trained state. Rank 0 evaluates, unless ranks share weights.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TRAIN_TRAINRANKS_H
#define CKOPT_TRAIN_TRAINRANKS_H

#include "ckopt/Ranks/Ranks.h"
#include "ckopt/Train/Step.h"

namespace ckopt {

/// Compares a rank's step, weights, samples and options with those of rank 0;
/// the error names the rank that differs, and the difference.
llvm::Error checkRanksAgree(const Compilation &compilation,
                            const Session &session, const BatchSource &source,
                            const BatchSource *validation,
                            const TrainOptions &train);

/// The same for a step whose batches the caller brings.
llvm::Error checkRanksAgree(const Compilation &compilation,
                            const Session &session, const TrainOptions &train);

/// Leaves files and progress to rank 0, except for files that ranks with shards
/// write together.
void leaveFilesToMain(TrainOptions &train);

/// Returns a hash of the weights and states that all ranks have, for
/// comparisons.
llvm::Expected<uint64_t> hashCommonState(const Session &session);

/// Compares the trained state of all ranks; a difference is a defect of ckopt.
llvm::Error checkSameState(const Session &session);

/// Returns the messages of all ranks since Ranks::forgetCollectives().
llvm::Error gatherTraffic(const Ranks &ranks, Communication &traffic);

/// Evaluates only on rank 0, or on all ranks if none has all weights; all ranks
/// get the result.
llvm::Expected<Evaluation> evaluateOnMain(Session &session, BatchSource &source,
                                          const StepData &data);

} // namespace ckopt

#endif // CKOPT_TRAIN_TRAINRANKS_H
