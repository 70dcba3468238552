//===- GraphAnswer.cpp - what is said of a plan, or of none ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objective: an answer that states what is proven, of which plans, and no more.
// Method: takes the best of the bounds that anyone can compute again and of
// those that searches proved for the budget, with certificates where there are
// any; verifies the plan. Guarantee: a plan that leaves here passed verify(),
// and a limit that ended its search is named. Gives up: on the smallest budget
// where nothing fits anyway, after a second. Complexity: that of the bounds.
//
//===----------------------------------------------------------------------===//
#include "ExactOrder/ExactOrder.h"
#include "Portfolio/GraphPlanner.h"
#include "ckopt/Planner/Bounds.h"
#include "ckopt/Planner/Verifier.h"
#include "ckopt/Support/Debug.h"

#include <algorithm>
#include <cmath>

using namespace ckopt;
using namespace ckopt::planner;

Result GraphPlanner::answer(const Entry &entry, const Options &options,
                            int64_t budget) {
  Result result;
  result.plan = entry.plan;
  result.strategy = entry.strategy;
  Plan &plan = result.plan;
  plan.scope = scopeOf(options);
  plan.certificates.assign(1, {});
  plan.cost = costOf(plan.steps);
  canonical.toBytes(plan);
  bool hurried = search.hurried(options);
  plan.lowerBound = hurried ? baseCost(graph)
                            : costBound(graph, budget, &plan.certificates[0]);
  if (hurried)
    plan.certificates.clear();
  plan.orderLowerBound = plan.lowerBound;
  if (budget > 0 && !hurried) {
    const PricedBound &bound = pricedBound(budget);
    plan.orderLowerBound = std::max(plan.lowerBound, bound.cost);
    plan.certificates.push_back(bound.certificate);
  }
  int64_t units = canonical.fromBytes(budget);
  double proven[] = {search.proven(units, false) * canonical.boundUnit,
                     search.proven(units, true) * canonical.boundUnit};
  // A search may prove that no plan in program order fits; this plan then has
  // another order, and a cost of plans that do not exist says nothing.
  bool bySearch[] = {proven[0] > plan.lowerBound,
                     proven[1] > plan.orderLowerBound &&
                         std::isfinite(proven[1])};
  if (bySearch[0])
    plan.lowerBound = proven[0];
  if (bySearch[1])
    plan.orderLowerBound = proven[1];
  plan.status = Status::Feasible;
  if (plan.cost <= plan.lowerBound * tuning.rounding) {
    plan.status = Status::Optimal;
  } else if (plan.cost <= plan.orderLowerBound * tuning.rounding &&
             plan.cost * tuning.rounding >= plan.orderLowerBound) {
    plan.status = Status::OrderOptimal; // another order may be cheaper
    if (bySearch[1])
      plan.orderLowerBound = plan.cost;
  }
  if (bySearch[0] || bySearch[1])
    plan.proof = Proof::Search;
  if (bySearch[1])
    addCases(plan, budget);
  if (plan.lowerBound > plan.cost)
    plan.lowerBound = plan.cost; // sums in another order round differently
  plan.provenMinimum = provenMinimum(options) * canonical.byteUnit;
  result.outside =
      options.pack ? entry.size * canonical.byteUnit - plan.arena : 0;
  debug::count(debug::Counter::VerifiedPlans);
  std::string wrong = verify(graph, plan, budget);
  if (!wrong.empty()) {
    Result broken;
    broken.plan.status = Status::Error;
    broken.internalError = true;
    broken.message = "internal error: the plan of strategy '" + entry.strategy +
                     "' failed verification: " + wrong;
    return broken;
  }
  nameAlive(result, plan.steps);
  return result;
}

/// Adds cases that prove a search's bound for the program order, if few cases
/// suffice.
void GraphPlanner::addCases(Plan &plan, int64_t budget) {
  auto [it, fresh] = cases.try_emplace({budget, plan.orderLowerBound});
  if (fresh)
    it->second =
        caseTree(Problem(graph, Rules::Format), budget, plan.orderLowerBound);
  std::string error;
  if (it->second.tree.empty())
    return;
  plan.certificates.push_back(it->second);
  if (auto shown = checkCertificate(graph, it->second, error))
    // Because of rounding.
    plan.orderLowerBound = std::min(plan.orderLowerBound, *shown);
}

