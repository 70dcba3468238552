//===- Pareto.cpp - time against memory -----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The curve that BudgetPlanner draws, as a file and as a picture. Linear in the
// plans.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/Pareto.h"

#include "ckopt/Planner/GraphJson.h"
#include "ckopt/Planner/Simulator.h"
#include "ckopt/Support/ByteSize.h"
#include "ckopt/Support/Report.h"

#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

using namespace ckopt;
using namespace ckopt::planner;
namespace json = llvm::json;

/// Converts the results for the larger graph. Where the planner recomputed more
/// than the policy asks for, a converted plan may need more bytes than its
/// budget: it then stands at those bytes, unless a plan for fewer bytes costs
/// no more, with the bounds of a search for at least as many.
static void restorePoints(const Graph &graph, const PolicyGraph &constrained,
                          bool holdsAll, std::vector<Result> &results) {
  std::vector<std::pair<int64_t, Answer>> searched; // by rising budget
  for (const Result &result : results)
    searched.push_back({result.budget, result.plan});
  auto boundFor = [&](Plan &plan, int64_t budget) {
    auto more = llvm::find_if(
        searched, [&](const auto &entry) { return entry.first >= budget; });
    plan.lowerBound = plan.orderLowerBound = baseCost(constrained.graph);
    if (more != searched.end()) {
      plan.lowerBound = more->second.lowerBound;
      plan.orderLowerBound = more->second.orderLowerBound;
    }
    if (plan.cost > plan.lowerBound * (1 + 1e-9))
      plan.status = Status::Feasible;
  };
  for (Result &result : results) {
    result.plan = restorePlan(graph, constrained, result.plan, holdsAll);
    int64_t bytes = result.plan.offsets.empty()
                        ? simulate(graph, result.plan.steps, true).peak
                        : result.plan.arena + result.outside;
    if (bytes <= result.budget)
      continue;
    result.budget = bytes;
    boundFor(result.plan, bytes);
  }
  llvm::sort(results, [](const Result &a, const Result &b) {
    return std::tie(a.budget, a.plan.cost) < std::tie(b.budget, b.plan.cost);
  });
  double least = std::numeric_limits<double>::infinity();
  llvm::erase_if(results, [&](const Result &result) {
    bool isWorse = result.plan.cost > least;
    least = std::min(least, result.plan.cost);
    return isWorse;
  });
  for (Result &result : results)
    result.plan.minimumBudget = results.front().budget;
}

/// Chooses plans by the clock. A plan for fewer bytes, in the windows that it
/// has there, is one for more.
static void timePoints(const Graph &graph, const Options &options,
                       MessageClock &clock, bool mayChoose,
                       ParetoCurve &curve) {
  if (!clock.mayHide()) {
    for (ParetoPoint &point : curve.points)
      point.time = clock.follow(point.result.plan, point.budget);
    return;
  }
  MessagePlanner planner(graph, clock);
  curve.baseCost = clock.follow(curve.points.back().result.plan, 0).seconds();
  const ParetoPoint *faster = nullptr;
  for (ParetoPoint &point : curve.points) {
    Options request = options;
    request.budget = point.budget;
    if (faster)
      request.hint = &faster->result.plan;
    if (mayChoose) {
      TimedPlan timed = planner.improve(std::move(point.result), request);
      point.result = std::move(timed.result);
      point.time = timed.time;
    } else {
      point.time = clock.follow(point.result.plan, point.budget);
    }
    if (faster && faster->time->seconds() <= point.time->seconds()) {
      Result own = std::move(point.result);
      point.result = faster->result;
      takeProofs(point.result, own);
      point.time = faster->time;
    }
    faster = &point;
    point.cost = point.time->seconds();
    point.orderLowerBound = point.lowerBound =
        std::min(planner.bound(point.budget), point.cost);
    point.status = point.cost > point.lowerBound * (1 + 1e-9)
                       ? Status::Feasible
                       : point.result.plan.status;
  }
}

