//===- Solve.cpp - the planner's front door -------------------------------===//
//
// Problem: the cheapest sequence of (re)executions whose packed arena fits a
// budget; NP-hard. Method: a portfolio (Strategy.cpp) proposes sequences; each
// is simulated exactly; the cheapest that fits is packed; where packing needs
// more than the load, the search is repeated for a load smaller by what was
// missing. The search for the smallest budget (LeastSearch) is a fixed sequence
// of steps that depends on no budget; solve() takes as many of them as show
// that its budget is large enough, or all. Guarantee: solve() succeeds for
// exactly the budgets that are not smaller than minimize()'s result, which is
// also the one that errors name; a plan that leaves here passed verify(); the
// same graph, options and earlier questions give the same plan. All of it but
// verify() holds where the time limit did not strike; where it did, the result
// says so.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/Solve.h"
#include "Archive.h"
#include "Order.h"
#include "ckopt/Planner/Bounds.h"
#include "ckopt/Planner/Verifier.h"

#include <algorithm>

using namespace ckopt::planner;

namespace {

/// The search for the smallest budget and how far it got.
struct LeastSearch {
  LeastSearch(const Archive &start) : archive(start) {}
  enum Phase { Bisect, Pack, Tighten, Settle, Done };

  Archive archive; ///< its own: no other question changes its course
  Phase phase = Bisect;
  int round = 0;       ///< of the phase
  int64_t failed = -1; ///< largest load that a search missed
  int64_t step = 0;    ///< of Tighten, bytes
};

/// Budgets within this factor of the smallest one are searched with all that
/// is known about small plans.
constexpr double comfortable = 1.03;
/// Share of the time limit for searching; the rest is for packing, bounds and
/// the check.
constexpr double searchShare = 0.92;

} // namespace

struct BudgetPlanner::Impl {
  explicit Impl(const Graph &graph) : graph(graph), error(validate(graph)) {}

  Result solve(const Options &options);
  Result minimize(const Options &options);

private:
  using Key = std::tuple<Mode, std::string, uint64_t, double>;

  bool prepare(const Options &options, Result &result);
  Archive &archive(const Options &options);
  LeastSearch &leastSearch(const Options &options);
  void search(Archive &store, const Options &options, int64_t load,
              Deadline &deadline);
  void fit(Archive &store, const Options &options, int64_t budget,
           Deadline &deadline);
  void advance(LeastSearch &least, const Options &options, Deadline &deadline);
  void bisect(LeastSearch &least, const Options &options, Deadline &deadline);
  void tighten(LeastSearch &least, const Options &options, Deadline &deadline);
  int64_t runLeast(const Options &options, int64_t budget, Deadline &deadline);
  Result answer(const Entry &entry, const Options &options, int64_t budget);
  Result failure(const Options &options, Deadline &deadline);
  void sayCut(Result &result, const Options &options, Deadline &deadline) const;
  void nameAlive(Result &result, const std::vector<NodeId> &steps) const;

  const Graph &graph;
  std::string error;
  std::unique_ptr<Problem> problem;
  int64_t lowest = 0; ///< a proven bound below every feasible budget
  std::map<Mode, Archive> starts; ///< orders without recomputation only
  std::map<Mode, Archive> archives;
  std::map<Key, LeastSearch> leastSearches;
  std::map<int64_t, double> orderBounds;
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
  if (!problem) {
    problem = std::make_unique<Problem>(graph);
    lowest = memoryBound(graph);
  }
  return true;
}

Archive &BudgetPlanner::Impl::archive(const Options &options) {
  Mode mode{options.fixedOrder, options.pack,
            options.pack && options.arenaHoldsAll};
  auto it = archives.find(mode);
  if (it == archives.end()) {
    const Archive &start =
        starts.try_emplace(mode, *problem, mode).first->second;
    it = archives.emplace(mode, start).first;
  }
  return it->second;
}

LeastSearch &BudgetPlanner::Impl::leastSearch(const Options &options) {
  Archive &store = archive(options);
  Key key{store.mode, options.strategy, options.seed, options.effort};
  auto it = leastSearches.find(key);
  if (it == leastSearches.end())
    it = leastSearches.emplace(key, LeastSearch(starts.at(store.mode))).first;
  return it->second;
}

