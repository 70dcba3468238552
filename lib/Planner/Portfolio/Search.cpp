//===- Search.cpp - the portfolio for one question ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: the cheapest sequence of (re)executions whose packed arena fits a
// budget; NP-hard. Method: a portfolio. Constructive strategies give first
// plans, exact ones may prove the best, improving ones work on what is known,
// in rounds of rising effort while limits allow; each sequence is simulated
// exactly and all that are not beaten are kept. Where packing needs more than
// the load, the search is repeated for smaller loads. Guarantee: all steps are
// valid; the same question gives the same answer unless the clock strikes; more
// is never worse. Gives up: where limits end or a bound is met; without limits
// after one round. Complexity: that of the strategies, in shares of the limits
// (Tuning.h).
//
//===----------------------------------------------------------------------===//
#include "Portfolio/Search.h"
#include "Model/Order.h"
#include "Portfolio/Strategies.h"
#include "ckopt/Planner/Bounds.h"
#include "ckopt/Planner/Verifier.h"
#include "ckopt/Support/Debug.h"
#include "llvm/Support/Format.h"

#include <algorithm>
#include <cmath>
#include <thread>

using namespace ckopt;
using namespace ckopt::planner;

/// Work of simulating a step.
static constexpr int64_t simulationUnits = 4;

const PricedBound &Search::pricedBound(int64_t budget) {
  auto [it, fresh] = bounds.try_emplace(budget);
  if (fresh)
    it->second.cost =
        ckopt::planner::orderBound(problem.graph, programOrder(problem), budget,
                                   &it->second.prices, &it->second.certificate);
  return it->second;
}

double Search::proven(int64_t budget, bool programOrder) const {
  double best = 0;
  for (const SearchedBound &proof : proofs)
    if (proof.budget >= budget && (programOrder || !proof.programOrder))
      best = std::max(best, proof.cost);
  return best;
}

bool Search::isValid(const std::vector<NodeId> &steps) const {
  Plan plan;
  plan.steps = steps;
  return verifySteps(problem.graph, plan).empty();
}

/// Returns the candidates that strategies may start from, at least one. Each
/// obeys the simple rules; hints and results of proofs, which need not obey
/// them, are left out.
std::vector<Candidate> Search::simpleCandidates(const Archive &store) const {
  std::vector<Candidate> list;
  for (const Candidate &candidate : store.candidates)
    if (keepsSimpleRules(problem, candidate.steps))
      list.push_back(candidate);
  if (list.empty()) {
    const std::vector<NodeId> &order = store.orders.front();
    Simulation simulation = simulate(problem, order, true);
    list.push_back({order, simulation.cost, simulation.peak, "none"});
  }
  return list;
}

namespace {
/// The quality of the best answer for a load.
struct Standing {
  /// Of sequences that fit.
  double cost = std::numeric_limits<double>::infinity();
  int64_t peak = std::numeric_limits<int64_t>::max(); ///< of any sequence

  Standing(const Archive &store, int64_t load) {
    for (const Candidate &candidate : store.candidates) {
      peak = std::min(peak, candidate.peak);
      if (candidate.peak <= load)
        cost = std::min(cost, candidate.cost);
    }
  }
  /// Returns whether it is better by enough to continue: cheaper or, if nothing
  /// fits, smaller.
  bool better(const Standing &than, const Tuning &tuning) const {
    return std::isinf(than.cost)
               ? !std::isinf(cost) ||
                     double(peak) < tuning.betterPeak * double(than.peak)
               : cost < than.cost * tuning.betterCost;
  }
};
} // namespace

static void logGain(const Strategy &strategy, const Deadline &deadline,
                    double cost, int64_t peak) {
  debug::log(debug::Part::Planner, [&](llvm::raw_ostream &os) {
    os << strategy.name << " gains after " << deadline.spent()
       << " units: cheapest that fits " << llvm::format("%g", cost)
       << ", least load " << peak;
  });
}

