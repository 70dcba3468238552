//===- LocalSearchAnnealer.h - annealing on a sequence -------- -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner. One chain of the local search: a sequence of steps, a
// random number stream of its own, and the moves.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_IMPROVE_LOCALSEARCHANNEALER_H
#define CKOPT_LIB_PLANNER_IMPROVE_LOCALSEARCHANNEALER_H

#include "Model/Deadline.h"
#include "Model/Sequence.h"

namespace ckopt::planner {

/// SplitMix64, a small and fast generator that is the same everywhere.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// Returns a number from 0 to n - 1; n > 0.
  int32_t below(int32_t n) {
    return int32_t(((next() >> 32) * uint64_t(n)) >> 32);
  }

private:
  uint64_t state;
};

/// Immutable tables that all chains on one problem share.
struct AnnealingTables {
  explicit AnnealingTables(const Problem &problem);

  /// Values that can be made again, by rising cost per byte.
  std::vector<ValueId> byRatio;
  /// Order edges other than data dependences.
  Csr extraPreds, extraSuccs;
  /// -log((i + 0.5) / 4096), for random draws of the Metropolis rule.
  std::vector<double> draws;
};

struct AnnealingGoal {
  int64_t budget = 0;
  bool fixedOrder = false;
  /// Only moves steps, without recomputation.
  bool orderOnly = false;
  /// Cost of a byte over the budget.
  double penalty = 0;
};

class Annealer {
public:
  Annealer(const Problem &problem, const AnnealingTables &tables,
           AnnealingGoal goal, const std::vector<NodeId> &start, uint64_t seed);

  /// Makes `moves` proposals while the temperature falls from `hot` to `cold`
  /// (in units of cost). Ends early with the deadline, and returns false then.
  bool run(int64_t moves, double hot, double cold, Deadline &deadline);

  /// Returns the cheapest steps within the budget, or else those of the least
  /// energy.
  const std::vector<NodeId> &best() const { return bestSteps; }
  double bestCost() const { return bestCostSeen; }
  int64_t bestPeak() const { return bestPeakSeen; }

private:
  struct Edit {
    enum Kind : uint8_t { Insert, Remove, Move } kind;
    NodeId node;
    int32_t slot, from;
  };
  struct Window {
    int32_t low, high; ///< exclusive
  };

  double energy() const {
    int64_t over = sequence.peak() - goal.budget;
    return sequence.cost() + (over > 0 ? goal.penalty * double(over) : 0);
  }
  /// Returns the largest load at which a sequence that costs `rise` more than
  /// this one would be accepted; -1: none.
  int64_t affordable(double rise) const {
    double rest = limit - sequence.cost() - rise;
    return rest < 0 ? -1 : goal.budget + int64_t(rest / goal.penalty);
  }

  void updateMulti(NodeId n);
  void insert(NodeId n, int32_t slot);
  void remove(int32_t slot);
  void move(int32_t from, int32_t to);
  void undo();
  void keepBest();
  int32_t randomStep();
  int32_t randomRun();
  int32_t targetIn(Window window, int32_t slot);

  bool propose();
  bool mayDrop(int32_t slot) const;
  bool proposeRemove();
  bool proposeExchange();
  bool proposeInsert();
  bool proposeShift();
  bool proposeMove();
  bool insertAt(int32_t target, double atMost);
  bool insertBefore(ValueId value, int32_t slot, double atMost, int depth);
  bool removalFits(int32_t slot) const;
  bool moveFits(int32_t from, int32_t to) const;
  void removeDead(NodeId of, int32_t slot, int depth);
  bool isDeadRun(int32_t slot) const;
  Window windowOf(int32_t slot) const;

  const Problem &problem;
  const AnnealingTables &tables;
  AnnealingGoal goal;
  Sequence sequence;
  Random random;
  /// Largest energy at which the current proposal is accepted.
  double limit = 0;
  std::vector<Edit> log;
  std::vector<NodeId> multi; ///< nodes that run more than once
  std::vector<int32_t> multiIndex;
  bool crowded = false; ///< there was no empty slot for a step
  /// Operands touched since the last report to the deadline.
  int64_t work = 0;
  std::vector<NodeId> bestSteps;
  double bestCostSeen = 0, bestEnergy = 0;
  int64_t bestPeakSeen = 0;
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_IMPROVE_LOCALSEARCHANNEALER_H
