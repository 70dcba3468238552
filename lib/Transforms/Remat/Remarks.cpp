//===- Remarks.cpp - what a plan does with each value ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: tell users, at the location of each op, which values a plan keeps or
// recomputes, and why. Method: the planner's report has the facts. Each value
// that is kept for a later reader is an analysis remark, each that is computed
// again a passed remark. Steps count from 0 in the planned order. Complexity:
// that of the report.
//
//===----------------------------------------------------------------------===//
#include "Reporting.h"
#include "ckopt/Dialect/Ckopt/Utils/SettingDiagnostic.h"
#include "ckopt/Interfaces/Compat.h"
#include "ckopt/Remat/Figures.h"
#include "ckopt/Support/Report.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

#include <limits>
#include <mutex>

using namespace mlir;
using namespace ckopt;

planner::ReportOptions ckopt::reportOptions(const RematPlan &plan) {
  planner::ReportOptions options;
  int64_t reserved = plan.fixedBytes - plan.problem.argumentBytes;
  if (plan.budgetBytes != std::numeric_limits<int64_t>::max())
    options.budget = plan.budgetBytes - reserved;
  options.secondsPerCost = 1;
  return options;
}

planner::Report ckopt::planReport(const RematPlan &plan) {
  const planner::Graph &graph = plan.problem.graph;
  planner::Report report =
      planner::makeReport(graph, plan.result, reportOptions(plan));
  std::vector<size_t> maker(graph.values.size(), graph.nodes.size());
  for (auto [n, node] : llvm::enumerate(graph.nodes))
    for (planner::ValueId value : node.outputs)
      maker[size_t(value)] = n;
  const std::vector<std::string> &once = plan.problem.once;
  for (planner::ValueReport &value : report.values)
    if (size_t node = maker[size_t(value.value)];
        value.fate == planner::Fate::Kept && node < once.size() &&
        !once[node].empty())
      value.reason = "its node runs once: " + once[node];
  const PolicyOutcome &policy = plan.policy;
  if (policy.whyKept.size() != graph.nodes.size())
    return report;
  auto explain = [&](std::string &reason, size_t node, bool again) {
    if (node >= graph.nodes.size())
      return;
    const std::string &why = (again ? policy.whyAgain : policy.whyKept)[node];
    if (!why.empty())
      reason = why;
  };
  for (planner::ValueReport &value : report.values)
    if (value.fate == planner::Fate::Again || value.fate == planner::Fate::Kept)
      explain(value.reason, maker[size_t(value.value)],
              value.fate == planner::Fate::Again);
  for (planner::NodeReport &node : report.nodes)
    if (node.runs > 1)
      explain(node.reason, size_t(node.node), /*again=*/true);
  return report;
}

/// Emits a remark through the diagnostic engine.
static void emitDiagnostic(Location loc, const planner::ValueReport &value) {
  bool again = value.fate == planner::Fate::Again;
  InFlightDiagnostic remark = emitRemark(loc);
  remark << (again ? "recomputed: " : "kept: ") << value.name << ", "
         << formatBytes(value.bytes) << " from step " << value.firstStep
         << " to step " << value.lastStep;
  if (again)
    remark << ", made " << value.made << " times for "
           << formatSeconds(value.cost) << " more";
  else
    remark << ", made once for " << formatSeconds(value.cost);
  remark << ": " << value.reason;
}

/// Functions may be planned in parallel, but they share the context's remark
/// engine.
static std::mutex engineMutex;

/// Emits the figures of a plan as a remark; other passes have statistics.
static void emitSummary(FunctionOpInterface function, const RematPlan &plan) {
  std::lock_guard<std::mutex> lock(engineMutex);
  RematFigures figures = getFigures(plan);
  compat::Remark out(function.getLoc(), "Plan", function.getName(),
                     /*passed=*/false);
  out.metric("Status", planner::statusName(figures.status))
      .metric("RestrictedTo", llvm::join(figures.scope.names(), ", "))
      .metric("Nodes", int64_t(plan.problem.ops.size()))
      .metric("Steps", figures.steps)
      .metric("Recomputed", figures.recomputed)
      .metric("Arena", figures.arena)
      .metric("FullArena", figures.fullArena)
      .metric("Seconds", figures.seconds)
      .metric("BaseSeconds", figures.baseSeconds)
      .metric(
          "SearchGainsAtMost",
          figures.lowerBound > 0
              ? formatPercent(
                    std::max(0.0, figures.seconds / figures.lowerBound - 1), 2)
              : "unknown")
      .metric("Work", plan.result.work)
      .metric("Uncounted", figures.uncounted);
  if (!figures.boundsNote.empty())
    out.metric("BoundsNote", figures.boundsNote);
}