void Search::runStrategy(const Strategy &strategy, Archive &store,
                         const Options &options, int64_t load,
                         Deadline &deadline, bool firstPlan) {
  int threads = options.threads > 0
                    ? options.threads
                    : int(std::max(1u, std::thread::hardware_concurrency()));
  std::vector<Candidate> simple;
  if (problem.simplified)
    simple = simpleCandidates(store);
  Standing best(store, load);
  StrategyContext context{
      problem,
      store.orders,
      load,
      options.fixedOrder,
      options.seed,
      options.effort,
      deadline,
      problem.simplified ? simple : store.candidates,
      [&](std::vector<NodeId> steps) {
        // Results of proofs may break the simple rules.
        if (problem.simplified && !isValid(steps))
          return false;
        deadline.spend(int64_t(steps.size()) * simulationUnits);
        bool fits = store.report(std::move(steps), load, strategy.name);
        if (Standing now(store, load); now.better(best, tuning)) {
          best = now;
          deadline.gained();
          logGain(strategy, deadline, now.cost, now.peak);
        }
        if (fits && firstPlan)
          deadline.setPatience(1);
        return fits;
      },
      [&](double cost, bool programOrder) {
        proofs.push_back({load, programOrder, cost});
      },
      threads,
      [&]() -> const std::vector<double> & { return pricedBound(load).prices; },
      tuning,
      isLimited(options)};
  if (strategy.tier == Tier::Improve && stopsEarly(options)) {
    context.worth = worth(options);
    context.bound = bestBound(options, load);
    context.orderBound =
        std::max(proven(load, /*programOrder=*/true), pricedBound(load).cost);
  }
  int64_t before = deadline.spent();
  strategy.run(context);
  debug::log(debug::Part::Planner, [&](llvm::raw_ostream &os) {
    Standing now(store, load);
    os << "load " << load << ": " << strategy.name << " at effort "
       << llvm::format("%g", options.effort) << " took "
       << deadline.spent() - before << " units; cheapest that fits "
       << llvm::format("%g", now.cost) << ", least load " << now.peak;
  });
}

void Search::runTier(Tier tier, Archive &store, const Options &options,
                     int64_t load, Deadline &deadline) {
  int left = 0;
  for (const Strategy &strategy : strategies())
    left += strategy.tier == tier;
  for (const Strategy &strategy : strategies())
    if (strategy.tier == tier) {
      if (deadline.passed() || closed(store, options, load))
        return;
      // A construction goes on while it gains, and leaves a share of the work
      // (`leftForEach`) to each construction behind it. Proofs and improvement
      // may take all of it.
      --left;
      bool construct = tier == Tier::Construct;
      double share = construct ? 1 - tuning.leftForEach * left : 1.0;
      Deadline part =
          deadline.part(int64_t(double(deadline.unitsLeft()) * share), share);
      if (construct)
        part.setPatience(std::max(tuning.leastPatience,
                                  tuning.patienceEachNode * problem.numNodes));
      runStrategy(strategy, store, options, load, part);
      deadline.spend(part.spent());
    }
}

/// Returns the best bound known for what is searched.
double Search::bestBound(const Options &options, int64_t load) {
  double bound = std::max(problem.baseCost, proven(load, options.fixedOrder));
  if (options.fixedOrder)
    return std::max(bound, pricedBound(load).cost);
  auto [it, fresh] = freeBounds.try_emplace(load);
  if (fresh)
    it->second = costBound(problem.graph, load);
  return std::max(bound, it->second);
}

/// Returns whether nothing better can be found, or nothing that pays.
bool Search::closed(const Archive &store, const Options &options,
                    int64_t load) {
  double best = std::numeric_limits<double>::infinity();
  for (const Candidate &candidate : store.candidates)
    if (candidate.peak <= load)
      best = std::min(best, candidate.cost);
  if (!std::isinf(best) && stopsEarly(options) &&
      best <= bestBound(options, load) * (1 + worth(options)))
    return true;
  double bound = std::max(problem.baseCost, proven(load, options.fixedOrder));
  if (std::isinf(bound))
    return true;
  if (options.fixedOrder && !hurried(options))
    bound = std::max(bound, pricedBound(load).cost);
  return best <= bound * tuning.rounding;
}

void Search::improve(Archive &store, const Options &options, int64_t load,
                     Deadline &deadline) {
  Options round = options;
  for (int i = 0; i < tuning.maxRounds; ++i) {
    runTier(Tier::Improve, store, round, load, deadline);
    if (!options.searchToLimit || deadline.passed() ||
        closed(store, options, load))
      return;
    round.seed = options.seed + uint64_t(i + 1) * seedStride;
    round.effort = options.effort * std::min(tuning.mostRoundEffort,
                                             1 + tuning.roundGrowth * (i + 1));
  }
}