void GraphPlanner::nameAlive(Result &result,
                             const std::vector<NodeId> &steps) const {
  Simulation simulation = simulate(problem, steps, true);
  result.aliveAtPeak = aliveAt(graph, steps, simulation, simulation.peakStep);
}

void GraphPlanner::sayCut(Result &result, const Options &options,
                          const Deadline &deadline, bool open) const {
  bool passed = deadline.passed() || deadline.wasCutByTime();
  Status status = result.status();
  if (!passed || (!open && status != Status::Feasible &&
                  status != Status::OrderOptimal && status != Status::Unknown))
    return;
  result.cut = true;
  std::string limit = std::to_string(options.timeLimitSeconds);
  limit.erase(limit.find_last_not_of('0') + 1);
  if (limit.back() == '.')
    limit.pop_back();
  limit = deadline.workPassed() && !deadline.wasCutByTime()
              ? "work limit of " + std::to_string(options.workLimit) + " units"
              : "time limit of " + limit + " s";
  result.message += std::string(result.message.empty() ? "" : "; ") + "the " +
                    limit + " cut the search off: more may find better";
}

Result GraphPlanner::failure(const Options &options, Deadline &deadline) {
  // The smallest budget is only searched for with "auto".
  bool automatic = options.isAuto();
  if (automatic) {
    // If nothing fits anyway, search for the smallest budget only briefly.
    bool hopeless = infeasible(options) && !search.small();
    Deadline part = deadline.part(hopeless ? tuning.hopelessWork : 0);
    findMinimum(options, 0, part);
    deadline.spend(part.spent());
  }
  Archive &store = archive(options);
  // The smallest load found so far says more than an order without
  // recomputation.
  Candidate found = store.leastLoad();
  if (found.peak < store.smallest()->size)
    store.realize(found, std::min(tuning.sketchEffort, options.effort));
  const Entry *smallest = store.smallest();
  const Entry *late = store.bestWithin(canonical.fromBytes(options.budget));
  if (late && !infeasible(options)) {
    Result result = answer(*late, options, options.budget);
    sayCut(result, options, deadline);
    return result;
  }
  Result result;
  Plan &plan = result.plan;
  plan.scope = scopeOf(options);
  plan.provenMinimum = provenMinimum(options) * canonical.byteUnit;
  plan.minimumBudget = smallest->size * canonical.byteUnit;
  plan.lowerBound = search.hurried(options) ? baseCost(graph)
                                            : costBound(graph, options.budget);
  bool impossible = infeasible(options);
  if (impossible && plan.provenMinimum <= options.budget) {
    plan.provenMinimum = options.budget + 1;
    plan.proof = Proof::Search;
  }
  plan.status = impossible ? Status::Infeasible : Status::Unknown;
  sayNone(result, options);
  nameAlive(result, smallest->plan.steps);
  sayCut(result, options, deadline);
  return result;
}

void GraphPlanner::sayNone(Result &result, const Options &options) const {
  const Plan &plan = result.plan;
  bool automatic = options.isAuto();
  std::string none = "no plan" + plan.scope.words();
  if (plan.status == Status::Infeasible)
    result.message = none + " exists";
  else if (automatic)
    result.message = none + " found";
  else
    result.message = "strategy '" + options.strategy + "' found " + none;
  result.message += " for a budget of " + std::to_string(options.budget) +
                    " bytes; the smallest budget found" +
                    std::string(automatic ? "" : " on the way") + " is " +
                    std::to_string(plan.minimumBudget) + " bytes, and " + none +
                    " needs less than " + std::to_string(plan.provenMinimum);
}

Scope GraphPlanner::scopeOf(const Options &options) const {
  Scope scope;
  if (options.fixedOrder)
    scope.add(Restriction::FixedOrder);
  if (options.orderOnly)
    scope.add(Restriction::OrderOnly);
  if (graph.obeysPolicy)
    scope.add(Restriction::Policy);
  return scope;
}
