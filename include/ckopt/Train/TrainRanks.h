//===- TrainRanks.h - ranks that train one step -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before the first step ranks compare what their bits depend on; at the end,
// what was trained. Evaluations are rank 0's, unless ranks share weights.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TRAIN_TRAINRANKS_H
#define CKOPT_TRAIN_TRAINRANKS_H

#include "ckopt/Ranks/Ranks.h"
#include "ckopt/Train/Step.h"

namespace ckopt {

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

/// Returns a hash of the weights and states that all ranks have, for meetings.
llvm::Expected<uint64_t> hashCommonState(const Session &session);

/// Compares what all ranks trained; a difference is a defect of ckopt.
llvm::Error checkSameState(const Session &session);

/// Returns what all ranks sent since Ranks::forgetCollectives().
llvm::Error gatherTraffic(const Ranks &ranks, Communication &traffic);

/// Evaluates on rank 0 alone, or on all where none has all weights; all ranks
/// get what it found.
llvm::Expected<Evaluation> evaluateOnMain(Session &session, BatchSource &source,
                                          const StepData &data);

} // namespace ckopt

#endif // CKOPT_TRAIN_TRAINRANKS_H
