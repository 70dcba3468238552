//===- Tuning.h - the constants of the search -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All numbers that decide how the portfolio divides its limits, with the reason
// for each. Work is in units of Deadline.h (about 50 ns), so they do not depend
// on the machine, nor on the scale of costs or bytes.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_MODEL_TUNING_H
#define CKOPT_LIB_PLANNER_MODEL_TUNING_H

#include "Model/ImproveTuning.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ckopt::planner {

/// The defaults are those of every tool; tests give a BudgetPlanner others.
struct Tuning {
  // -- Sizes of graphs, in nodes. Up to this size, the search for the least
  // load runs to its end.
  int32_t smallNodes = 12;
  /// Above this size, construction gains more than improvement, so it gets a
  /// larger share.
  int32_t largeNodes = 2000;
  /// Above this size, a packing trial takes long, so fewer and larger steps are
  /// made.
  int32_t dearPackingNodes = 1000;
  /// A clock that leaves less than this for a node strikes before bounds and
  /// other orders than the program's are computed.
  double hurriedSecondsEachNode = 2e-5;
  /// Beyond, fewer of the cheaper plans are tried for packing.
  int32_t fewTrialsNodes = 4000;
  /// From this size on, a limit of so many seconds, which no user chose, may
  /// strike: the work of smaller graphs ends by itself.
  size_t clockedNodes = 10000;
  double netSeconds = 60;
  /// Up to this size the least load is searched for with proof.
  int32_t provenLoadNodes = 384;
  /// For larger graphs, proofs rarely end at the smallest budget.
  int32_t provenAtMinimumNodes = 100;

  // -- Construction. A construction leaves this share of the tier's work to
  // each one after it.
  double leftForEach = 0.1;
  /// It ends after so much work a node (or in all, if that is more) without a
  /// gain.
  int64_t patienceEachNode = 2000, leastPatience = 3000000;
  /// Work of the tier: of large graphs by node, of others in all (1.6 s).
  int64_t constructWorkEachNode = 16000, constructWork = 32000000;
  /// Shares of the work and time limits that the tier may use.
  double constructShare = 1.0 / 3, constructShareLarge = 2.0 / 3;
  double constructTime = 0.3, constructTimeLarge = 0.65;
  /// The best list schedules that are packed before anything is searched.
  size_t packedOrders = 3;

  /// If the limits are below this for each node, they are tight: before all
  /// settings of one construction are tried, two of them get a share of the
  /// limits, with little effort. `prices` is the fastest, when it finds a plan;
  /// `dtr` finds one more often, so it comes first without a time limit.
  double tightSecondsEachNode = 3e-4;
  int64_t tightWorkEachNode = 10000;
  std::string_view quickest = "prices", surest = "dtr";
  /// Work of a node that each of them may do without a look at the clock, while
  /// there is no plan: of 10,000 nodes a third of a second.
  int64_t firstPlanWorkEachNode = 700;
  double quickestShare = 0.4, surestShare = 0.75, sketchPlanEffort = 0.1;

  // -- Where a search without limits stops. At effort 1, a plan that is proven
  // to be within this part of the cheapest is not improved: predicted times are
  // off by more. More effort goes on to its part of that.
  double worthGap = 0.001;
  /// The exact tier ended for no network of more nodes than this at effort 1.
  double provenPlanNodes = 400;

  // -- Proof and improvement.
  int64_t exactWorkDivisor = 3;
  double exactTime = 0.4;
  /// Rounds at most, should a strategy not count its work; each has this much
  /// more effort than the one before, up to a limit.
  int maxRounds = 64;
  double roundGrowth = 0.5, mostRoundEffort = 8;
  /// A plan is better if its cost falls below this share or, if nothing fits,
  /// its peak does.
  double betterCost = 1 - 1e-5, betterPeak = 0.999;
  /// Sums of the same costs in another order differ by at most this factor.
  double rounding = 1 + 1e-9;

