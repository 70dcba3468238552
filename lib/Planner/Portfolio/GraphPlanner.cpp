//===- GraphPlanner.cpp - plans one graph ---------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Asks for a budget directly first: that is fast where the budget is not tight.
// Where nothing is found, the search for the smallest budget (LeastSearch) runs
// until it shows that this budget is large enough, or to its end. Guarantee:
// solve() succeeds for every budget from minimize()'s result on, also in
// another process; what was found once is never lost, so cost never rises with
// the budget within one planner; a plan that leaves here passed verify(). All
// of it but verify() holds where no limit struck; where one did, the result
// says so. Gives up: where limits end, and where nothing fits the smallest
// budget found or a bound rules the budget out. Complexity: Search.cpp's, and
// LeastSearch.cpp's where a budget is hard.
//
//===----------------------------------------------------------------------===//
#include "Portfolio/GraphPlanner.h"
#include "Exact/ExactSearch.h"
#include "ExactOrder/ExactOrder.h"
#include "Improve/Improve.h"
#include "Model/Order.h"
#include "ckopt/Planner/Bounds.h"
#include "ckopt/Planner/Verifier.h"

#include <algorithm>
#include <cmath>

using namespace ckopt::planner;

GraphPlanner::GraphPlanner(const Graph &graph)
    : graph(graph), canonical(graph), problem(canonical.graph), search(problem),
      least{problem.persistentBytes, problem.persistentBytes} {
  for (NodeId n = 0; n < problem.numNodes; ++n) {
    int64_t need = problem.ownBytes(n);
    for (ValueId v : problem.reads[n])
      need += problem.bytes[v];
    least[0] = std::max(least[0], need);
  }
  least[1] = least[0];
}

void GraphPlanner::boundMemory(const Options &options) {
  if (bounded || search.hurried(options))
    return;
  bounded = true;
  least[0] = memoryBound(problem.graph);
  least[1] = memoryBoundInOrder(problem.graph, programOrder(problem));
}

int64_t GraphPlanner::lowest(const Options &options) {
  return options.fixedOrder ? std::max(least[0], least[1]) : least[0];
}

/// Searches for the least load of small graphs, with proof.
void GraphPlanner::proveLeast(const Options &options, Deadline &deadline) {
  if (options.fixedOrder || problem.numNodes > tuning.provenLeastNodes ||
      leastSteps)
    return;
  double share = problem.numNodes <= tuning.provenLeastEnds
                     ? 1
                     : std::clamp(tuning.provenLeastEffort * options.effort,
                                  tuning.provenLeastLeast, 1.0);
  share *= std::min(1.0, double(tuning.provenLeastRare) /
                             std::max(1, problem.numNodes));
  int64_t units = search.small() ? 0 : int64_t(tuning.provenLeastWork * share);
  if (!search.small() && deadline.hasWorkLimit())
    units =
        std::min(units, deadline.unitsLeft() / tuning.provenLeastDivisor + 1);
  if (!search.small())
    units = std::min(units, tuning.provenLeastWorkEachNode *
                                std::max(problem.numNodes, tuning.leastNodes));
  Deadline part =
      deadline.part(units, search.small() ? 1 : tuning.provenLeastTime);
  LeastLoad found =
      leastLoad(problem, lowest(options),
                starts.at(archive(options).mode).leastLoad().steps, part,
                search.small() ? tuning.provenLeastStatesSmall
                               : tuning.provenLeastStates);
  deadline.spend(part.spent());
  least[0] = std::max(least[0], found.bound);
  leastSteps = std::move(found.steps);
}

/// Returns whether it is proven that nothing fits the budget.
bool GraphPlanner::infeasible(const Options &options) {
  return lowest(options) * canonical.byteUnit > options.budget ||
         std::isinf(search.proven(canonical.fromBytes(options.budget),
                                  options.fixedOrder)) ||
         (startless &&
          std::isinf(startless->search.proven(
              canonical.fromBytes(options.budget), options.fixedOrder)));
}

