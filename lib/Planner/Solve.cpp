//===- Solve.cpp - the planner's front door -------------------------------===//
//
// Problem: the cheapest sequence of (re)executions whose packed arena fits a
// budget; NP-hard. Method: a portfolio (Strategy.cpp) proposes sequences; each
// is simulated exactly; the cheapest that fits is packed; where packing needs
// more than the load, the search is repeated for a load smaller by what was
// missing. Everything found is kept, so that answers are monotone in the
// budget. Guarantee: a plan that leaves here passed verify(); the same graph,
// options and earlier questions give the same plan unless the time limit
// struck.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/Solve.h"
#include "Order.h"
#include "Strategy.h"
#include "ckopt/Planner/Bounds.h"
#include "ckopt/Planner/Packing.h"
#include "ckopt/Planner/Verifier.h"

#include <algorithm>
#include <map>

using namespace ckopt::planner;

namespace {

/// A plan with the size that counts against the budget.
struct Entry {
  Plan plan;
  int64_t size = 0;
  std::string strategy;
};

} // namespace

struct BudgetPlanner::Impl {
  explicit Impl(const Graph &graph) : graph(graph), error(validate(graph)) {}

  Result solve(const Options &options);
  Result minimize(const Options &options);

private:
  /// What answers may differ in; each has its own archive.
  struct Archive {
    std::vector<std::vector<NodeId>> orders;
    std::vector<Candidate> candidates; ///< Pareto: cost against peak
    std::vector<Entry> entries;
    bool minimized = false;
  };
  using Key = std::tuple<bool, bool, bool>;

  bool prepare(const Options &options, Result &result);
  Archive &archive(const Options &options);
  bool report(Archive &store, std::vector<NodeId> steps, int64_t budget);
  void search(Archive &store, const Options &options, int64_t load,
              const Deadline &deadline);
  const Entry *bestWithin(const Archive &store, int64_t budget) const;
  const Entry *smallest(const Archive &store) const;
  void realize(Archive &store, const Candidate &candidate,
               const Options &options, const std::string &strategy);
  Result answer(const Entry &entry, const Options &options, int64_t budget);
  Result failure(Archive &store, const Options &options,
                 const Deadline &deadline);
  void fit(Archive &store, const Options &options, int64_t budget,
           const Deadline &deadline);
  void shrink(Archive &store, const Options &options, const Deadline &deadline);
  int64_t lowest(const Options &options) const;

  const Graph &graph;
  std::string error;
  std::unique_ptr<Problem> problem;
  std::map<Key, Archive> archives;
  std::map<int64_t, double> orderBounds;
  std::string current; ///< name of the strategy that runs
  std::map<std::vector<NodeId>, std::string> origin;
};

bool BudgetPlanner::Impl::prepare(const Options &options, Result &result) {
  if (!error.empty()) {
    result.message = "the planning graph is malformed: " + error;
    return false;
  }
  std::vector<std::string> names = strategyNames();
  if (std::find(names.begin(), names.end(), options.strategy) == names.end()) {
    result.message = "unknown strategy '" + options.strategy + "'; known:";
    for (const std::string &name : names)
      result.message += " " + name;
    return false;
  }
  if (options.budget < 0) {
    result.message = "the budget is negative";
    return false;
  }
  if (!problem)
    problem = std::make_unique<Problem>(graph);
  return true;
}

BudgetPlanner::Impl::Archive &
BudgetPlanner::Impl::archive(const Options &options) {
  Archive &store = archives[{options.fixedOrder, options.pack,
                             options.pack && options.arenaHoldsAll}];
  if (!store.orders.empty())
    return store;
  if (options.fixedOrder)
    store.orders = {programOrder(*problem)};
  else
    store.orders = candidateOrders(*problem);
  for (const std::vector<NodeId> &order : store.orders) {
    current = "none";
    report(store, order, 0);
  }
  size_t packed = std::min<size_t>(store.orders.size(), 3);
  for (size_t i = 0; i < packed; ++i) {
    Simulation simulation = simulate(*problem, store.orders[i], true);
    realize(store, {store.orders[i], simulation.cost, simulation.peak}, options,
            "none");
  }
  return store;
}