/// Tries two constructions with little effort, so that even tight limits give a
/// plan.
void Search::sketch(Archive &store, const Options &options, int64_t load,
                    Deadline &deadline) {
  Options quick = options;
  quick.effort = std::min(options.effort, tuning.sketchPlanEffort);
  std::vector<std::string_view> names{tuning.quickest, tuning.surest};
  if (!shortOfTime(options))
    std::swap(names[0], names[1]);
  for (std::string_view name : names)
    for (const Strategy &strategy : strategies())
      if (strategy.name == name && !closed(store, options, load)) {
        double share =
            name == tuning.surest ? tuning.surestShare : tuning.quickestShare;
        Deadline part =
            deadline.part(int64_t(double(deadline.unitsLeft()) * share), share);
        // On a busy machine the clock strikes before anything was done, so what
        // ends the search for a first plan is its work.
        if (shortOfTime(options) && !deadline.hasWorkLimit() &&
            store.leastLoad().peak > load)
          part = Deadline(0, tuning.firstPlanWorkEachNode * problem.numNodes);
        runStrategy(strategy, store, quick, load, part);
        deadline.spend(part.spent());
      }
}

void Search::probe(Archive &store, const Options &options, int64_t load,
                   Deadline &deadline) {
  Options quick = options;
  quick.effort = std::min(options.effort, tuning.sketchPlanEffort);
  for (const Strategy &strategy : strategies())
    if (strategy.name == tuning.surest)
      runStrategy(strategy, store, quick, load, deadline, /*firstPlan=*/true);
}

void Search::run(Archive &store, const Options &options, int64_t load,
                 Deadline &deadline) {
  if (!options.isAuto()) {
    auto runNamed = [&](const std::vector<Strategy> &list) {
      for (const Strategy &strategy : list)
        if (options.strategy == strategy.name && !deadline.passed())
          runStrategy(strategy, store, options, load, deadline);
    };
    runNamed(strategies());
    if (options.more)
      runNamed(*options.more);
    return;
  }
  if (std::find(store.constructed.begin(), store.constructed.end(), load) ==
      store.constructed.end()) {
    if (tight(options, deadline))
      sketch(store, options, load, deadline);
    // Most of the limits are for improving, which irregular graphs need most;
    // large graphs gain more from construction.
    bool large = problem.numNodes > tuning.largeNodes;
    int64_t units = large ? problem.numNodes * tuning.constructWorkEachNode
                          : tuning.constructWork;
    if (deadline.hasWorkLimit())
      units = std::min(units, int64_t(double(deadline.unitsLeft()) *
                                      (large ? tuning.constructShareLarge
                                             : tuning.constructShare)));
    Deadline part = deadline.part(units, large ? tuning.constructTimeLarge
                                               : tuning.constructTime);
    runTier(Tier::Construct, store, options, load, part);
    deadline.spend(part.spent());
    if (mayProve(options)) {
      part = deadline.part(deadline.unitsLeft() / tuning.exactWorkDivisor,
                           tuning.exactTime);
      runTier(Tier::Exact, store, options, load, part);
      deadline.spend(part.spent());
    }
    if (!isQuick(options.effort) && !closed(store, options, load))
      store.constructed.push_back(load);
  }
  improve(store, options, load, deadline);
}