  // -- Packing within the search. Loads that are tried for one budget.
  int packAttempts = 7;
  /// Effort of tries after the first, which start from plans that nearly fit.
  double againEffort = 0.15;
  /// Shares of the limits for one load: in general; for the last step of a
  /// bisection; for the first probe of a graph on which trials are cheap.
  double packShare = 0.5, packShareSettled = 0.8, packShareProbe = 0.25;
  /// The first step down is the budget divided by this; each try doubles it
  /// twice.
  int64_t packStepDivisor = 200;
  /// If a placement exceeds the budget by less than the budget divided by this,
  /// it is tried again with more effort.
  int64_t nearMissDivisor = 25;
  double nearMissEffort = 4;
  /// Without limits: the effort of packing at effort 1, and the part of it that
  /// is tried first, since most plans fit at once.
  double packEffort = 0.25, quickPack = 0.2;
  /// Effort of a packing that only has to exist.
  double sketchEffort = 0.02;
  /// Loads between one that packs and one that does not are halved until they
  /// differ by less than twice this part of the budget.
  int64_t settledDivisor = 500;
  /// Parts of the budget, in hundredths, whose cheapest known plan is packed
  /// where nothing fits yet; 0: the plan of the least load.
  std::array<int, 7> smallerPercents = {97, 94, 90, 85, 75, 60, 0};
  /// Cheaper plans that are tried for packing: of small and of large graphs.
  int packTrials = 6, packTrialsLarge = 2;

  // -- The smallest budget. Share of the limits for the requested budget; the
  // rest is for the smallest one.
  double directShare = 0.75;
  /// Budgets within this factor of the smallest are searched with all known
  /// small plans.
  double comfortable = 1.03;
  /// Bisection of the load: rounds, effort of each, and the relative width at
  /// which it ends.
  int bisections = 14;
  double bisectEffort = 0.03, bisectPackEffort = 0.05;
  int64_t bisectDivisor = 400;
  /// Steps below the smallest size, after the bisection: the first and the
  /// finest, as divisors of that size, the effort of each, and how much finer
  /// steps become after a failure, with and without packing.
  int64_t firstStepDivisor = 64, finestStepDivisor = 2000;
  double tightenEffort = 0.08;
  int64_t finerPacked = 4, finer = 16;
  /// Steps of graphs up to so many nodes (those beyond get one), since each is
  /// a search of its own; and settlings at the end, as the size may fall again.
  struct Steps {
    int32_t nodes;
    int steps;
  };
  std::array<Steps, 3> tightenSteps = {{{500, 12}, {2000, 6}, {8000, 3}}};
  int settlings = 2;
  /// Where limits leave less than this for a node, which a step of the
  /// bisection would take, constructions come first, each for half of the known
  /// load or the geometric mean of the loads between which the smallest lies,
  /// until so many of them found none or the loads differ by less than this
  /// part. Each may take this part of what is left. In the end the cheapest
  /// plan for the smallest budget gets a share.
  int64_t minimumTightWork = 4000;
  int minimumSketches = 2;
  int64_t minimumSketchDivisor = 32, minimumSketchShare = 2;
  double minimumPlanShare = 0.15;
  /// Work of its steps by node, of graphs of this many nodes or more: 65 nodes
  /// take at most a second in all, 700 ten.
  int32_t fewestNodesCounted = 65;
  int64_t bisectWorkEachNode = 5000, tightenWorkEachNode = 10000;
  int64_t settleWorkEachNode = 16000, provenLoadWorkEachNode = 120000;
  /// Work (a second) of the search for the smallest budget if it is proven that
  /// nothing fits the requested one: a quick answer is worth more than a
  /// slightly smaller budget.
  int64_t hopelessWork = 20000000;
  /// Proof of the least load: work (a second), states, and the share of a
  /// limit, since a proof without a plan is of no use.
  double provenLoadWork = 2e7;
  size_t provenLoadStates = 400000, provenLoadStatesSmall = 4000000;
  double provenLoadTime = 0.3;
  int64_t provenLoadDivisor = 3;
  /// Such proofs end on graphs of up to so many nodes, at any effort; they
  /// rarely do from the second number on, which get less the larger they are.
  /// Below an effort of a tenth they get less, too.
  int32_t provenLoadEnds = 48, provenLoadRare = 100;
  double provenLoadEffort = 10, provenLoadLeastShare = 0.02;

  LocalTuning local;
  OrderTuning order;
};

inline constexpr Tuning defaultTuning;

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_MODEL_TUNING_H
