//===- ExactSearch.cpp - plans of small graphs, with proof ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: the cheapest plan within a byte budget, and the plan of the smallest
// load. Method: the first is the answer of the search over states
// (StateSearch.cpp). The least load is found by bisection between a proven
// bound and what is known, each question answered by the search within a load
// (LoadSearch.cpp), first in narrow beams, then with proof; where copies of one
// storage may lie side by side, by the search over states at cost nought.
// Guarantee: as these searches; every plan is simulated before it is believed.
// Gives up: where those do, with what is proven by then. Complexity: theirs,
// times the logarithm of the range for the least load.
//
//===----------------------------------------------------------------------===//
#include "Exact/ExactSearch.h"
#include "Exact/ExactModel.h"
#include "Exact/LoadSearch.h"
#include "Exact/StateSearch.h"
#include "ckopt/Planner/Verifier.h"

using namespace ckopt::planner;

namespace {

/// Bisects for the least load.
class LeastPeak {
public:
  LeastPeak(const Problem &problem, bool fixedOrder, int64_t low,
            const std::vector<NodeId> &known, size_t stateLimit);
  ExactResult run(Deadline &deadline);

private:
  bool take(std::vector<NodeId> steps, int64_t within);
  ExactResult::Kind ask(int64_t load, int32_t width, Deadline &deadline);
  void bisect(int32_t width, Deadline &limit, int share);

  const Problem &problem;
  ExactModel model;
  bool fixedOrder;
  size_t stateLimit;
  ExactResult result;
  int64_t low;  ///< proven lower bound
  int64_t high; ///< the load of the smallest steps found
  /// The first search is for the bound itself, which is often reached.
  bool first = true;
};

LeastPeak::LeastPeak(const Problem &problem, bool fixedOrder, int64_t low,
                     const std::vector<NodeId> &known, size_t stateLimit)
    : problem(problem), model(Problem(problem.graph, Rules::Format)),
      fixedOrder(fixedOrder), stateLimit(stateLimit) {
  Simulation simulation = simulate(problem, known, true);
  result.steps = known;
  result.cost = simulation.cost;
  high = simulation.peak;
  this->low = std::min(alignTo(std::max<int64_t>(low, 0), model.granule), high);
}

/// Stores steps; returns false if they are not valid within `within`.
bool LeastPeak::take(std::vector<NodeId> steps, int64_t within) {
  Plan plan;
  plan.steps = steps;
  if (!verifySteps(problem.graph, plan).empty())
    return false;
  Simulation found = simulate(problem, steps, true);
  if (found.peak > within)
    return false;
  high = found.peak;
  result.steps = std::move(steps);
  result.cost = found.cost;
  return true;
}

/// Searches for steps within the load. Optimal: some were found and stored.
ExactResult::Kind LeastPeak::ask(int64_t load, int32_t width,
                                 Deadline &deadline) {
  if (!fixedOrder) {
    LoadResult found = searchWithin(model, load, deadline, stateLimit, width);
    if (found.kind == LoadResult::NoPlan)
      return ExactResult::Infeasible;
    if (found.kind == LoadResult::Found && take(std::move(found.steps), load))
      return ExactResult::Optimal;
  }
  if (deadline.passed() || width > 0)
    return ExactResult::GaveUp;
  // Several copies of one storage at a time need the model of StateSearch.h.
  ExactResult found =
      searchStates(model, load, fixedOrder, false, deadline, stateLimit);
  if (found.kind == ExactResult::Optimal && !take(std::move(found.steps), load))
    return ExactResult::GaveUp;
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
    ExactResult::Kind kind = ask(middle, width, part);
    limit.spend(part.spent());
    if (kind == ExactResult::Optimal)
      continue;
    open = middle + model.granule;
    if (kind == ExactResult::Infeasible)
      low = open;
  }
}

ExactResult LeastPeak::run(Deadline &deadline) {
  // Narrow beams find small plans, so that less remains to be proved.
  if (!fixedOrder && deadline.hasWorkLimit())
    for (int32_t width : {8, 64}) {
      Deadline part = deadline.part(deadline.unitsLeft() / 4);
      bisect(width, part, 6);
      deadline.spend(part.spent());
    }
  first = true;
  bisect(0, deadline, 3);
  low = std::min(low, high);
  result.leastPeak = std::max<int64_t>(low, 1);
  if (low >= high) {
    result.kind = ExactResult::Optimal;
    result.leastPeak = high;
  }
  return std::move(result);
}

} // namespace

ExactResult ckopt::planner::exactSearch(const Problem &problem, int64_t budget,
                                        bool fixedOrder, Deadline &deadline,
                                        size_t stateLimit) {
  ExactModel model(Problem(problem.graph, Rules::Format));
  ExactResult result =
      searchStates(model, budget, fixedOrder, true, deadline, stateLimit);
  if (result.kind != ExactResult::Optimal)
    return result;
  Simulation simulation = simulate(problem, result.steps, true);
  result.cost = simulation.cost;
  result.leastPeak = simulation.peak;
  // A defect; never claim a load that does not hold.
  if (simulation.peak > budget)
    return {};
  return result;
}

ExactResult ckopt::planner::exactLeastPeak(const Problem &problem,
                                           bool fixedOrder, int64_t low,
                                           const std::vector<NodeId> &known,
                                           Deadline &deadline,
                                           size_t stateLimit) {
  return LeastPeak(problem, fixedOrder, low, known, stateLimit).run(deadline);
}
