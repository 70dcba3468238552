//===- RankClock.h - what plans take on a rank ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What collectives add to a step is known above this layer: to the pass
// `overlap`, whose library gives ckopt's dialect this interface.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_REMAT_RANKCLOCK_H
#define CKOPT_REMAT_RANKCLOCK_H

#include "ckopt/Remat/Remat.h"
#include "mlir/IR/DialectInterface.h"

namespace ckopt {

class RankClockInterface
    : public mlir::DialectInterface::Base<RankClockInterface> {
public:
  explicit RankClockInterface(mlir::Dialect *dialect) : Base(dialect) {}

  /// Returns a clock that tells, of plans of the problem, the seconds that the
  /// pass `overlap` will tell, or without `options.overlap` those of
  /// collectives that block; null where the function has no collective, or ops
  /// other than kernel calls. Budgets count this function's arguments, without
  /// reserved bytes. The clock has a copy of the function, and needs its
  /// context alone.
  virtual std::shared_ptr<planner::MessageClock>
  makeClock(mlir::FunctionOpInterface function, const PlanningProblem &problem,
            const RematOptions &options) const = 0;
};

} // namespace ckopt

#endif // CKOPT_REMAT_RANKCLOCK_H
