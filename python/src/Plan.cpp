//===- Plan.cpp - the planner on graphs of other compilers ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Bindings.h"

#include "ckopt/Planner/GraphJson.h"
#include "ckopt/Planner/Pareto.h"
#include "ckopt/Planner/Report.h"
#include "ckopt/Planner/SearchFlags.h"
#include "ckopt/Planner/Simulator.h"
#include "ckopt/Planner/Verifier.h"
#include "ckopt/Support/ByteSize.h"

#include <cmath>
#include <numeric>

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

static Options readSearch(const std::vector<Setting> &settings) {
  Options options;
  FlagTable table;
  addSearchFlags(table, options, /*planning=*/1);
  check(table.store(settings, /*groups=*/1));
  check(checkSearch(options));
  return options;
}

static int64_t programPeak(const Graph &graph) {
  std::vector<NodeId> program(graph.nodes.size());
  std::iota(program.begin(), program.end(), 0);
  return simulate(graph, program, true).peak;
}

/// Plans a ckopt-graph/1 text; returns ckopt-plan/1, ckopt-report/1 and the
/// memory timeline as SVG.
static std::tuple<std::string, std::string, std::string>
planGraph(const std::string &text, const std::string &budget, double ratio,
          bool pack, const std::vector<Setting> &settings) {
  nb::gil_scoped_release release;
  Graph graph = readGraph(text);
  Options options = readSearch(settings);
  options.pack = pack;
  bool minimum = budget == "min";
  if (ratio > 0)
    options.budget = std::max<int64_t>(
        1, int64_t(std::ceil(ratio * double(programPeak(graph)))));
  else if (!budget.empty() && !minimum)
    options.budget = take(parseByteSize(budget));
  Result result = minimum ? minimize(graph, options) : solve(graph, options);
  if (result.status == Status::Error)
    throw Failure{result.internalError ? ExitInternal : ExitInputError,
                  result.message};
  if (!result.hasPlan())
    throw Failure{result.status == Status::Infeasible ? ExitInfeasible
                                                      : ExitNoPlanFound,
                  result.message};
  ReportOptions report;
  report.budget = minimum ? result.plan.minimumBudget : options.budget;
  return {printPlan(graph, result, report.budget),
          printReport(graph, result, report),
          timelineSvg(planTimeline(graph, result, report))};
}

/// The curve of cost against budget: ckopt-pareto/1, and its picture.
static std::pair<std::string, std::string>
curveOf(const std::string &text, int points, bool pack,
        const std::vector<Setting> &settings) {
  nb::gil_scoped_release release;
  Graph graph = readGraph(text);
  Options options = readSearch(settings);
  options.pack = pack;
  ParetoCurve curve = paretoCurve(graph, options, points);
  if (curve.points.empty())
    throw Failure{curve.error.internalError             ? ExitInternal
                  : curve.error.status == Status::Error ? ExitInputError
                                                        : ExitNoPlanFound,
                  curve.error.message};
  return {printPareto(graph, curve), curveSvg(tradeoffCurve(graph, curve))};
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
  int64_t bytes = budget.empty() ? file->budget : take(parseByteSize(budget));
  if (!file->statesPeak)
    file->plan.peak = planPeak(graph, file->plan, /*aligned=*/false);
  return verify(graph, file->plan, bytes);
}

void python::bindPlan(nb::module_ &module) {
  module.def("plan_graph", planGraph, nb::arg("graph"), nb::arg("budget"),
             nb::arg("ratio"), nb::arg("pack"), nb::arg("settings"));
  module.def("curve", curveOf, nb::arg("graph"), nb::arg("points"),
             nb::arg("pack"), nb::arg("settings"));
  module.def("verify_plan", verifyPlan, nb::arg("graph"), nb::arg("plan"),
             nb::arg("budget"));
}
