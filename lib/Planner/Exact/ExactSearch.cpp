//===- ExactSearch.cpp - the least load of small graphs, with proof -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: the plan of the smallest load. Method: bisection between a proven
// bound and what is known, each question answered by the search within a load
// (LoadSearch.cpp), first in narrow beams, then with proof. Guarantee: as that
// search; every plan is simulated before it is believed. Gives up: where that
// does, with what is proven by then; where a plan within a load would need two
// copies of one storage, which it counts once. Complexity: its, times the
// logarithm of the range.
//
//===----------------------------------------------------------------------===//
#include "Exact/ExactSearch.h"
#include "Exact/ExactModel.h"
#include "Exact/LoadSearch.h"
#include "ckopt/Planner/Verifier.h"

using namespace ckopt::planner;

namespace {

/// Bisects for the least load.
class LeastPeak {
public:
  LeastPeak(const Problem &problem, int64_t low,
            const std::vector<NodeId> &known, size_t stateLimit);
  LeastLoad run(Deadline &deadline);

private:
  bool take(std::vector<NodeId> steps, int64_t within);
  LoadResult::Kind ask(int64_t load, int32_t width, Deadline &deadline);
  void bisect(int32_t width, Deadline &limit, int share);

  const Problem &problem;
  ExactModel model;
  size_t stateLimit;
  LeastLoad result;
  int64_t low;  ///< proven lower bound
  int64_t high; ///< the load of the smallest steps found
  /// The first search is for the bound itself, which is often reached.
  bool first = true;
};

LeastPeak::LeastPeak(const Problem &problem, int64_t low,
                     const std::vector<NodeId> &known, size_t stateLimit)
    : problem(problem), model(Problem(problem.graph, Rules::Format)),
      stateLimit(stateLimit) {
  result.steps = known;
  high = simulate(problem, known, true).peak;
  this->low = std::min(alignTo(std::max<int64_t>(low, 0), model.granule), high);
}

/// Stores steps; returns false if they are not valid within `within`.
bool LeastPeak::take(std::vector<NodeId> steps, int64_t within) {
  Plan plan;
  plan.steps = steps;
  if (!verifySteps(problem.graph, plan).empty())
    return false;
  int64_t peak = simulate(problem, steps, true).peak;
  if (peak > within)
    return false;
  high = peak;
  result.steps = std::move(steps);
  return true;
}

/// Searches for steps within the load. Found: some were found and stored.
LoadResult::Kind LeastPeak::ask(int64_t load, int32_t width,
                                Deadline &deadline) {
  LoadResult found = searchWithin(model, load, deadline, stateLimit, width);
  if (found.kind == LoadResult::Found && !take(std::move(found.steps), load))
    return LoadResult::GaveUp;
  return found.kind;
}

void LeastPeak::bisect(int32_t width, Deadline &limit, int share) {
  // Searches below `open` found nothing; if it is above `low`, they were cut
  // off.
  int64_t open = low;
  while (open < high && !limit.passed()) {
    int64_t middle = open;
    if (!first)
      middle += (high - open) / 2 / model.granule * model.granule;
    first = false;
    Deadline part = limit.part(limit.unitsLeft() / share);
    LoadResult::Kind kind = ask(middle, width, part);
    limit.spend(part.spent());
    if (kind == LoadResult::Found)
      continue;
    open = middle + model.granule;
    if (kind == LoadResult::NoPlan)
      low = open;
  }
}

LeastLoad LeastPeak::run(Deadline &deadline) {
  // Narrow beams find small plans, so that less remains to be proved.
  if (deadline.hasWorkLimit())
    for (int32_t width : {8, 64}) {
      Deadline part = deadline.part(deadline.unitsLeft() / 4);
      bisect(width, part, 6);
      deadline.spend(part.spent());
    }
  first = true;
  bisect(0, deadline, 3);
  result.proven = low >= high;
  result.bound = std::max<int64_t>(std::min(low, high), 1);
  return std::move(result);
}

} // namespace

LeastLoad ckopt::planner::leastLoad(const Problem &problem, int64_t low,
                                    const std::vector<NodeId> &known,
                                    Deadline &deadline, size_t stateLimit) {
  return LeastPeak(problem, low, known, stateLimit).run(deadline);
}