Archive &GraphPlanner::archive(const Options &options) {
  Mode mode{options.fixedOrder, options.pack,
            options.pack && options.arenaHoldsAll};
  auto it = archives.find(mode);
  if (it == archives.end()) {
    const Archive &start =
        starts.try_emplace(mode, problem, mode, search.hurried(options))
            .first->second;
    it = archives.emplace(mode, start).first;
  }
  if (options.hint)
    takeHint(it->second, options);
  return it->second;
}

/// Returns the cost of steps in the given graph, summed in their order.
double GraphPlanner::costOf(const std::vector<NodeId> &steps) const {
  double cost = 0;
  for (NodeId n : steps)
    cost += graph.nodes[n].cost;
  return cost;
}

/// Returns the bound for this budget, of the given graph.
const PricedBound &GraphPlanner::orderBound(int64_t budget) {
  auto [it, fresh] = bounds.try_emplace(budget);
  if (fresh) {
    std::vector<double> prices =
        search.orderBound(canonical.fromBytes(budget)).prices;
    for (double &price : prices)
      price *= canonical.costUnit / double(canonical.byteUnit);
    it->second.cost = orderBoundAt(graph, programOrder(problem), budget, prices,
                                   &it->second.certificate);
  }
  return it->second;
}

void GraphPlanner::takeHint(Archive &store, const Options &options) {
  const Plan &hint = *options.hint;
  Plan plan;
  plan.steps = hint.steps;
  if (!verifySteps(graph, plan).empty() ||
      (options.fixedOrder && !isProgramOrder(problem, plan.steps)))
    return;
  Simulation simulation = simulate(problem, plan.steps, false);
  plan.cost = simulation.cost;
  plan.peak = simulation.peak;
  if (options.pack && !hint.offsets.empty()) {
    Plan placed = plan;
    placed.arena = hint.arena;
    placed.offsets = hint.offsets;
    placed.initial = hint.initial;
    placed.cost = costOf(placed.steps);
    placed.peak = plan.peak * canonical.byteUnit;
    if (verify(graph, placed, 0).empty() && canonical.fromBytes(placed)) {
      placed.cost = plan.cost;
      placed.peak = plan.peak;
      plan = std::move(placed);
    }
  }
  store.add(plan, "hint");
}

/// Returns the search on the graph without start costs, if there are any.
Search &GraphPlanner::startlessSearch() {
  if (!startless && startCost(graph) > 0)
    startless = std::make_unique<StartlessGraph>(graph);
  return startless ? startless->search : search;
}

GraphPlanner::Least &GraphPlanner::leastSearch(const Options &options) {
  Archive &store = archive(options);
  Key key{store.mode, options.strategy, options.seed, options.effort};
  auto it = leastSearches.find(key);
  if (it == leastSearches.end()) {
    Archive start(startlessSearch().problem, starts.at(store.mode));
    it = leastSearches.emplace(key, Least{LeastSearch(start, lowest(options))})
             .first;
  }
  return it->second;
}

/// Ends the search for the smallest budget: finds the cheapest plan within it
/// by the graph's own costs.
void GraphPlanner::settleLeast(Least &least, const Options &options,
                               Deadline &deadline) {
  if (least.settled || !startless || deadline.passed())
    return;
  least.settled = true;
  Archive own = starts.at(least.search.archive.mode);
  own.merge(least.search.archive);
  LeastSearch::settle(search, own, options, deadline);
  archive(options).merge(own);
}