/// Keeps a sequence if none known is as cheap and as small.
bool BudgetPlanner::Impl::report(Archive &store, std::vector<NodeId> steps,
                                 int64_t budget) {
  Simulation simulation = simulate(*problem, steps, true);
  Candidate candidate{std::move(steps), simulation.cost, simulation.peak};
  bool fits = candidate.peak <= budget;
  for (const Candidate &other : store.candidates)
    if (other.cost <= candidate.cost && other.peak <= candidate.peak)
      return fits;
  std::erase_if(store.candidates, [&](const Candidate &other) {
    return other.cost >= candidate.cost && other.peak >= candidate.peak;
  });
  origin[candidate.steps] = current;
  store.candidates.push_back(std::move(candidate));
  return fits;
}

void BudgetPlanner::Impl::search(Archive &store, const Options &options,
                                 int64_t load, const Deadline &deadline) {
  for (const Strategy &strategy : strategies()) {
    if (options.strategy == "auto" ? !strategy.automatic
                                   : options.strategy != strategy.name)
      continue;
    if (deadline.passed())
      return;
    current = strategy.name;
    StrategyContext context{*problem,
                            store.orders,
                            load,
                            options.fixedOrder,
                            options.seed,
                            options.effort,
                            deadline,
                            store.candidates,
                            [&](std::vector<NodeId> steps) {
                              return report(store, std::move(steps), load);
                            }};
    strategy.run(context);
  }
}

void BudgetPlanner::Impl::realize(Archive &store, const Candidate &candidate,
                                  const Options &options,
                                  const std::string &strategy) {
  for (const Entry &entry : store.entries)
    if (entry.plan.steps == candidate.steps)
      return;
  Entry entry;
  entry.plan.steps = candidate.steps;
  Simulation simulation = simulate(*problem, candidate.steps, false);
  entry.plan.cost = simulation.cost;
  entry.plan.peak = simulation.peak;
  entry.size = options.pack ? 0 : candidate.peak;
  if (options.pack) {
    packPlan(graph, entry.plan, options.arenaHoldsAll,
             std::min(1.0, options.effort));
    entry.size = entry.plan.arena;
    if (!options.arenaHoldsAll)
      for (const Copy &copy : simulation.copies)
        if (copy.made < 0 && copy.last >= 0)
          entry.size += graph.values[copy.value].bytes;
  }
  entry.strategy = strategy;
  store.entries.push_back(std::move(entry));
}

const Entry *BudgetPlanner::Impl::bestWithin(const Archive &store,
                                             int64_t budget) const {
  const Entry *best = nullptr;
  for (const Entry &entry : store.entries)
    if ((budget == 0 || entry.size <= budget) &&
        (!best || entry.plan.cost < best->plan.cost ||
         (entry.plan.cost == best->plan.cost && entry.size < best->size)))
      best = &entry;
  return best;
}

const Entry *BudgetPlanner::Impl::smallest(const Archive &store) const {
  const Entry *best = nullptr;
  for (const Entry &entry : store.entries)
    if (!best || entry.size < best->size ||
        (entry.size == best->size && entry.plan.cost < best->plan.cost))
      best = &entry;
  return best;
}

/// A proven bound below every feasible budget.
int64_t BudgetPlanner::Impl::lowest(const Options &options) const {
  return memoryBound(graph);
}