void Search::fit(Archive &store, const Options &options, int64_t budget,
                 Deadline &deadline) {
  if (!options.pack) {
    run(store, options, budget, deadline);
    std::vector<Candidate> fitting = store.byCost(budget);
    if (!fitting.empty())
      store.realize(fitting.front(), 1);
    return;
  }
  // The search notes which loads gave a plan that fits the budget once packed,
  // and which did not, and tries a load between them next.
  LoadBracket &known = store.brackets[budget];
  int64_t width = budget / tuning.settledDivisor;
  for (int attempt = 0; attempt < tuning.packAttempts; ++attempt) {
    int64_t load = known.next(budget, width);
    if (load <= 0)
      break;
    Options again = options;
    if (attempt > 0) // start from plans that nearly fit
      again.effort = options.effort * tuning.againEffort;
    // Small graphs probe first; for a large graph, the first plan is most of
    // the work.
    double share = tuning.packShare;
    if (attempt == 0 && known.settled(width) && known.tooMuch > 0)
      share = tuning.packShareSettled;
    else if (problem.numNodes <= tuning.dearPackingNodes && known.fits == 0)
      share = tuning.packShareProbe;
    Deadline part =
        deadline.part(int64_t(double(deadline.unitsLeft()) * share), share);
    run(store, again, load, part);
    deadline.spend(part.spent());
    std::vector<Candidate> fitting = store.byCost(load);
    if (fitting.empty())
      break;
    int64_t size = place(store, options, fitting.front(), budget, deadline);
    // Packing trials take long on large graphs, so they may lower the load by
    // any amount at once.
    int64_t most = problem.numNodes > tuning.dearPackingNodes
                       ? budget
                       : std::max<int64_t>(1, budget / tuning.packStepDivisor)
                             << std::min(2 * known.tries, 10);
    known.take(load, fitting.front().peak, size - budget, most);
    if (size > budget)
      packSmaller(store, options, budget);
    if (deadline.passed() || known.settled(width) ||
        packedEnough(store, options, budget))
      break;
  }
  packMore(store, options, budget, deadline);
}

/// Returns the least part of its cost by which a plan must be cheaper so that
/// packing it pays. All of a small graph's search takes no time.
double Search::worth(const Options &options) const {
  return isLimited(options) || isQuick(options.effort) || small()
             ? 0
             : tuning.worthGap / options.effort;
}

/// Returns whether a plan that fits is nearly as cheap as the best that would
/// without gaps between its values.
bool Search::packedEnough(const Archive &store, const Options &options,
                          int64_t budget) const {
  const Entry *best = store.bestWithin(budget);
  return best && worth(options) > 0 &&
         best->plan.cost <=
             store.byCost(budget).front().cost * (1 + worth(options));
}

/// Packs a candidate; with more effort if few bytes are missing and the plan
/// would be much cheaper than others.
int64_t Search::place(Archive &store, const Options &options,
                      const Candidate &candidate, int64_t budget,
                      const Deadline &deadline) {
  double effort = std::min(1.0, options.effort);
  if (!isLimited(options)) {
    effort =
        std::min(1.0, std::max(tuning.packEffort * options.effort,
                               std::min(options.effort, tuning.packEffort)));
    // Room that the budget does not need is not worth a search.
    int64_t size = store.realize(candidate, tuning.quickPack * effort);
    if (size <= budget)
      return size;
  }
  int64_t size = store.realize(candidate, effort);
  if (size > budget && size - budget < budget / tuning.nearMissDivisor &&
      !isQuick(options.effort) && problem.numNodes <= tuning.dearPackingNodes &&
      !deadline.passed())
    size = store.realize(candidate, tuning.nearMissEffort * effort);
  return size;
}

/// Quickly packs known sequences of smaller and smaller loads, until one fits.
void Search::packSmaller(Archive &store, const Options &options,
                         int64_t budget) {
  for (int percent : tuning.smallerPercents) {
    if (store.bestWithin(budget))
      return;
    std::vector<Candidate> less =
        percent > 0
            ? store.byCost(int64_t(double(budget) * 0.01 * double(percent)))
            : std::vector<Candidate>{store.leastLoad()};
    if (!less.empty())
      store.realize(less.front(),
                    std::min(tuning.sketchEffort, options.effort));
  }
}

/// Tries cheaper sequences of larger load, which may fit once packed: bisects
/// the list of those that cost less than the best plan that fits. Expensive
/// ones have a smaller load.
void Search::packMore(Archive &store, const Options &options, int64_t budget,
                      Deadline &deadline) {
  std::vector<Candidate> list = store.byCost(budget);
  if (const Entry *best = store.bestWithin(budget))
    std::erase_if(list, [&](const Candidate &candidate) {
      return candidate.cost * (1 + worth(options)) >= best->plan.cost;
    });
  int tries = problem.numNodes > tuning.fewTrialsNodes ? tuning.packTrialsLarge
                                                       : tuning.packTrials;
  size_t from = 0, to = list.size();
  while (from < to && tries-- > 0 && !deadline.passed()) {
    size_t middle = (from + to) / 2;
    int64_t size = place(store, options, list[middle], budget, deadline);
    (size <= budget ? to : from) = size <= budget ? middle : middle + 1;
  }
}