/// Searches for the smallest budget until one well below `budget` is known, or
/// to the end. Returns the smallest found; both are in units.
int64_t GraphPlanner::runLeast(const Options &options, int64_t budget,
                               Deadline &deadline) {
  if (isLimited(options)) { // a plan is worth more than a proof
    LeastSearch &first = leastSearch(options).search;
    while (first.sketching() && !deadline.passed())
      first.advance(startlessSearch(), options, deadline);
  }
  proveLeast(options, deadline);
  Least &entry = leastSearch(options);
  LeastSearch &least = entry.search;
  if (isLimited(options)) // otherwise its steps are always the same
    least.raiseLowest(lowest(options));
  Archive &store = archive(options);
  if (leastSteps && !options.fixedOrder && options.strategy == "auto") {
    least.archive.report(*leastSteps, 0, "least-load");
    const Candidate &smallest = least.archive.leastLoad();
    least.archive.realize(smallest, 1);
  }
  while (!least.done() && !deadline.passed() &&
         double(least.smallest()) * tuning.comfortable > double(budget))
    least.advance(startlessSearch(), options, deadline);
  if (deadline.passed() && options.pack)
    least.packLeast(std::min(tuning.sketchEffort, options.effort));
  store.merge(least.archive);
  if (least.done())
    settleLeast(entry, options, deadline);
  return store.smallest()->size;
}

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
    const PricedBound &bound = orderBound(budget);
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
  plan.provenMinimum = lowest(options) * canonical.byteUnit;
  result.outside =
      options.pack ? entry.size * canonical.byteUnit - plan.arena : 0;
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
  bool automatic = options.strategy == "auto";
  if (automatic) {
    // If nothing fits anyway, search for the smallest budget only briefly.
    bool hopeless = infeasible(options) && !search.small();
    Deadline part = deadline.part(hopeless ? tuning.smallestWork : 0);
    runLeast(options, 0, part);
    deadline.spend(part.spent());
  }
  Archive &store = archive(options);
  // The smallest load found so far says more than an order without
  // recomputation.
  Candidate found = store.leastLoad();
  if (found.peak < store.smallest()->size)
    store.realize(found, std::min(tuning.sketchEffort, options.effort));
  const Entry *least = store.smallest();
  const Entry *late = store.bestWithin(canonical.fromBytes(options.budget));
  if (late && !infeasible(options)) {
    Result result = answer(*late, options, options.budget);
    sayCut(result, options, deadline);
    return result;
  }
  Result result;
  Plan &plan = result.plan;
  plan.scope = scopeOf(options);
  plan.provenMinimum = lowest(options) * canonical.byteUnit;
  plan.minimumBudget = least->size * canonical.byteUnit;
  plan.lowerBound = search.hurried(options) ? baseCost(graph)
                                            : costBound(graph, options.budget);
  bool impossible = infeasible(options);
  if (impossible && plan.provenMinimum <= options.budget) {
    plan.provenMinimum = options.budget + 1;
    plan.proof = Proof::Search;
  }
  plan.status = impossible ? Status::Infeasible : Status::Unknown;
  sayNone(result, options);
  nameAlive(result, least->plan.steps);
  sayCut(result, options, deadline);
  return result;
}

