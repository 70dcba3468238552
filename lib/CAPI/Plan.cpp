//===- Plan.cpp - plans of models and graphs, in C ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Handles.h"

#include "ckopt/Compiler/Reports.h"
#include "ckopt/Planner/GraphJson.h"
#include "ckopt/Planner/Report.h"
#include "ckopt/Planner/Request.h"
#include "ckopt/Planner/SearchOptions.h"
#include "ckopt/Remat/Remat.h"
#include "ckopt/Remat/StoredPlan.h"
#include "ckopt/Support/Report.h"
#include "ckopt/Train/Step.h"
#include "llvm/Support/raw_ostream.h"

using namespace ckopt;
using namespace ckopt::capi;

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

static std::vector<int64_t> stepsInFile(const planner::Graph &graph,
                                        const planner::Plan &plan) {
  std::vector<int64_t> result;
  for (planner::NodeId node : plan.steps)
    result.push_back(graph.nodeFileId(node));
  return result;
}

static int32_t restrictionBits(const planner::Scope &scope) {
  int32_t bits = 0;
  for (int r = 0; r < planner::Scope::numRestrictions; ++r)
    if (scope.has(planner::Restriction(r)))
      bits |= 1 << r;
  return bits;
}
static_assert(CKOPT_PLAN_COUNTED_BYTES ==
              1 << int(planner::Restriction::CountedBytes));

static ckopt_plan_figures stepFigures(const PlanSummary &summary) {
  const RematFigures &plan = summary.figures;
  ckopt_plan_figures figures = {};
  figures.peak_bytes = plan.arena;
  figures.load_bytes = plan.load;
  figures.budget_bytes = plan.budget;
  figures.full_bytes = plan.fullArena;
  figures.bound_bytes = plan.memoryBound;
  figures.parameter_bytes = summary.parameterBytes;
  figures.optimizer_bytes = summary.optimizerBytes;
  figures.state_bytes = summary.stateBytes;
  figures.data_bytes = summary.dataBytes;
  figures.steps = summary.calls;
  figures.recomputed = plan.recomputed;
  figures.cost = plan.seconds;
  figures.full_cost = plan.baseSeconds;
  figures.bound_cost = plan.lowerBound;
  figures.seconds = summary.planSeconds;
  figures.optimal = plan.status == planner::Status::Optimal;
  figures.restricted_to = restrictionBits(plan.scope);
  return figures;
}

std::unique_ptr<ckopt_plan> capi::describePlan(const Compilation &compilation) {
  auto plan = std::make_unique<ckopt_plan>();
  plan->figures = stepFigures(compilation.summary());
  llvm::raw_string_ostream table(plan->texts[CKOPT_PLAN_TABLE]);
  printPlan(compilation, table);
  plan->texts[CKOPT_PLAN_REPORT] = stepReport(compilation);
  const RematResult &planned = compilation.planned();
  plan->texts[CKOPT_PLAN_VALUES] = rematReport(planned.plans);
  if (const RematPlan *main = planned.mainPlan()) {
    plan->texts[CKOPT_PLAN_JSON] = printStoredPlan(*main);
    plan->texts[CKOPT_PLAN_GRAPH] = planner::printGraph(main->problem.graph);
    plan->steps = stepsInFile(main->problem.graph, main->result.plan);
  }
  Timeline timeline = memoryTimeline(compilation);
  plan->texts[CKOPT_PLAN_TIMELINE_SVG] = timelineSvg(timeline);
  plan->texts[CKOPT_PLAN_TIMELINE_TRACE] = memoryTrace(timeline);
  return plan;
}

