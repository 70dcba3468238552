//===- Pareto.cpp - time against memory -----------------------------------===//
//
// One planner answers all budgets, the smallest first: its archive makes a plan
// for less a plan for more. What is left of the limits is shared evenly among
// the questions left. Costs as much as its questions.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/Pareto.h"

#include "ckopt/Planner/GraphJson.h"
#include "ckopt/Planner/Simulator.h"
#include "ckopt/Planner/Verifier.h"
#include "ckopt/Support/Report.h"

#include <algorithm>
#include <chrono>
#include <numeric>

using namespace ckopt;
using namespace ckopt::planner;
namespace json = llvm::json;

namespace {

/// Shares a time limit and a work limit among questions.
class Shares {
public:
  Shares(const Options &options, int questions)
      : options(options), left(questions),
        start(std::chrono::steady_clock::now()) {}
  /// The options of the next question.
  Options next(int64_t budget) {
    Options result = options;
    result.budget = budget;
    if (options.timeLimitSeconds > 0) {
      std::chrono::duration<double> spent =
          std::chrono::steady_clock::now() - start;
      result.timeLimitSeconds =
          std::max(1e-3, options.timeLimitSeconds - spent.count()) / left;
    }
    // By count alone, so that no question depends on the clock.
    if (options.workLimit > 0)
      result.workLimit = std::max<int64_t>(1, options.workLimit / total);
    --left;
    return result;
  }

private:
  const Options &options;
  int left;
  const int total = left;
  std::chrono::steady_clock::time_point start;
};

std::vector<int64_t> budgets(int64_t low, int64_t high, int points) {
  std::vector<int64_t> result{low};
  for (int i = 1; i < points && high > low; ++i) {
    int64_t step = int64_t(double(high - low) * i / (points - 1));
    int64_t budget = i + 1 == points ? high : low + step;
    if (budget > result.back())
      result.push_back(budget);
  }
  return result;
}

/// A plan for less is a plan for more; the bounds of the larger budget stay.
void takeCheaper(const Graph &graph, const ParetoPoint &smaller,
                 ParetoPoint &larger) {
  const Plan &known = smaller.result.plan;
  Plan &plan = larger.result.plan;
  if (larger.result.hasPlan() && plan.cost <= known.cost)
    return;
  Plan taken = known;
  taken.lowerBound = std::min(plan.lowerBound, known.cost);
  taken.orderLowerBound = plan.orderLowerBound;
  taken.status = "feasible";
  if (!verify(graph, taken, larger.budget).empty())
    return;
  larger.result.status = Status::Feasible;
  larger.result.strategy = smaller.result.strategy;
  larger.result.aliveAtPeak = smaller.result.aliveAtPeak;
  larger.result.message.clear();
  plan = std::move(taken);
}

} // namespace

ParetoCurve planner::paretoCurve(const Graph &graph, const Options &options,
                                 int points) {
  ParetoCurve curve;
  BudgetPlanner planner(graph);
  Shares shares(options, std::max(points, 2));
  Result least = planner.minimize(shares.next(0));
  if (!least.hasPlan()) {
    curve.error = std::move(least);
    return curve;
  }
  std::vector<NodeId> program(graph.nodes.size());
  std::iota(program.begin(), program.end(), 0);
  curve.programPeak = simulate(graph, program, true).peak;
  curve.baseCost = baseCost(graph);
  curve.provenMinimum = least.plan.provenMinimum;
  int64_t low = std::max<int64_t>(1, least.plan.minimumBudget);
  for (int64_t budget : budgets(low, curve.programPeak, points)) {
    ParetoPoint point;
    point.budget = budget;
    point.result =
        budget == low ? std::move(least) : planner.solve(shares.next(budget));
    if (point.result.status == Status::Error) {
      curve.points.clear();
      curve.error = std::move(point.result);
      return curve;
    }
    if (!curve.points.empty())
      takeCheaper(graph, curve.points.back(), point);
    if (point.result.hasPlan())
      curve.points.push_back(std::move(point));
  }
  return curve;
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
          out.attribute("cost", plan.cost);
          out.attribute("overhead", curve.baseCost > 0
                                        ? plan.cost / curve.baseCost - 1
                                        : 0.0);
          out.attribute("peak", plan.peak);
          if (!plan.offsets.empty())
            out.attribute("arena", plan.arena);
          out.attribute("lower_bound", plan.lowerBound);
          if (plan.orderLowerBound > 0)
            out.attribute("order_lower_bound", plan.orderLowerBound);
          out.attribute("recomputed",
                        int64_t(plan.steps.size() - graph.nodes.size()));
          out.attribute("status", plan.status);
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

TradeoffCurve planner::tradeoffCurve(const Graph &graph,
                                     const ParetoCurve &curve) {
  TradeoffCurve result;
  result.title = graph.name.empty() ? "graph" : graph.name;
  result.subtitle =
      std::to_string(graph.nodes.size()) + " nodes, cost against budget" +
      (graph.costModel.empty() ? std::string() : ", costs: " + graph.costModel);
  result.provenMinimum = curve.provenMinimum;
  double base = curve.baseCost > 0 ? curve.baseCost : 1;
  for (const ParetoPoint &point : curve.points) {
    const Plan &plan = point.result.plan;
    result.points.push_back(
        {point.budget, plan.cost / base - 1, plan.lowerBound / base - 1,
         std::max(plan.lowerBound, plan.orderLowerBound) / base - 1});
  }
  return result;
}