void BudgetPlanner::Impl::search(Archive &store, const Options &options,
                                 int64_t load, Deadline &deadline) {
  for (const Strategy &strategy : strategies()) {
    if (options.strategy == "auto" ? strategy.tier == Tier::Named
                                   : options.strategy != strategy.name)
      continue;
    if (deadline.passed())
      return;
    StrategyContext context{*problem,
                            store.orders,
                            load,
                            options.fixedOrder,
                            options.seed,
                            options.effort,
                            deadline,
                            store.candidates,
                            [&](std::vector<NodeId> steps) {
                              return store.report(std::move(steps), load,
                                                  strategy.name);
                            }};
    strategy.run(context);
  }
}

/// Searches for the cheapest plan whose size is within the budget.
void BudgetPlanner::Impl::fit(Archive &store, const Options &options,
                              int64_t budget, Deadline &deadline) {
  double packEffort = std::min(1.0, options.effort);
  int64_t load = budget;
  for (int attempt = 0; attempt < 6 && load > 0; ++attempt) {
    Options again = options;
    if (attempt > 0)
      again.effort *= 0.3; // Starts from plans that nearly fit.
    search(store, again, load, deadline);
    std::vector<Candidate> fitting = store.byCost(load);
    if (fitting.empty())
      break;
    int64_t size = store.realize(fitting.front(), packEffort);
    if (size <= budget || deadline.passed())
      break;
    // Packing needs more than the load: leave that much room.
    load = std::min(load, fitting.front().peak) -
           std::max<int64_t>(size - budget, 1);
  }
  if (!options.pack)
    return;
  // Cheaper ones of more load may pack as well.
  int tries = problem->numNodes > 4000 ? 2 : 8;
  for (const Candidate &candidate : store.byCost(budget)) {
    const Entry *best = store.bestWithin(budget);
    if (tries-- == 0 || deadline.passed() ||
        (best && best->plan.cost <= candidate.cost))
      return;
    store.realize(candidate, packEffort);
  }
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
  plan.provenMinimum = lowest;
  std::string wrong = verify(graph, plan, budget);
  if (!wrong.empty()) {
    Result broken;
    broken.status = Status::Error;
    broken.internalError = true;
    broken.message = "internal error: the plan of strategy '" + entry.strategy +
                     "' failed verification: " + wrong;
    return broken;
  }
  nameAlive(result, plan.steps);
  return result;
}

void BudgetPlanner::Impl::nameAlive(Result &result,
                                    const std::vector<NodeId> &steps) const {
  Simulation simulation = simulate(*problem, steps, true);
  result.aliveAtPeak = aliveAt(graph, steps, simulation, simulation.peakStep);
}

/// Bisects the load with quick searches.
void BudgetPlanner::Impl::bisect(LeastSearch &least, const Options &options,
                                 Deadline &deadline) {
  Archive &store = least.archive;
  least.failed = std::max(least.failed, lowest - 1);
  int64_t high = store.leastLoad().peak;
  if (least.round++ >= 14 || high <= lowest ||
      high - least.failed <= std::max<int64_t>(1, high / 400)) {
    least.phase = LeastSearch::Pack;
    return;
  }
  int64_t target = least.failed + (high - least.failed) / 2;
  Options quick = options;
  quick.effort = options.effort * 0.1;
  search(store, quick, target, deadline);
  Candidate found = store.leastLoad();
  if (found.peak > target)
    least.failed = target;
  // The best so far must be a plan at any time.
  if (found.peak < store.smallest()->size)
    store.realize(found, std::min(0.05, options.effort));
}

/// Asks for less than the smallest size so far, in steps that become finer.
void BudgetPlanner::Impl::tighten(LeastSearch &least, const Options &options,
                                  Deadline &deadline) {
  Archive &store = least.archive;
  int64_t size = store.smallest()->size;
  int32_t nodes = problem->numNodes;
  int rounds = nodes <= 500 ? 12 : nodes <= 2000 ? 6 : nodes <= 8000 ? 3 : 1;
  if (least.round++ == 0)
    least.step = size / 64;
  if (least.round > rounds || least.step < std::max<int64_t>(1, size / 2000) ||
      size <= lowest) {
    least.phase = LeastSearch::Settle;
    least.round = 0;
    return;
  }
  int64_t target = std::max(lowest, size - least.step);
  Options quick = options;
  quick.effort = options.effort * 0.5;
  fit(store, quick, target, deadline);
  if (store.smallest()->size > target)
    least.step /= 4;
}