void GraphPlanner::sayNone(Result &result, const Options &options) const {
  const Plan &plan = result.plan;
  bool automatic = options.strategy == "auto";
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

const Entry *GraphPlanner::smallestOrder(const Options &options) {
  const Entry *best = nullptr;
  for (const Entry &entry : archive(options).all())
    if (entry.plan.steps.size() == size_t(problem.numNodes) &&
        (!best || entry.size < best->size))
      best = &entry;
  return best;
}

Result GraphPlanner::recall(const Options &options) {
  int64_t budget = canonical.fromBytes(options.budget);
  const Entry *best = options.orderOnly ? smallestOrder(options)
                                        : archive(options).bestWithin(budget);
  return best && best->size <= budget ? answer(*best, options, options.budget)
                                      : Result();
}

Result GraphPlanner::solve(const Options &options, Deadline &deadline) {
  boundMemory(options);
  if (options.orderOnly)
    return solveOrder(options, deadline);
  Archive &store = archive(options);
  int64_t budget = canonical.fromBytes(options.budget);
  const Entry *best = store.bestWithin(budget);
  if (budget > 0 && infeasible(options))
    return failure(options, deadline);
  // No plan costs less than one without recomputation.
  if (best && (budget == 0 || best->plan.cost <= problem.baseCost))
    return answer(*best, options, options.budget);
  // Reserve a part of the limits for the smallest budget, in case nothing is
  // found.
  Deadline direct = search.tight(options, deadline)
                        ? deadline.part(0)
                        : deadline.part(int64_t(double(deadline.unitsLeft()) *
                                                tuning.directShare),
                                        tuning.directShare);
  search.fit(store, options, budget, direct);
  deadline.spend(direct.spent());
  if (store.bestWithin(budget)) {
    if (options.searchToLimit && !deadline.passed()) {
      Options further = options; // Not the same moves again.
      further.seed = ~options.seed;
      search.fit(store, further, budget, deadline);
    }
  } else if (!infeasible(options) && !deadline.passed()) {
    int64_t least = runLeast(options, budget, deadline);
    if (least <= budget && !deadline.passed() &&
        !(leastSearch(options).search.done() && least == budget))
      search.fit(store, options, budget, deadline);
  }
  best = store.bestWithin(budget);
  if (!best)
    return failure(options, deadline);
  Result result = answer(*best, options, options.budget);
  sayCut(result, options, deadline);
  return result;
}

/// Solves for the order alone: the smallest load (arena) without any
/// recomputation, and its lower bound.
Result GraphPlanner::solveOrder(const Options &options, Deadline &deadline) {
  Archive &store = archive(options);
  int64_t bound = lowest(options);
  if (!search.hurried(options))
    bound = std::max(bound, orderOnlyBound(problem.graph));
  if (!options.fixedOrder) {
    OrderResult found = searchOrder(problem, deadline, options.seed,
                                    options.effort, options.threads);
    store.report(found.order, 0, "none");
    store.realize({found.order, problem.baseCost, found.peak, "none"}, 1);
    if (found.optimal && !problem.simplified)
      bound = std::max(bound, found.peak);
  }
  const Entry *best = smallestOrder(options);
  Result result;
  int64_t smallest = best->size * canonical.byteUnit;
  bound *= canonical.byteUnit;
  bool fits = options.budget == 0 || smallest <= options.budget;
  if (fits)
    result = answer(*best, options, options.budget);
  Plan &plan = result.plan;
  plan.minimumBudget = smallest;
  plan.provenMinimum = std::min(bound, smallest);
  if (!fits) {
    plan.status = bound > options.budget ? Status::Infeasible : Status::Unknown;
    plan.scope = scopeOf(options);
    plan.lowerBound = plan.orderLowerBound = baseCost(graph);
    sayNone(result, options);
    nameAlive(result, best->plan.steps);
  }
  sayCut(result, options, deadline);
  return result;
}

Result GraphPlanner::minimize(const Options &options, Deadline &deadline) {
  boundMemory(options);
  if (options.orderOnly) {
    Options least = options;
    least.budget = 0;
    return solveOrder(least, deadline);
  }
  // Limits are for the smallest budget first, and then for its plan.
  bool limited = isLimited(options);
  double share = limited ? 1 - tuning.leastPlanShare : 1;
  Deadline part =
      deadline.part(int64_t(double(deadline.unitsLeft()) * share), share);
  int64_t least = runLeast(options, 0, part);
  for (int64_t before = -1; options.searchToLimit && !part.passed() &&
                            least > lowest(options) && part.spent() > before;) {
    before = part.spent();
    leastSearch(options).search.goOn();
    least = runLeast(options, 0, part);
  }
  deadline.spend(part.spent());
  // Without limits a minimum is wanted soon: its steps end with a few for the
  // plan, and a budget of those bytes searches in full.
  if (limited && options.strategy == "auto" && !deadline.passed())
    search.fit(archive(options), options, least, deadline);
  int64_t size = least * canonical.byteUnit;
  Result result = answer(*archive(options).bestWithin(least), options, size);
  result.plan.minimumBudget = size;
  // This is the cheapest plan of that size, but perhaps not the smallest size.
  sayCut(result, options, deadline, least > lowest(options));
  return result;
}
