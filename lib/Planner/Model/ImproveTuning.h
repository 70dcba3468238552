//===- ImproveTuning.h - the constants of the improvement ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All numbers that decide how long annealing runs and how hot, with the reason
// for each. Temperatures of plans are in mean costs of a node, those of orders
// in shares of the peak, so that no scale of costs or bytes changes a plan.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_MODEL_IMPROVETUNING_H
#define CKOPT_LIB_PLANNER_MODEL_IMPROVETUNING_H

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace ckopt::planner {

/// A chain's first and last temperature.
struct Cooling {
  double hot, cold;
};

/// The local search over plans (LocalSearch.cpp).
struct LocalTuning {
  /// A byte above the budget costs this many times the whole program divided by
  /// the budget, so that chains come back below it.
  double penalty = 4;

  // -- Moves. A chain from a good plan gains with the graph's size, up to a few
  // seconds.
  double leastMoves = 500000, movesEachNode = 1700, mostMoves = 2.2e6;
  /// A chain from an order needs thousands of moves a node; beyond the second
  /// number, and where moves times nodes pass the third, it would take minutes.
  double hotMovesEachNode = 8000, mostHotMoves = 7.0e6, mostHotWork = 7.0e9;
  /// With fewer moves a node no hot chain is planned at all.
  double leastHotMovesEachNode = 400;
  /// With fewer moves a node than this, after limits are applied, hot chains
  /// cool down before they found a basin.
  double leastHot = 100;
  /// Graphs of a few hundred nodes have several basins: the number of hot
  /// chains falls with the size, within bounds.
  double hotChains = 1200, leastHotChains = 2, mostHotChains = 12;
  /// The moves of the stages other than the hot one, in units of a chain's.
  double otherStages = 2.5;

  // -- Effort, where no limit is set. The effort that makes all of the moves
  // above: networks gain less than 0.1 % beyond an eighth of them.
  double fullEffort = 8;
  /// Up to so many nodes hot chains take less than a second, so they run even
  /// if a short one did not win.
  int32_t hotAnywayNodes = 100;
  /// The moves of the last stage at effort 1, as a part of all of them.
  double lastEffort = 0.25;
  /// It is repeated while it gains this part of what is left to gain, so many
  /// times at most.
  double gainShare = 0.05;
  int mostRepeats = 8;
  /// Plans of up to so many times the budget are starts, too, if cheaper.
  double nearBudget = 1.03;
  /// Units of the hot chains at effort 1 (3 s): only graphs on which they pay
  /// have any.
  double hotWork = 6e7;

  // -- Work. Units that a move takes where nothing is known of it yet: between
  // 5, where most are turned down unseen, and 30.
  double usualUnits = 25;
  /// Hot chains take this much more a move than the quick look does.
  double hotterUnits = 1.25;
  /// The share of a chain's time that it may run hot; the rest cools it down
  /// where the clock strikes, with this part of its moves.
  double hotTime = 0.85;
  int64_t coolingDivisor = 8;
  /// The most heat of a chain that the clock struck.
  double coolingHeat = 0.5;

  // -- Stages: shares of `moves` and of the time, temperatures.
  double quickShare = 0.15, quickTime = 0.3;
  double hotTimeShare = 0.6;
  double secondShare = 0.6, secondTime = 0.5;
  double lastShare = 0.3;
  /// From a plan: warm enough to leave it, or only to polish it.
  Cooling fromPlan{0.3, 0.002}, polish{0.05, 0.002};
  /// From an order: everything has to be decided.
  Cooling fromOrder{8, 0.002};
  /// Hot chains; every third is hotter, for basins that others do not reach.
  Cooling hot{8, 0.005}, hotter{15, 0.005};
  /// From the best plan of the hot chains.
  Cooling fromBest{3, 0.002};
  /// Rounds that go on while the clock leaves time.
  Cooling again{0.5, 0.005}, againHot{1.5, 0.005}, againMild{0.2, 0.005};
};

/// The search for an order of least peak (OrderSearch.cpp).
struct OrderTuning {
  double leastMoves = 100000, movesEachNode = 700, mostMoves = 1.0e6;
  /// First temperatures of the chains: most orders that matter differ from the
  /// start by a few per mille of the peak.
  static constexpr int chains = 4;
  double hot[chains] = {0.003, 0.001, 0.01, 0.003};
  double cold = 1e-5;
  /// The most nodes of graphs that are searched with proof.
  int32_t mostNodesProved = 384;
  /// Units of work of that search (about a second) up to this many nodes, fewer
  /// beyond, since a unit proves less there; and the most states that it may
  /// hold.
  double proofWork = 2e7, provedNodes = 100;
  size_t proofStates = 400000;
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_MODEL_IMPROVETUNING_H