Result BudgetPlanner::Impl::answer(const Entry &entry, const Options &options,
                                   int64_t budget) {
  Result result;
  result.plan = entry.plan;
  result.strategy = entry.strategy;
  Plan &plan = result.plan;
  plan.lowerBound = costBound(graph, budget);
  plan.orderLowerBound = plan.lowerBound;
  if (budget > 0) {
    auto [it, fresh] = orderBounds.insert({budget, 0});
    if (fresh)
      it->second = orderBound(graph, programOrder(*problem), budget);
    plan.orderLowerBound = it->second;
  }
  double slack = 1 + 1e-9;
  bool inOrder = std::is_sorted(plan.steps.begin(), plan.steps.end());
  if (!inOrder) {
    std::vector<char> seen(graph.nodes.size(), 0);
    NodeId next = 0;
    for (NodeId n : plan.steps)
      if (!seen[n]) {
        seen[n] = 1;
        next = n == next ? next + 1 : -1;
        if (next < 0)
          break;
      }
    inOrder = next == problem->numNodes;
  }
  result.status = Status::Feasible;
  plan.status = "feasible";
  if (plan.cost <= plan.lowerBound * slack) {
    result.status = Status::Optimal;
    plan.status = "optimal";
  } else if (inOrder && plan.cost <= plan.orderLowerBound * slack) {
    plan.status = "order_optimal";
  }
  if (plan.lowerBound > plan.cost)
    plan.lowerBound = plan.cost; // Sums in another order.
  plan.provenMinimum = lowest(options);
  std::string wrong = verify(graph, plan, budget);
  if (!wrong.empty()) {
    Result broken;
    broken.status = Status::Error;
    broken.internalError = true;
    broken.message = "internal error: the plan of strategy '" + entry.strategy +
                     "' failed verification: " + wrong;
    return broken;
  }
  Simulation simulation = simulate(*problem, plan.steps, false);
  result.aliveAtPeak =
      aliveAt(graph, plan.steps, simulation, simulation.peakStep);
  return result;
}

/// Packs the candidates of the least load, as long as one could be smaller
/// than the smallest so far.
void BudgetPlanner::Impl::shrink(Archive &store, const Options &options,
                                 const Deadline &deadline) {
  std::vector<const Candidate *> byPeak;
  for (const Candidate &candidate : store.candidates)
    byPeak.push_back(&candidate);
  std::sort(byPeak.begin(), byPeak.end(),
            [](const Candidate *a, const Candidate *b) {
              return a->peak != b->peak ? a->peak < b->peak : a->cost < b->cost;
            });
  size_t tries = options.pack ? 6 : 1;
  for (size_t i = 0; i < byPeak.size() && i < tries; ++i) {
    if (deadline.passed() || byPeak[i]->peak >= smallest(store)->size)
      return;
    realize(store, *byPeak[i], options, origin[byPeak[i]->steps]);
  }
}

Result BudgetPlanner::Impl::failure(Archive &store, const Options &options,
                                    const Deadline &deadline) {
  int64_t proven = lowest(options);
  if (!deadline.passed() && !store.minimized) {
    Options small = options;
    small.strategy = "auto";
    minimize(small);
  }
  const Entry *least = smallest(store);
  bool automatic = options.strategy == "auto";
  if (automatic && least->size <= options.budget)
    return answer(*bestWithin(store, options.budget), options, options.budget);
  Result result;
  Plan &plan = result.plan;
  plan.provenMinimum = proven;
  plan.minimumBudget = least->size;
  plan.lowerBound = costBound(graph, options.budget);
  bool infeasible = proven > options.budget;
  result.status = infeasible ? Status::Infeasible : Status::Unknown;
  plan.status = infeasible ? "infeasible" : "unknown";
  std::string smallestFound = std::to_string(least->size) +
                              " bytes, and no plan needs less than " +
                              std::to_string(proven);
  std::string asked =
      " for a budget of " + std::to_string(options.budget) + " bytes";
  if (infeasible)
    result.message = "no plan exists" + asked;
  else if (automatic)
    result.message = "no plan found" + asked;
  else
    result.message =
        "strategy '" + options.strategy + "' found no plan" + asked;
  result.message += "; the smallest budget found" +
                    std::string(automatic ? "" : " by all strategies") +
                    " is " + smallestFound;
  Simulation simulation = simulate(*problem, least->plan.steps, false);
  result.aliveAtPeak =
      aliveAt(graph, least->plan.steps, simulation, simulation.peakStep);
  return result;
}

