//===- GraphPlanner.cpp - plans one graph ---------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Asks for a budget directly first: that is fast where the budget is not tight.
// Where nothing is found, the search for the smallest budget (MinimumSearch)
// runs until it shows that this budget is large enough, or to its end.
// Guarantee: solve() succeeds for every budget from minimize()'s result on,
// also in another process; what was found once is never lost, so cost never
// rises with the budget within one planner; a plan that leaves here passed
// verify(). All of it but verify() holds where no limit struck; where one did,
// the result says so. Gives up: where limits end, and where nothing fits the
// smallest budget found or a bound rules the budget out. Complexity:
// Search.cpp's, and MinimumSearch.cpp's where a budget is hard.
//
//===----------------------------------------------------------------------===//
#include "Portfolio/GraphPlanner.h"
#include "Exact/ExactSearch.h"
#include "Improve/Improve.h"
#include "Model/Order.h"
#include "ckopt/Planner/Bounds.h"
#include "ckopt/Planner/Verifier.h"
#include "ckopt/Support/Debug.h"
#include "llvm/Support/Format.h"

#include <algorithm>
#include <cmath>

using namespace ckopt;
using namespace ckopt::planner;

GraphPlanner::GraphPlanner(const Graph &graph, const Tuning &tuning)
    : graph(graph), tuning(tuning), canonical(graph), problem(canonical.graph),
      search(problem, tuning),
      provenMinima{problem.persistentBytes, problem.persistentBytes} {
  for (NodeId n = 0; n < problem.numNodes; ++n) {
    int64_t need = problem.ownBytes(n);
    for (ValueId v : problem.reads[n])
      need += problem.bytes[v];
    provenMinima[0] = std::max(provenMinima[0], need);
  }
  provenMinima[1] = provenMinima[0];
}

void GraphPlanner::boundMemory(const Options &options) {
  if (minimaBounded || search.hurried(options))
    return;
  minimaBounded = true;
  provenMinima[0] = memoryBound(problem.graph);
  provenMinima[1] = memoryBoundInOrder(problem.graph, programOrder(problem));
}

void GraphPlanner::begin(const Options &options, const char *question) {
  debug::count(debug::Counter::Searches);
  boundMemory(options);
  debug::log(debug::Part::Planner, [&](llvm::raw_ostream &os) {
    os << graph.name << ": looks for " << question << " of " << problem.numNodes
       << " nodes; budget " << options.budget << ", proven minimum "
       << provenMinimum(options) * canonical.byteUnit << ", strategy "
       << options.strategy << ", effort " << llvm::format("%g", options.effort)
       << (options.pack ? ", packed" : "")
       << (options.fixedOrder ? ", in program order" : "")
       << (options.orderOnly ? ", order alone" : "");
  });
}

int64_t GraphPlanner::provenMinimum(const Options &options) {
  return options.fixedOrder ? std::max(provenMinima[0], provenMinima[1])
                            : provenMinima[0];
}

/// Searches for the least load of small graphs, with proof.
void GraphPlanner::proveLeastLoad(const Options &options, Deadline &deadline) {
  if (options.fixedOrder || problem.numNodes > tuning.provenLoadNodes ||
      leastLoadSteps)
    return;
  double share = problem.numNodes <= tuning.provenLoadEnds
                     ? 1
                     : std::clamp(tuning.provenLoadEffort * options.effort,
                                  tuning.provenLoadLeastShare, 1.0);
  share *= std::min(1.0, double(tuning.provenLoadRare) /
                             std::max(1, problem.numNodes));
  int64_t units = search.small() ? 0 : int64_t(tuning.provenLoadWork * share);
  if (!search.small() && deadline.hasWorkLimit())
    units =
        std::min(units, deadline.unitsLeft() / tuning.provenLoadDivisor + 1);
  if (!search.small())
    units = std::min(units,
                     tuning.provenLoadWorkEachNode *
                         std::max(problem.numNodes, tuning.fewestNodesCounted));
  Deadline part =
      deadline.part(units, search.small() ? 1 : tuning.provenLoadTime);
  LeastLoad found = leastLoad(
      problem, provenMinimum(options),
      starts.at(archive(options).mode).leastLoad().steps, part,
      search.small() ? tuning.provenLoadStatesSmall : tuning.provenLoadStates);
  deadline.spend(part.spent());
  provenMinima[0] = std::max(provenMinima[0], found.bound);
  leastLoadSteps = std::move(found.steps);
}