/// One step of the search for the smallest budget.
void BudgetPlanner::Impl::advance(LeastSearch &least, const Options &options,
                                  Deadline &deadline) {
  Archive &store = least.archive;
  int64_t size = store.smallest()->size;
  switch (least.phase) {
  case LeastSearch::Bisect:
    return bisect(least, options, deadline);
  case LeastSearch::Pack: {
    int tries = options.pack ? 6 : 1;
    for (const Candidate &candidate : store.byLoad(size)) {
      if (tries-- == 0 || deadline.passed() ||
          candidate.peak >= store.smallest()->size)
        break;
      store.realize(candidate, std::min(1.0, options.effort));
    }
    least.phase = LeastSearch::Tighten;
    least.round = 0;
    return;
  }
  case LeastSearch::Tighten:
    return tighten(least, options, deadline);
  case LeastSearch::Settle:
    // The cheapest plan of that size; it may turn out smaller still.
    fit(store, options, size, deadline);
    if (store.smallest()->size == size || ++least.round >= 4)
      least.phase = LeastSearch::Done;
    return;
  case LeastSearch::Done:
    return;
  }
}

/// Searches for the smallest budget until one well below `budget` is known, or
/// to the end. Returns the smallest found.
int64_t BudgetPlanner::Impl::runLeast(const Options &options, int64_t budget,
                                      Deadline &deadline) {
  LeastSearch &least = leastSearch(options);
  Archive &store = archive(options);
  while (least.phase != LeastSearch::Done && !deadline.passed() &&
         double(least.archive.smallest()->size) * comfortable > double(budget))
    advance(least, options, deadline);
  if (deadline.passed() && options.pack) {
    Candidate found = least.archive.leastLoad();
    if (found.peak < least.archive.smallest()->size)
      least.archive.realize(found, std::min(0.02, options.effort));
  }
  store.merge(least.archive);
  return least.archive.smallest()->size;
}

void BudgetPlanner::Impl::sayCut(Result &result, const Options &options,
                                 Deadline &deadline) const {
  if (!deadline.passed() || result.status == Status::Error)
    return;
  result.cut = true;
  std::string limit = std::to_string(options.timeLimitSeconds);
  limit.erase(limit.find_last_not_of('0') + 1);
  if (limit.back() == '.')
    limit.pop_back();
  result.message += std::string(result.message.empty() ? "" : "; ") +
                    "the time limit of " + limit +
                    " s cut the search off: more time may find better";
}

Result BudgetPlanner::Impl::failure(const Options &options,
                                    Deadline &deadline) {
  Options all = options;
  all.strategy = "auto";
  runLeast(all, 0, deadline);
  const Archive &store = archive(options);
  bool automatic = options.strategy == "auto";
  const Entry *least = store.smallest();
  Result result;
  Plan &plan = result.plan;
  plan.provenMinimum = lowest;
  plan.minimumBudget = least->size;
  plan.lowerBound = costBound(graph, options.budget);
  bool infeasible = lowest > options.budget;
  result.status = infeasible ? Status::Infeasible : Status::Unknown;
  plan.status = infeasible ? "infeasible" : "unknown";
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
                    " is " + std::to_string(least->size) +
                    " bytes, and no plan needs less than " +
                    std::to_string(lowest);
  nameAlive(result, least->plan.steps);
  sayCut(result, options, deadline);
  return result;
}

Result BudgetPlanner::Impl::solve(const Options &options) {
  Result result;
  if (!prepare(options, result))
    return result;
  Deadline deadline(options.timeLimitSeconds * searchShare);
  Archive &store = archive(options);
  int64_t budget = options.budget;
  const Entry *best = store.bestWithin(budget);
  // Without recomputation nothing costs less.
  if (best && (budget == 0 || best->plan.cost <= problem->baseCost))
    return answer(*best, options, budget);
  if (lowest > budget)
    return failure(options, deadline);
  int64_t least = runLeast(options, budget, deadline);
  bool finished = leastSearch(options).phase == LeastSearch::Done;
  best = store.bestWithin(budget);
  if (!best && (finished || deadline.passed()))
    return failure(options, deadline);
  // At the smallest budget itself the search ended with this very question.
  if (!finished || budget != least)
    fit(store, options, budget, deadline);
  best = store.bestWithin(budget);
  if (!best)
    return failure(options, deadline);
  result = answer(*best, options, budget);
  sayCut(result, options, deadline);
  return result;
}

Result BudgetPlanner::Impl::minimize(const Options &options) {
  Result result;
  if (!prepare(options, result))
    return result;
  Deadline deadline(options.timeLimitSeconds * searchShare);
  runLeast(options, 0, deadline);
  const Archive &store = archive(options);
  int64_t size = store.smallest()->size;
  result = answer(*store.bestWithin(size), options, size);
  result.plan.minimumBudget = size;
  sayCut(result, options, deadline);
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