/// Searches for the cheapest plan whose size is within the budget.
void BudgetPlanner::Impl::fit(Archive &store, const Options &options,
                              int64_t budget, const Deadline &deadline) {
  int64_t load = budget;
  for (int attempt = 0; attempt < 6 && load > 0; ++attempt) {
    Options again = options;
    if (attempt > 0)
      again.effort *= 0.3; // Starts from plans that nearly fit.
    search(store, again, load, deadline);
    const Candidate *chosen = nullptr;
    for (const Candidate &candidate : store.candidates)
      if (candidate.peak <= load && (!chosen || candidate.cost < chosen->cost))
        chosen = &candidate;
    if (!chosen)
      break;
    realize(store, *chosen, options, origin[chosen->steps]);
    int64_t size = 0;
    for (size_t i = 0; i < store.entries.size(); ++i)
      if (store.entries[i].plan.steps == chosen->steps)
        size = store.entries[i].size;
    if (size <= budget || deadline.passed())
      break;
    // Packing needs more than the load: leave that much room.
    load = std::min(load, chosen->peak) - std::max<int64_t>(size - budget, 1);
  }
}

Result BudgetPlanner::Impl::solve(const Options &options) {
  Result result;
  if (!prepare(options, result))
    return result;
  Deadline deadline(options.timeLimitSeconds);
  Archive &store = archive(options);
  int64_t budget = options.budget;
  const Entry *best = bestWithin(store, budget);
  // Without recomputation nothing costs less.
  if (best && (budget == 0 || best->plan.cost <= problem->baseCost))
    return answer(*best, options, budget);
  if (lowest(options) > budget)
    return failure(store, options, deadline);
  fit(store, options, budget, deadline);
  best = bestWithin(store, budget);
  if (!best)
    return failure(store, options, deadline);
  return answer(*best, options, budget);
}

Result BudgetPlanner::Impl::minimize(const Options &options) {
  Result result;
  if (!prepare(options, result))
    return result;
  Deadline deadline(options.timeLimitSeconds);
  Archive &store = archive(options);
  int64_t low = lowest(options);
  auto least = [&] {
    int64_t peak = store.candidates.front().peak;
    for (const Candidate &candidate : store.candidates)
      peak = std::min(peak, candidate.peak);
    return peak;
  };
  int64_t failed = low - 1;
  for (int round = 0; round < 14 && !deadline.passed(); ++round) {
    int64_t high = least();
    if (high <= low || high - failed <= std::max<int64_t>(1, high / 400))
      break;
    int64_t target = failed + (high - failed) / 2;
    Options quick = options;
    quick.effort = options.effort * 0.1;
    search(store, quick, target, deadline);
    if (least() > target)
      failed = target;
  }
  shrink(store, options, deadline);
  store.minimized = true;
  // The smallest budget is known; now the cheapest plan within it.
  int64_t size = smallest(store)->size;
  fit(store, options, size, deadline);
  result = answer(*bestWithin(store, size), options, size);
  result.plan.minimumBudget = size;
  return result;
}

BudgetPlanner::BudgetPlanner(const Graph &graph)
    : impl(std::make_unique<Impl>(graph)) {}
BudgetPlanner::~BudgetPlanner() = default;
Result BudgetPlanner::solve(const Options &options) {
  return impl->solve(options);
}
Result BudgetPlanner::minimize(const Options &options) {
  return impl->minimize(options);
}

Result ckopt::planner::solve(const Graph &graph, const Options &options) {
  return BudgetPlanner(graph).solve(options);
}

Result ckopt::planner::minimize(const Graph &graph, const Options &options) {
  return BudgetPlanner(graph).minimize(options);
}