ckopt_status ckopt_plan_model(const ckopt_model *model,
                              const ckopt_options *options, ckopt_plan **plan) {
  return guarded([&]() -> llvm::Error {
    if (!plan)
      return misuse("the result is NULL");
    *plan = nullptr;
    auto request = readRequest(model, options);
    if (!request)
      return request.takeError();
    Compilation compilation(std::move(request->settings.compile));
    if (llvm::Error error = ckopt::plan(compilation, request->settings.data))
      return request->messages->explain(std::move(error));
    *plan = describePlan(compilation).release();
    return llvm::Error::success();
  });
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

static llvm::Expected<planner::Graph> readGraph(const char *json,
                                                size_t bytes) {
  if (!json)
    return misuse("the graph is NULL");
  std::string error;
  auto graph = planner::parseGraph({json, bytes}, error);
  if (!graph)
    return inputError(error);
  return std::move(*graph);
}

static ckopt_plan_figures graphFigures(const planner::Result &result,
                                       const planner::Report &report) {
  const planner::Plan &plan = result.plan;
  ckopt_plan_figures figures = {};
  figures.peak_bytes = plan.arena ? plan.arena : plan.peak;
  figures.load_bytes = plan.peak;
  figures.budget_bytes = result.budget;
  figures.full_bytes = report.before.peak;
  figures.bound_bytes = plan.provenMinimum;
  figures.steps = int64_t(plan.steps.size());
  figures.recomputed = int64_t(plan.steps.size()) - report.before.steps;
  figures.cost = plan.cost;
  figures.full_cost = report.before.cost;
  figures.bound_cost = plan.lowerBound;
  figures.optimal = plan.status == planner::Status::Optimal;
  figures.restricted_to = restrictionBits(plan.scope);
  return figures;
}

/// The table of a graph's plan.
static std::string graphTable(const ckopt_plan_figures &figures,
                              const planner::Result &result) {
  TextTable table;
  table.addColumn("plan");
  table.addColumn("", TextTable::Right);
  auto row = [&](const std::string &name, const std::string &text) {
    table.addRow({name, text});
  };
  const planner::Scope &scope = result.plan.scope;
  row("steps, of them recomputed", std::to_string(figures.steps) + ", " +
                                       std::to_string(figures.recomputed));
  row("cost", formatNumber(figures.cost));
  row("cost without recomputation", formatNumber(figures.full_cost));
  if (figures.bound_cost > 0)
    row("no plan" + scope.ofCost().words() + " costs less than (proven)",
        formatNumber(figures.bound_cost));
  row("load (largest sum of live bytes)", groupDigits(figures.load_bytes));
  if (result.plan.arena)
    row("arena", groupDigits(figures.peak_bytes));
  row("load of the program order", groupDigits(figures.full_bytes));
  if (figures.budget_bytes)
    row("budget", groupDigits(figures.budget_bytes));
  if (figures.bound_bytes)
    row("no plan" + scope.words() + " can need less than (proven)",
        groupDigits(figures.bound_bytes));
  row("plan", std::string(planner::statusName(result.status())) + ", by " +
                  result.strategy);
  std::string text;
  llvm::raw_string_ostream stream(text);
  table.print(stream);
  return text;
}

static std::unique_ptr<ckopt_plan>
describeGraphPlan(const planner::Graph &graph, const planner::Result &result) {
  planner::ReportOptions options;
  options.budget = result.budget;
  auto plan = std::make_unique<ckopt_plan>();
  plan->figures =
      graphFigures(result, planner::makeReport(graph, result, options));
  plan->texts[CKOPT_PLAN_TABLE] = graphTable(plan->figures, result);
  plan->texts[CKOPT_PLAN_REPORT] = planner::printReport(graph, result, options);
  plan->texts[CKOPT_PLAN_VALUES] = plan->texts[CKOPT_PLAN_REPORT];
  plan->texts[CKOPT_PLAN_JSON] =
      planner::printPlan(graph, result, options.budget);
  plan->texts[CKOPT_PLAN_GRAPH] = planner::printGraph(graph);
  Timeline timeline = planner::planTimeline(graph, result, options);
  plan->texts[CKOPT_PLAN_TIMELINE_SVG] = timelineSvg(timeline);
  plan->texts[CKOPT_PLAN_TIMELINE_TRACE] = memoryTrace(timeline);
  plan->steps = stepsInFile(graph, result.plan);
  return plan;
}

ckopt_status ckopt_plan_graph(const char *json, size_t bytes,
                              const ckopt_options *options, ckopt_plan **plan) {
  return guarded([&]() -> llvm::Error {
    if (!plan)
      return misuse("the result is NULL");
    *plan = nullptr;
    if (options && !options->graph)
      return misuse("the options are those of a step; those of a graph are "
                    "made by ckopt_options_create_for_graph");
    auto request = planner::readRequest(options ? options->settings
                                                : std::vector<GivenSetting>());
    if (!request)
      return request.takeError();
    if (llvm::Error error = planner::checkSearch(request->search))
      return error;
    auto graph = readGraph(json, bytes);
    if (!graph)
      return graph.takeError();
    planner::Result result = planner::planRequest(*graph, *request);
    if (llvm::Error error = planner::planError(result))
      return error;
    *plan = describeGraphPlan(*graph, result).release();
    return llvm::Error::success();
  });
}

ckopt_status ckopt_check_plan(const char *graph, size_t graph_bytes,
                              const char *plan, size_t plan_bytes,
                              int64_t budget) {
  return guarded([&]() -> llvm::Error {
    auto parsed = readGraph(graph, graph_bytes);
    if (!parsed)
      return parsed.takeError();
    if (!plan || budget < 0)
      return misuse("the plan is NULL, or the budget negative");
    std::string wrong;
    auto file = planner::parsePlan({plan, plan_bytes}, *parsed, wrong);
    if (!file)
      return inputError(wrong);
    wrong = planner::verifyFile(*parsed, *file, budget);
    return wrong.empty() ? llvm::Error::success() : inputError(wrong);
  });
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

void ckopt_plan_destroy(ckopt_plan *plan) { delete plan; }

ckopt_status ckopt_plan_get_figures(const ckopt_plan *plan,
                                    ckopt_plan_figures *figures) {
  return guarded([&]() -> llvm::Error {
    if (!plan)
      return misuse("the plan is NULL");
    return writeSized(plan->figures, figures);
  });
}

ckopt_status ckopt_plan_get_text(const ckopt_plan *plan, int32_t kind,
                                 const char **text) {
  return guarded([&]() -> llvm::Error {
    if (!plan || !text)
      return misuse("the plan or the result are NULL");
    if (kind < 0 || size_t(kind) >= ckopt_plan::kNumTexts)
      return misuse("a plan has no text of kind " + llvm::Twine(kind));
    *text = plan->texts[kind].c_str();
    return llvm::Error::success();
  });
}

ckopt_status ckopt_plan_get_steps(const ckopt_plan *plan, const int64_t **nodes,
                                  size_t *count) {
  return guarded([&]() -> llvm::Error {
    if (!plan || !nodes || !count)
      return misuse("the plan or a result are NULL");
    *nodes = plan->steps.data();
    *count = plan->steps.size();
    return llvm::Error::success();
  });
}
