//===- Classic.h - what the classical strategies share ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner. The published methods speak of a forward part, which
// is cut into a chain of stages, and of a backward part that wants its values
// again. On any graph: the forward part is what the order runs up to the step
// of its peak, stages are cut where few bytes are live, and a value is wanted
// by the backward part if it is read behind the peak.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_BASELINES_CLASSIC_H
#define CKOPT_LIB_PLANNER_BASELINES_CLASSIC_H

#include "Model/Strategy.h"

namespace ckopt::planner {

/// How many orders a classical strategy tries: two, or the program order alone
/// where it is fixed.
inline size_t ordersOf(const StrategyContext &context) {
  return std::min<size_t>(context.orders.size(), 2);
}

/// An order cut in two, and its forward part cut into stages.
struct ForwardPart {
  ForwardPart(const Problem &problem, const std::vector<NodeId> &order,
              int32_t mostStages);

  const Problem &problem;
  const std::vector<NodeId> &order;
  int32_t turn = -1; ///< last position of the forward part; -1: none
  // By storage (a value that is no view), positions; -1: none.
  std::vector<int32_t> made;       ///< in the forward part
  std::vector<int32_t> lastBefore; ///< last read up to the turn, of views too
  std::vector<int32_t> lastUse;
  /// Stage i runs the positions [begin[i], begin[i + 1]).
  std::vector<int32_t> begin;
  std::vector<int32_t> stageOf; ///< by value; -1: not of the forward part

  int32_t stages() const { return int32_t(begin.size()) - 1; }
  /// Read by stages from `stage` on, made before it.
  bool crosses(ValueId storage, int32_t stage) const {
    return made[storage] >= 0 && made[storage] < begin[stage] &&
           lastBefore[storage] >= begin[stage];
  }
  bool wanted(ValueId storage) const { return lastUse[storage] > turn; }
  /// By stage: cost of its nodes; bytes that cross its start; bytes made in it
  /// that the backward part wants.
  std::vector<double> stageCost() const;
  std::vector<int64_t> crossingBytes() const;
  std::vector<int64_t> wantedBytes() const;

private:
  void cut(int32_t mostStages);
};

/// What to do with the stages [from, to], from what crosses into the first of
/// them: run the first one and keep what it makes for the backward part, or
/// (split > from) run up to stage `split` and keep only what crosses into it,
/// so that the stages before it run once more later.
class StagePolicy {
public:
  virtual ~StagePolicy() = default;
  /// `split` == from: keep the first stage. `level` is the policy's own number,
  /// for the part behind the split (or the rest) and the part before it.
  struct Decision {
    int32_t split;
    int32_t levelAfter, levelBefore;
  };
  virtual Decision decide(int32_t from, int32_t to, int32_t level) const = 0;
  int32_t firstLevel = 0;
};

/// Steps that follow the policy. Nodes that may not run again do not: what they
/// made is kept.
std::vector<NodeId> runStages(const ForwardPart &forward,
                              const StagePolicy &policy);

/// Steps in which the backward part replays, once and when it first wants it,
/// whatever of the forward part is not saved. `saved` is by storage.
std::vector<NodeId> runSaved(const ForwardPart &forward,
                             const std::vector<char> &saved);

/// Least number of times that stages are run to reverse `length` of them with
/// `slots` checkpoints beside the first (Griewank and Walther, 2000), and where
/// to put the next checkpoint. Tables for all smaller arguments.
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
  /// By stage: cost; units that cross into it; units it makes that are wanted.
  RotorTable(std::vector<double> cost, std::vector<int32_t> crossing,
             std::vector<int32_t> wanted, int32_t memory);
  /// Least cost to run the stages [from, to] so that the backward part finds
  /// all it wants; infinity if the memory does not do.
  double cost(int32_t from, int32_t to, int32_t memory) const;
  /// As StagePolicy::Decision::split.
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

#endif // CKOPT_LIB_PLANNER_BASELINES_CLASSIC_H
