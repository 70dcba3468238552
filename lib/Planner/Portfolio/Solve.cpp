//===- Solve.cpp - the planner's front door -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks graph and options, so that nothing behind this file sees bad input,
// hands the graph to GraphPlanner, and draws the curve of cost against budget.
// Guarantee: plans passed verify(); along a curve cost never rises with the
// budget and bounds never do either. Gives up: at once on questions that make
// no sense. Complexity: a curve takes a search a point, and one for its end.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/Solve.h"
#include "Portfolio/GraphPlanner.h"
#include "ckopt/Planner/Bounds.h"
#include "ckopt/Support/Debug.h"
#include "llvm/Support/Format.h"

#include <algorithm>

using namespace ckopt;
using namespace ckopt::planner;

/// Share of the time limit for searching; the rest is for packing, bounds and
/// verification.
static constexpr double searchShare = 0.92;

struct BudgetPlanner::Impl {
  Impl(const Graph &graph, const Tuning &tuning)
      : graph(graph), tuning(tuning), error(validate(graph)) {}

  /// Returns false, with the reason in `result`, if the request is invalid.
  bool prepare(const Options &options, Result &result);
  std::string refusal(const Options &options) const;
  /// Returns the limits of an answer. The safety net is for graphs so large
  /// that their work may take that long: a busy machine plans others as a quiet
  /// one does.
  Deadline deadline(const Options &options) const {
    bool net = !options.searchToLimit &&
               options.timeLimitSeconds >= tuning.netSeconds &&
               graph.nodes.size() < tuning.clockedNodes;
    return Deadline(net ? 0 : options.timeLimitSeconds * searchShare,
                    options.workLimit);
  }

  const Graph &graph;
  const Tuning &tuning;
  std::string error;
  std::unique_ptr<GraphPlanner> planner;
};

std::string BudgetPlanner::Impl::refusal(const Options &options) const {
  if (!error.empty())
    return "the planning graph is malformed: " + error;
  std::vector<std::string> names = strategyNames(options.more);
  if (std::find(names.begin(), names.end(), options.strategy) == names.end()) {
    std::string text = "unknown strategy '" + options.strategy + "'; known:";
    for (const std::string &name : names)
      text += " " + name;
    return text;
  }
  return options.budget < 0 ? "the budget is negative" : "";
}

bool BudgetPlanner::Impl::prepare(const Options &options, Result &result) {
  result.message = refusal(options);
  if (!result.message.empty()) {
    result.plan.status = Status::Error;
    return false;
  }
  if (!planner)
    planner = std::make_unique<GraphPlanner>(graph, tuning);
  return true;
}

BudgetPlanner::BudgetPlanner(const Graph &graph, const Tuning *tuning)
    : impl(std::make_unique<Impl>(graph, tuning ? *tuning : defaultTuning)) {}
BudgetPlanner::~BudgetPlanner() = default;

static void logAnswer(const Graph &graph, const Result &result) {
  debug::log(debug::Part::Planner, [&](llvm::raw_ostream &os) {
    const Plan &plan = result.plan;
    os << graph.name << ": " << statusName(plan.status) << " after "
       << result.work << " units";
    if (result.hasPlan())
      os << ": " << result.strategy << " costs "
         << llvm::format("%g", plan.cost) << " in " << plan.steps.size()
         << " steps, peak " << plan.peak << ", arena " << plan.arena
         << ", lower bound " << llvm::format("%g", plan.lowerBound);
  });
}

Result BudgetPlanner::solve(const Options &options) {
  Result result;
  Deadline deadline = impl->deadline(options);
  if (!impl->prepare(options, result))
    return result;
  result = impl->planner->findWithin(options, deadline);
  result.work = deadline.spent();
  logAnswer(impl->graph, result);
  return result;
}

Result BudgetPlanner::minimize(const Options &options) {
  Result result;
  Deadline deadline = impl->deadline(options);
  if (!impl->prepare(options, result))
    return result;
  result = impl->planner->findSmallest(options, deadline);
  result.work = deadline.spent();
  logAnswer(impl->graph, result);
  return result;
}

std::vector<Result> BudgetPlanner::pareto(const Options &options, int points) {
  Result result;
  if (!impl->prepare(options, result))
    return {result};
  Deadline deadline = impl->deadline(options);
  Options own = options;
  own.budget = 0;
  Result full = impl->planner->findWithin(own, deadline);
  if (!full.hasPlan())
    return {full};
  points = std::max(points, 2);
  auto part = [&](int parts) {
    return deadline.part(deadline.unitsLeft() / parts, 1.0 / parts);
  };
  Deadline first = part(3);
  Result least = impl->planner->findSmallest(own, first);
  deadline.spend(first.spent());
  if (!least.hasPlan())
    return {least};
  int64_t low = least.plan.minimumBudget;
  int64_t high = full.plan.arena + full.outside;
  if (!options.pack)
    high = simulate(impl->graph, full.plan.steps, /*aligned=*/true).peak;
  high = std::max(low, high);
  std::vector<int64_t> budgets;
  for (int k = 0; k < points; ++k) {
    int64_t budget = low + int64_t((__int128(high - low) * k) / (points - 1));
    if (budgets.empty() || budget > budgets.back())
      budgets.push_back(budget);
  }
  // minimize() did the same for the first budget; limits may leave more for it.
  for (size_t k = isLimited(options) ? 0 : 1; k < budgets.size(); ++k) {
    own.budget = budgets[k];
    Deadline share = part(int(budgets.size() - k));
    Result each = impl->planner->findWithin(own, share);
    deadline.spend(share.spent());
    if (each.status() == Status::Error)
      return {each};
  }
  // Plans for larger budgets may turn out to fit smaller ones.
  std::vector<Result> curve;
  for (int64_t budget : budgets) {
    own.budget = budget;
    Result each = impl->planner->recall(own);
    if (!each.hasPlan())
      continue;
    each.plan.minimumBudget = low;
    each.plan.provenMinimum =
        std::max(each.plan.provenMinimum, least.plan.provenMinimum);
    each.budget = budget;
    curve.push_back(std::move(each));
  }
  // A bound for more bytes holds for fewer.
  for (size_t k = curve.size(); k-- > 1;) {
    Plan &tight = curve[k - 1].plan, &loose = curve[k].plan;
    tight.lowerBound = std::max(tight.lowerBound, loose.lowerBound);
    tight.orderLowerBound =
        std::max(tight.orderLowerBound, loose.orderLowerBound);
  }
  return curve;
}
