//===- MinimumSearch.cpp - the smallest budget ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objective: the smallest budget that a plan can be found for. Method: bisects
// the load with quick searches, packs the smallest plans found, asks for a
// little less in steps that become finer, and ends with the cheapest plan of
// the smallest size. Where limits are set, a few constructions that end at
// their first plan come before all of it, since a step of the rest may take a
// whole limit. Gives up: after a fixed number of steps, each with work in
// proportion to the graph. Below its result nothing was found, which only a
// bound can turn into "nothing exists". Complexity: two dozen quick searches.
//
//===----------------------------------------------------------------------===//
#include "Portfolio/MinimumSearch.h"

#include <algorithm>
#include <cmath>

using namespace ckopt::planner;

/// Returns the limits of one step, in proportion to the graph, so that `min`
/// takes a second for small ones.
static Deadline shareByNodes(const Tuning &tuning, int32_t nodes,
                             int64_t workEachNode, const Deadline &deadline) {
  return deadline.part(nodes <= tuning.smallNodes
                           ? 0
                           : workEachNode *
                                 std::max(nodes, tuning.fewestNodesCounted));
}

void MinimumSearch::packLeastLoad(double effort) {
  Candidate found = archive.leastLoad();
  if (found.peak < smallest())
    archive.realize(found, effort);
}

void MinimumSearch::goOn() {
  phase = Tighten;
  round = 0;
  ++again;
}

void MinimumSearch::sketch(Search &search, const Options &options,
                           Deadline &deadline) {
  sketched = std::max({sketched, provenMinimum - 1, int64_t(1)});
  int64_t high = archive.leastLoad().peak;
  bool tight = isLimited(options) &&
               (search.shortOfTime(options) ||
                (deadline.hasWorkLimit() &&
                 deadline.unitsLeft() <
                     tuning.minimumTightWork * archive.problem.numNodes));
  if (!tight || search.small() || !options.isAuto() ||
      round >= tuning.minimumSketches || high <= provenMinimum ||
      high - sketched <= high / tuning.minimumSketchDivisor) {
    phase = Bisect;
    round = 0;
    return;
  }
  // The smallest may lie orders of magnitude below what is known, but a run
  // that has to recompute less takes less work.
  int64_t target =
      std::max(high / 2, int64_t(std::sqrt(double(sketched) * double(high))));
  int64_t units = tuning.firstPlanWorkEachNode * archive.problem.numNodes;
  if (deadline.hasWorkLimit())
    units =
        std::min(units, deadline.unitsLeft() / tuning.minimumSketchShare + 1);
  Deadline part = deadline.part(units, 1.0 / double(tuning.minimumSketchShare));
  search.probe(archive, options, target, part);
  deadline.spend(part.spent());
  if (archive.leastLoad().peak > target) {
    sketched = target;
    ++round;
  }
  packLeastLoad(std::min(tuning.sketchEffort, options.effort));
}

void MinimumSearch::bisect(Search &search, const Options &options,
                           Deadline &deadline) {
  failed = std::max(failed, provenMinimum - 1);
  int64_t high = archive.leastLoad().peak;
  if (round++ >= tuning.bisections || high <= provenMinimum ||
      high - failed <= std::max<int64_t>(1, high / tuning.bisectDivisor)) {
    phase = Pack;
    return;
  }
  int64_t target = failed + (high - failed) / 2;
  Options quick = options;
  quick.effort = options.effort * tuning.bisectEffort;
  Deadline part = shareByNodes(tuning, archive.problem.numNodes,
                               tuning.bisectWorkEachNode, deadline);
  search.run(archive, quick, target, part);
  deadline.spend(part.spent());
  if (archive.leastLoad().peak > target)
    failed = target;
  // The best load so far must be packed at any time.
  packLeastLoad(std::min(tuning.bisectPackEffort, options.effort));
}

void MinimumSearch::pack(const Options &options, Deadline &deadline) {
  int tries = options.pack ? tuning.packTrials : 1;
  for (const Candidate &candidate : archive.byLoad(smallest())) {
    if (tries-- == 0 || deadline.passed() || candidate.peak >= smallest())
      break;
    archive.realize(candidate, std::min(1.0, options.effort));
  }
  phase = Tighten;
  round = 0;
}

void MinimumSearch::tighten(Search &search, const Options &options,
                            Deadline &deadline) {
  int64_t size = smallest();
  int32_t nodes = archive.problem.numNodes;
  int rounds = 1;
  auto limit = std::find_if(
      tuning.tightenSteps.begin(), tuning.tightenSteps.end(),
      [&](const Tuning::Steps &steps) { return nodes <= steps.nodes; });
  if (limit != tuning.tightenSteps.end())
    rounds = limit->steps;
  if (round++ == 0)
    step = size / tuning.firstStepDivisor;
  if (round > rounds ||
      step < std::max<int64_t>(1, size / tuning.finestStepDivisor) ||
      size <= provenMinimum) {
    phase = Settle;
    round = 0;
    return;
  }
  int64_t target = std::max(provenMinimum, size - step);
  Options quick = options;
  quick.effort = options.effort * tuning.tightenEffort *
                 std::min(tuning.mostRoundEffort, 1.0 + again);
  quick.seed += uint64_t(again) * seedStride;
  Deadline part = shareByNodes(
      tuning, nodes, tuning.tightenWorkEachNode * (1 + again), deadline);
  search.fit(archive, quick, target, part);
  deadline.spend(part.spent());
  // Without packing, this repeats the bisection's searches with more effort.
  if (smallest() > target)
    step /= options.pack ? tuning.finerPacked : tuning.finer;
}

void MinimumSearch::settle(Search &search, Archive &archive,
                           const Options &options, Deadline &deadline) {
  const Tuning &tuning = archive.tuning;
  int32_t nodes = archive.problem.numNodes;
  Options own = options;
  own.searchToLimit = false;
  // Proofs rarely end at budgets this low.
  if (nodes > tuning.provenAtMinimumNodes)
    own.effort = std::min(quickEffort, own.effort);
  Deadline part =
      shareByNodes(tuning, nodes, tuning.settleWorkEachNode, deadline);
  search.fit(archive, own, archive.smallest()->size, part);
  deadline.spend(part.spent());
}

void MinimumSearch::advance(Search &search, const Options &options,
                            Deadline &deadline) {
  Options own = options;
  own.searchToLimit = false; // the steps are a fixed sequence
  switch (phase) {
  case Sketch:
    return sketch(search, options, deadline);
  case Bisect:
    return bisect(search, own, deadline);
  case Pack:
    return pack(own, deadline);
  case Tighten:
    return tighten(search, own, deadline);
  case Settle: {
    int64_t size = smallest();
    settle(search, archive, own, deadline);
    // It may turn out smaller still.
    if (smallest() == size || ++round >= tuning.settlings)
      phase = Done;
    return;
  }
  case Done:
    return;
  }
}
