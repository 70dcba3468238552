//===- JoinRanks.h - the processes of a program's run -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program that mpirun started N times trains one step by all of them: the
// setting `parallel`, and joinRanks() before compile(). From there on all ranks
// make the same calls, with the same batches (docs/parallel.md). Rank 0
// compiles. Evaluations are each rank's own, unless ranks share weights.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SETTINGS_JOINRANKS_H
#define CKOPT_SETTINGS_JOINRANKS_H

#include "ckopt/Ranks/Ranks.h"
#include "ckopt/Settings/Settings.h"

namespace ckopt {

/// Meets the other ranks, the first time, and makes compile() plan with them.
/// Refuses ranks that nobody started, and processes that would each train
/// alone; the error shows the line that starts this program. Ranks part at
/// Ranks::leave() or at the end of the process.
llvm::Error joinRanks(StepSettings &settings);

} // namespace ckopt

#endif // CKOPT_SETTINGS_JOINRANKS_H