/// Returns whether it is proven that nothing fits the budget.
bool GraphPlanner::infeasible(const Options &options) {
  return provenMinimum(options) * canonical.byteUnit > options.budget ||
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
        starts.try_emplace(mode, problem, mode, tuning, search.hurried(options))
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
const PricedBound &GraphPlanner::pricedBound(int64_t budget) {
  auto [it, fresh] = bounds.try_emplace(budget);
  if (fresh) {
    std::vector<double> prices =
        search.pricedBound(canonical.fromBytes(budget)).prices;
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
    startless = std::make_unique<StartlessGraph>(graph, tuning);
  return startless ? startless->search : search;
}

GraphPlanner::Minimum &GraphPlanner::minimumOf(const Options &options) {
  Archive &store = archive(options);
  Key key{store.mode, options.strategy, options.seed, options.effort};
  auto it = minima.find(key);
  if (it == minima.end()) {
    Archive start(startlessSearch().problem, starts.at(store.mode));
    it =
        minima
            .emplace(key, Minimum{MinimumSearch(start, provenMinimum(options))})
            .first;
  }
  return it->second;
}

/// Ends the search for the smallest budget: finds the cheapest plan within it
/// by the graph's own costs.
void GraphPlanner::settleMinimum(Minimum &minimum, const Options &options,
                                 Deadline &deadline) {
  if (minimum.settled || !startless || deadline.passed())
    return;
  minimum.settled = true;
  Archive own = starts.at(minimum.search.archive.mode);
  own.merge(minimum.search.archive);
  MinimumSearch::settle(search, own, options, deadline);
  archive(options).merge(own);
}

/// Makes one step of the search for the smallest budget.
void GraphPlanner::advance(MinimumSearch &run, const Options &options,
                           Deadline &deadline) {
  run.advance(startlessSearch(), options, deadline);
  debug::log(debug::Part::Planner, [&](llvm::raw_ostream &os) {
    os << graph.name << ": the smallest size found is "
       << run.smallest() * canonical.byteUnit
       << (run.done() ? ", and the search for it ends" : "");
  });
}

/// Searches for the smallest budget until one well below `budget` is known, or
/// to the end. Returns the smallest found; both are in units.
int64_t GraphPlanner::findMinimum(const Options &options, int64_t budget,
                                  Deadline &deadline) {
  if (isLimited(options)) { // a plan is worth more than a proof
    MinimumSearch &first = minimumOf(options).search;
    while (first.sketching() && !deadline.passed())
      advance(first, options, deadline);
  }
  proveLeastLoad(options, deadline);
  Minimum &minimum = minimumOf(options);
  MinimumSearch &run = minimum.search;
  if (isLimited(options)) // otherwise its steps are always the same
    run.raiseProvenMinimum(provenMinimum(options));
  Archive &store = archive(options);
  if (leastLoadSteps && !options.fixedOrder && options.isAuto()) {
    run.archive.report(*leastLoadSteps, 0, "least-load");
    const Candidate &smallest = run.archive.leastLoad();
    run.archive.realize(smallest, 1);
  }
  while (!run.done() && !deadline.passed() &&
         double(run.smallest()) * tuning.comfortable > double(budget))
    advance(run, options, deadline);
  if (deadline.passed() && options.pack)
    run.packLeastLoad(std::min(tuning.sketchEffort, options.effort));
  store.merge(run.archive);
  if (run.done())
    settleMinimum(minimum, options, deadline);
  return store.smallest()->size;
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

Result GraphPlanner::findWithin(const Options &options, Deadline &deadline) {
  begin(options, "a plan");
  if (options.orderOnly)
    return solveOrder(options, deadline);
  Archive &store = archive(options);
  int64_t budget = canonical.fromBytes(options.budget);
  if (budget > 0 && infeasible(options))
    return failure(options, deadline);
  const Entry *best = store.bestWithin(budget);
  if (budget == 0 || !best || best->plan.cost > problem.baseCost) {
    store.packOrders(budget > 0 ? budget : std::numeric_limits<int64_t>::max(),
                     1);
    best = store.bestWithin(budget);
  }
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
    int64_t smallest = findMinimum(options, budget, deadline);
    if (smallest <= budget && !deadline.passed() &&
        !(minimumOf(options).search.done() && smallest == budget))
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
  store.packOrders(std::numeric_limits<int64_t>::max(), 1);
  int64_t bound = provenMinimum(options);
  if (!search.hurried(options))
    bound = std::max(bound, orderOnlyBound(problem.graph));
  if (!options.fixedOrder) {
    OrderResult found =
        searchOrder(problem, deadline, options.seed, options.effort,
                    options.threads, tuning.order);
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

Result GraphPlanner::findSmallest(const Options &options, Deadline &deadline) {
  begin(options, "the smallest budget");
  if (options.orderOnly) {
    Options free = options;
    free.budget = 0;
    return solveOrder(free, deadline);
  }
  // Limits are for the smallest budget first, and then for its plan.
  bool limited = isLimited(options);
  double share = limited ? 1 - tuning.minimumPlanShare : 1;
  Deadline part =
      deadline.part(int64_t(double(deadline.unitsLeft()) * share), share);
  int64_t smallest = findMinimum(options, 0, part);
  for (int64_t before = -1; options.searchToLimit && !part.passed() &&
                            smallest > provenMinimum(options) &&
                            part.spent() > before;) {
    before = part.spent();
    minimumOf(options).search.goOn();
    smallest = findMinimum(options, 0, part);
  }
  deadline.spend(part.spent());
  // Without limits a minimum is wanted soon: its steps end with a few for the
  // plan, and a budget of those bytes searches in full.
  if (limited && options.isAuto() && !deadline.passed())
    search.fit(archive(options), options, smallest, deadline);
  int64_t size = smallest * canonical.byteUnit;
  Result result = answer(*archive(options).bestWithin(smallest), options, size);
  result.plan.minimumBudget = size;
  // This is the cheapest plan of that size, but perhaps not the smallest size.
  sayCut(result, options, deadline, smallest > provenMinimum(options));
  return result;
}
