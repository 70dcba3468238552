//===- RankClock.h - what plans take on a rank ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRANSFORMS_REMAT_RANKCLOCK_H
#define CKOPT_LIB_TRANSFORMS_REMAT_RANKCLOCK_H

#include "Planning.h"

namespace ckopt {

/// Returns a clock that tells, of plans of the problem, the seconds that the
/// pass `overlap` will tell, or without `options.overlap` those of collectives
/// that block; null where the function has no collective, or ops other than
/// kernel calls. Budgets count this function's arguments, without reserved
/// bytes. The clock has a copy of the function, and needs its context alone.
std::shared_ptr<planner::MessageClock>
makeRankClock(mlir::FunctionOpInterface function,
              const PlanningProblem &problem, const RematOptions &options);

} // namespace ckopt

#endif // CKOPT_LIB_TRANSFORMS_REMAT_RANKCLOCK_H