/// Emits a remark through the context's remark engine, if it has one.
static void emitOptimizationRemark(Location loc, StringRef function,
                                   const planner::ValueReport &value) {
  std::lock_guard<std::mutex> lock(engineMutex);
  bool again = value.fate == planner::Fate::Again;
  compat::Remark out(loc, again ? "Recomputed" : "Kept", function, again);
  out.metric("Value", value.name)
      .metric("Bytes", value.bytes)
      .metric("FirstStep", value.firstStep)
      .metric("LastStep", value.lastStep)
      .metric("Made", value.made)
      .metric("Seconds", value.cost)
      .reason(value.reason);
}

void ckopt::emitPlanRemarks(FunctionOpInterface function, const RematPlan &plan,
                            bool asDiagnostics) {
  bool asRemarks = compat::collectsRemarks(function.getContext());
  if (!asDiagnostics && !asRemarks)
    return;
  if (asRemarks)
    emitSummary(function, plan);
  planner::Report report = planReport(plan);
  std::vector<const planner::ValueReport *> byValue(
      plan.problem.graph.values.size());
  for (const planner::ValueReport &value : report.values)
    byValue[size_t(value.value)] = &value;
  // Emit remarks in program order, so that they are the same in every run.
  for (Operation *op : plan.problem.ops)
    for (Value result : op->getResults()) {
      auto id = plan.problem.storage.find(result);
      if (id == plan.problem.storage.end())
        continue;
      // A new state lies in its argument's storage, so it is neither kept nor
      // recomputed.
      const planner::ValueReport *value = byValue[size_t(id->second)];
      if (!value || (value->fate != planner::Fate::Again &&
                     value->fate != planner::Fate::Kept))
        continue;
      if (asDiagnostics)
        emitDiagnostic(result.getLoc(), *value);
      if (asRemarks)
        emitOptimizationRemark(result.getLoc(), function.getName(), *value);
    }
}

//===----------------------------------------------------------------------===//
// Nodes that may not run again, and uncounted memory
//===----------------------------------------------------------------------===//

/// Counts the nodes for each reason, in the order of the function.
static llvm::MapVector<StringRef, int64_t>
countReasons(const PlanningProblem &problem) {
  llvm::MapVector<StringRef, int64_t> reasons;
  for (const std::string &why : problem.once)
    if (!why.empty())
      ++reasons[why];
  return reasons;
}

static int64_t mayRunAgain(const PlanningProblem &problem) {
  return llvm::count_if(problem.once,
                        [](const std::string &why) { return why.empty(); });
}

void ckopt::emitOnceRemark(FunctionOpInterface function, const RematPlan &plan,
                           bool always) {
  const PlanningProblem &problem = plan.problem;
  int64_t again = mayRunAgain(problem);
  if (problem.once.empty() || (again > 0 && !always))
    return;
  InFlightDiagnostic remark = emitRemark(function.getLoc());
  remark << "@" << function.getName() << ": " << again << " of "
         << problem.once.size() << " ops may be recomputed";
  auto reasons = countReasons(problem);
  if (reasons.empty())
    return;
  remark << (again ? "; the others run once:" : ", because all run once:");
  StringRef separator = " ";
  for (auto [why, count] : reasons) {
    remark << separator << count << " with " << why;
    separator = ", ";
  }
}

void ckopt::emitUncountedRemarks(FunctionOpInterface function,
                                 ArrayRef<Uncounted> uncounted) {
  for (const Uncounted &entry : uncounted) {
    InFlightDiagnostic remark = emitRemark(entry.where);
    remark << "the plan of @" << function.getName() << " does not count "
           << entry.what;
    if (entry.count > 1)
      remark << " (" << entry.count << " times in all)";
  }
}

LogicalResult ckopt::checkCounted(FunctionOpInterface function,
                                  ArrayRef<Uncounted> uncounted) {
  LogicalResult status = success();
  for (const Uncounted &entry : uncounted)
    if (entry.own)
      status = emitError(entry.where)
               << "@" << function.getName()
               << " cannot be held to a budget: its plan would not count "
               << entry.what << "; say how much it is, or plan the rest with "
               << PassOption{"allow-uncounted"};
  return status;
}

void ckopt::writeOnce(llvm::json::OStream &json,
                      const PlanningProblem &problem) {
  json.attribute("may_be_recomputed", mayRunAgain(problem));
  json.attributeArray("run_once", [&] {
    for (auto [why, count] : countReasons(problem))
      json.object([&, why = why, count = count] {
        json.attribute("reason", jsonString(why.str()));
        json.attribute("ops", count);
      });
  });
  json.attributeArray("not_counted", [&] {
    for (const Uncounted &entry : problem.uncounted)
      json.object([&] {
        json.attribute("what", jsonString(entry.what));
        json.attribute("times", entry.count);
      });
  });
}
