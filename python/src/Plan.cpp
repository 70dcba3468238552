//===- Plan.cpp - the planner on graphs of other compilers ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Bindings.h"

#include "ckopt/Planner/Pareto.h"
#include "ckopt/Planner/Report.h"
#include "ckopt/Planner/Request.h"
#include "ckopt/Planner/SearchOptions.h"

using namespace ckopt;
using namespace ckopt::python;
using namespace ckopt::planner;

static Graph readGraph(const std::string &text) {
  std::string error;
  std::optional<Graph> graph = parseGraph(text, error);
  if (!graph)
    throw Failure{ExitInputError, error};
  return std::move(*graph);
}

static Request readChecked(const std::vector<GivenSetting> &settings) {
  Request request = take(readRequest(settings));
  check(checkSearch(request.search));
  return request;
}

/// Plans a ckopt-graph/1 text; returns ckopt-plan/1, ckopt-report/1 and the
/// memory timeline as SVG.
static std::tuple<std::string, std::string, std::string>
planGraph(const std::string &text, const std::vector<GivenSetting> &settings) {
  nb::gil_scoped_release release;
  Graph graph = readGraph(text);
  Result result = planRequest(graph, readChecked(settings));
  check(planError(result));
  ReportOptions report;
  report.budget = result.budget;
  return {printPlan(graph, result, report.budget),
          printReport(graph, result, report),
          timelineSvg(planTimeline(graph, result, report))};
}

/// The curve of cost against budget: ckopt-pareto/1.
static std::string curveOf(const std::string &text, int points,
                           const std::vector<GivenSetting> &settings) {
  nb::gil_scoped_release release;
  Graph graph = readGraph(text);
  Request request = readChecked(settings);
  if (request.budget.kind != MemoryBudget::Kind::Unlimited)
    check(
        usageError("a curve has all budgets: leave out " + Setting("budget")));
  ParetoCurve curve = paretoCurve(graph, request.search, points);
  if (curve.points.empty())
    check(planError(curve.error));
  return printPareto(graph, curve);
}

/// Replays a plan; the text says what is wrong, and is empty if nothing is.
static std::string verifyPlan(const std::string &graphText,
                              const std::string &planText,
                              const std::string &budget) {
  nb::gil_scoped_release release;
  Graph graph = readGraph(graphText);
  std::string error;
  auto file = parsePlan(planText, graph, error);
  if (!file)
    throw Failure{ExitInputError, error};
  int64_t bytes = budget.empty() ? 0 : take(parseByteSize(budget));
  return verifyFile(graph, *file, bytes);
}

void python::bindPlan(nb::module_ &module) {
  module.def("plan_graph", planGraph, nb::arg("graph"), nb::arg("settings"));
  module.def("curve", curveOf, nb::arg("graph"), nb::arg("points"),
             nb::arg("settings"));
  module.def("verify_plan", verifyPlan, nb::arg("graph"), nb::arg("plan"),
             nb::arg("budget"));
}
