//===- Classic.h - what the classical strategies share ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to this folder. The published methods assume a forward part, which is
// split into a chain of stages, and a backward part that needs its values
// again. On any graph: the forward part is the order up to the step of its
// peak, stages are split where few bytes are live, and the backward part needs
// a value if it is read after the peak.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_BENCHMARKS_BASELINES_CLASSIC_H
#define CKOPT_BENCHMARKS_BASELINES_CLASSIC_H

#include "Model/Strategy.h"

namespace ckopt::planner {

/// Returns how many orders a classical strategy tries: two, or the program
/// order alone if it is fixed.
inline size_t ordersOf(const StrategyContext &context) {
  return std::min<size_t>(context.orders.size(), 2);
}

/// An order split in two parts, with the forward part split into stages.
struct ForwardPart {
  ForwardPart(const Problem &problem, const std::vector<NodeId> &order,
              int32_t mostStages);

  const Problem &problem;
  const std::vector<NodeId> &order;
  int32_t turn = -1; ///< last position of the forward part; -1 if it has none
  // The following are by storage, as positions; -1: none.
  std::vector<int32_t> made;       ///< in the forward part
  std::vector<int32_t> lastBefore; ///< last read up to the turn, views included
  std::vector<int32_t> lastUse;
  /// Stage i runs the positions [begin[i], begin[i + 1]).
  std::vector<int32_t> begin;
  std::vector<int32_t> stageOf; ///< by value; -1 if not of the forward part

  int32_t stages() const { return int32_t(begin.size()) - 1; }
  /// Returns whether stages from `stage` on read the storage and an earlier one
  /// makes it.
  bool crosses(ValueId storage, int32_t stage) const {
    return made[storage] >= 0 && made[storage] < begin[stage] &&
           lastBefore[storage] >= begin[stage];
  }
  bool wanted(ValueId storage) const { return lastUse[storage] > turn; }
  /// By stage: cost of its nodes; bytes that cross its start; bytes made in it
  /// that the backward part needs.
  std::vector<double> stageCost() const;
  std::vector<int64_t> crossingBytes() const;
  std::vector<int64_t> wantedBytes() const;

private:
  void cut(int32_t mostStages);
};

/// Decides about the stages [from, to], given the values that cross into the
/// first of them: run the first one and keep its results for the backward part,
/// or (split > from) run up to stage `split` and keep only the values that
/// cross into it, so that the stages before it run once more later.
class StagePolicy {
public:
  virtual ~StagePolicy() = default;
  /// With `split` == from, the first stage is kept. `level` is the policy's own
  /// number, for the part after the split (or the rest) and the part before it.
  struct Decision {
    int32_t split;
    int32_t levelAfter, levelBefore;
  };
  virtual Decision decide(int32_t from, int32_t to, int32_t level) const = 0;
  int32_t firstLevel = 0;
};

/// Returns steps that follow the policy. Nodes that may not run again do not:
/// their results are kept.
std::vector<NodeId> runStages(const ForwardPart &forward,
                              const StagePolicy &policy);

/// Returns steps in which the backward part replays, once and when it first
/// needs it, every forward value that is not saved. `saved` is by storage.
std::vector<NodeId> runSaved(const ForwardPart &forward,
                             const std::vector<char> &saved);

/// The least number of stage runs that reverse `length` stages with `slots`
/// checkpoints beside the first (Griewank and Walther, 2000), and the position
/// of the next checkpoint. Holds tables for all smaller arguments.
class RevolveTable {
public:
  RevolveTable(int32_t length, int32_t slots);
  int64_t advances(int32_t length, int32_t slots) const;
  int32_t split(int32_t length, int32_t slots) const;

private:
  int32_t most;
  std::vector<std::vector<int64_t>> least;
  std::vector<std::vector<int32_t>> best;
};

/// The optimal persistent schedule of a heterogeneous chain (Beaumont et al.,
/// 2019) for each number of memory units up to `memory`. Sizes are in units.
class RotorTable {
public:
  /// By stage: cost; units that cross into it; units made in it that the
  /// backward part needs.
  RotorTable(std::vector<double> cost, std::vector<int32_t> crossing,
             std::vector<int32_t> wanted, int32_t memory);
  /// Returns the least cost to run the stages [from, to] so that the backward
  /// part finds all that it needs; infinity if the memory does not suffice.
  double cost(int32_t from, int32_t to, int32_t memory) const;
  /// Returns the split, as in StagePolicy::Decision.
  int32_t split(int32_t from, int32_t to, int32_t memory) const;
  int32_t crossing(int32_t stage) const { return enters[stage]; }
  int32_t wanted(int32_t stage) const { return keeps[stage]; }

private:
  size_t at(int32_t from, int32_t to, int32_t memory) const {
    return (size_t(from) * stages + to) * (units + 1) + memory;
  }
  int32_t stages, units;
  std::vector<double> work;
  std::vector<int32_t> enters, keeps;
  std::vector<double> table;
  std::vector<int16_t> choice;
};

void runByBytes(StrategyContext &context);
void runAll(StrategyContext &context);
void runSqrt(StrategyContext &context);
void runRevolve(StrategyContext &context);
void runRotor(StrategyContext &context);
void runMinCut(StrategyContext &context);
void runLowerSet(StrategyContext &context);

} // namespace ckopt::planner

#endif // CKOPT_BENCHMARKS_BASELINES_CLASSIC_H
