//===- JoinRanks.h - the processes of a program's run -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program that mpirun started N times trains one step with all of these
// processes: it sets `parallel` and calls joinRanks() before compile(). Then
// all ranks make the same calls, with the same batches (docs/parallel.md). Rank
// 0 compiles. Each rank evaluates by itself, unless ranks share weights.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SETTINGS_JOINRANKS_H
#define CKOPT_SETTINGS_JOINRANKS_H

#include "ckopt/Ranks/Ranks.h"
#include "ckopt/Settings/Settings.h"

namespace ckopt {

/// Connects to the other ranks, the first time, and makes compile() plan with
/// them. Refuses ranks that were not started, and processes that would each
/// train independently; the error shows the command line for this program.
/// Ranks disconnect at Ranks::leave() or at the end of the process.
llvm::Error joinRanks(StepSettings &settings);

} // namespace ckopt

#endif // CKOPT_SETTINGS_JOINRANKS_H
