//===- WindowsTrade.h - trades a replay for cheaper ones --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner. Compound moves on a sequence: what is made again is
// kept instead, or the other way round, and the budget is then met again by the
// cheapest replays for their bytes.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_IMPROVE_WINDOWSTRADE_H
#define CKOPT_LIB_PLANNER_IMPROVE_WINDOWSTRADE_H

#include "Improve/LocalSearchAnnealer.h"
#include "Model/Sequence.h"

namespace ckopt::planner {

class Trader {
public:
  Trader(const Problem &problem, int64_t budget, bool fixedOrder)
      : problem(problem), budget(budget), fixedOrder(fixedOrder),
        sequence(problem, {}) {}

  /// Starts anew from valid steps.
  void assign(const std::vector<NodeId> &steps) { sequence.assign(steps); }
  /// Takes out the given repeated run of a node (1: the second one) and the
  /// runs that only it needed. False if it has to stay.
  bool keep(NodeId node, int32_t run);
  /// Lets go of what `value` holds at the highest load, and makes it again for
  /// its next read.
  bool drop(ValueId value) { return letGo(value, sequence.peakSlot()); }
  /// Lets go of values until the load is within the budget, at each highest
  /// place the one that costs the least for its bytes; `noise` >= 1 spreads
  /// what each is taken to cost. False if it cannot, or if the steps came to
  /// cost more than `atMost`.
  bool repair(double noise, double atMost, Random &random);

  double cost() const { return sequence.cost(); }
  int64_t peak() const { return sequence.peak(); }
  std::vector<NodeId> steps() const { return sequence.steps(); }
  /// Operands touched since the last call.
  int64_t takeWork() { return std::exchange(work, 0); }

private:
  int32_t readAfter(ValueId value, int32_t slot) const;
  double replayCost(ValueId value, int32_t over, int32_t before, int depth);
  bool make(ValueId value, int32_t over, int32_t before, int depth);
  bool letGo(ValueId value, int32_t over);
  bool removeDead(NodeId of, int32_t slot, int depth);

  const Problem &problem;
  int64_t budget;
  bool fixedOrder;
  Sequence sequence;
  int64_t work = 0;
  int32_t patience = 0; ///< runs that replayCost() may still count
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_IMPROVE_WINDOWSTRADE_H