ParetoCurve planner::paretoCurve(const Graph &graph, const Options &options,
                                 int points, const PolicyGraph *constrained,
                                 MessageClock *clock) {
  ParetoCurve curve;
  std::vector<Result> results =
      BudgetPlanner(constrained ? constrained->graph : graph)
          .pareto(options, points);
  if (results.empty() || !results.front().hasPlan()) {
    if (!results.empty())
      curve.error = std::move(results.front());
    return curve;
  }
  if (constrained)
    restorePoints(graph, *constrained, options.arenaHoldsAll, results);
  std::vector<NodeId> program(graph.nodes.size());
  std::iota(program.begin(), program.end(), 0);
  curve.programPeak = simulate(graph, program, true).peak;
  curve.baseCost = baseCost(graph);
  curve.scope = results.front().plan.scope;
  for (Result &result : results) {
    curve.provenMinimum =
        std::max(curve.provenMinimum, result.plan.provenMinimum);
    ParetoPoint point;
    point.budget = result.budget;
    point.result = std::move(result);
    const Plan &plan = point.result.plan;
    point.cost = plan.cost;
    point.lowerBound = plan.lowerBound;
    point.orderLowerBound = plan.orderLowerBound;
    point.status = plan.status;
    curve.points.push_back(std::move(point));
  }
  if (clock)
    timePoints(graph, options, *clock, !constrained, curve);
  return curve;
}

void planner::printCurve(llvm::raw_ostream &os, const Graph &graph,
                         const ParetoCurve &curve) {
  TextTable table;
  table.addColumn("budget", TextTable::Right);
  table.addColumn("ratio", TextTable::Right);
  table.addColumn("more cost", TextTable::Right);
  table.addColumn("proven, program order", TextTable::Right);
  table.addColumn("proven, any order", TextTable::Right);
  table.addColumn("recomputed", TextTable::Right);
  table.addColumn("status");
  double base = curve.baseCost > 0 ? curve.baseCost : 1;
  auto percent = [&](double cost) {
    return formatPercent(std::max(0.0, cost / base - 1), 3);
  };
  for (const ParetoPoint &point : curve.points) {
    const Plan &plan = point.result.plan;
    table.addRow(
        {groupDigits(point.budget),
         formatPercent(double(point.budget) /
                       double(std::max<int64_t>(1, curve.programPeak))),
         percent(point.cost), percent(point.orderLowerBound),
         percent(point.lowerBound),
         groupDigits(int64_t(plan.steps.size() - graph.nodes.size())),
         statusName(point.status)});
  }
  table.print(os);
  os << "proven minimum  " << formatBytesExact(curve.provenMinimum);
  if (std::string words = curve.scope.words(); !words.empty())
    os << " (no plan" << words << " needs less)";
  os << "\n";
}

std::string planner::printPareto(const Graph &graph, const ParetoCurve &curve) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  json::OStream out(stream);
  out.object([&] {
    out.attribute("format", "ckopt-pareto/1");
    out.attribute("graph", jsonString(graph.name));
    if (!graph.costModel.empty())
      out.attribute("cost_model", jsonString(graph.costModel));
    out.attribute("base_cost", curve.baseCost);
    out.attribute("program_order_peak", curve.programPeak);
    out.attribute("proven_minimum", curve.provenMinimum);
    if (*boundsNote())
      out.attribute("bounds_note", boundsNote());
    writeScope(out, curve.scope);
    if (!curve.points.empty())
      out.attribute("minimum_budget", curve.points.front().budget);
    out.attributeArray("points", [&] {
      for (const ParetoPoint &point : curve.points)
        out.object([&] {
          const Plan &plan = point.result.plan;
          out.attribute("budget", point.budget);
          out.attribute("ratio", curve.programPeak > 0
                                     ? double(point.budget) / curve.programPeak
                                     : 1.0);
          out.attribute("cost", point.cost);
          if (point.time) {
            out.attribute("kernel_cost", point.time->kernels);
            out.attribute("communication_cost", point.time->messages);
            out.attribute("exposed_cost", point.time->exposed);
          }
          out.attribute("overhead", curve.baseCost > 0
                                        ? point.cost / curve.baseCost - 1
                                        : 0.0);
          out.attribute("peak", plan.peak);
          if (!plan.offsets.empty())
            out.attribute("arena", plan.arena);
          out.attribute("lower_bound", point.lowerBound);
          if (point.orderLowerBound > 0)
            out.attribute("order_lower_bound", point.orderLowerBound);
          out.attribute("recomputed",
                        int64_t(plan.steps.size() - graph.nodes.size()));
          out.attribute("status", statusName(point.status));
          out.attribute("strategy", point.result.strategy);
          out.attributeBegin("plan");
          out.rawValue(printPlan(graph, point.result, point.budget));
          out.attributeEnd();
        });
    });
  });
  stream << '\n';
  return text;
}
