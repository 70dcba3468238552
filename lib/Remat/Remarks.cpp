//===- Remarks.cpp - what a plan does with each value ---------------------===//
//
// Problem: tell people which values a plan keeps and which it computes again,
// and why, where they look for it: beside the op.
// Method: the planner's report has the facts; each value that is kept for a
// later reader is an analysis remark, each that is made again a passed remark.
// Steps count from 0 in the planned order. Complexity: that of the report.
//
//===----------------------------------------------------------------------===//
#include "mlir/IR/Remarks.h"
#include "Reporting.h"
#include "ckopt/Support/Report.h"

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
  const PolicyOutcome &policy = plan.policy;
  if (policy.whyKept.size() != graph.nodes.size())
    return report;
  std::vector<size_t> maker(graph.values.size(), graph.nodes.size());
  for (auto [n, node] : llvm::enumerate(graph.nodes))
    for (planner::ValueId value : node.outputs)
      maker[size_t(value)] = n;
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

/// One remark for the diagnostic engine.
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

/// The same for the context's remark engine; nothing where it has none.
static void emitOptimizationRemark(Location loc, StringRef function,
                                   const planner::ValueReport &value) {
  // Functions may be planned in parallel; the engine is the context's.
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  bool again = value.fate == planner::Fate::Again;
  auto opts = remark::RemarkOpts::name(again ? "Recomputed" : "Kept")
                  .category("remat")
                  .function(function);
  remark::detail::InFlightRemark out =
      again ? remark::passed(loc, opts) : remark::analysis(loc, opts);
  if (!out)
    return;
  out << remark::metric("Value", value.name)
      << remark::metric("Bytes", value.bytes)
      << remark::metric("FirstStep", value.firstStep)
      << remark::metric("LastStep", value.lastStep)
      << remark::metric("Made", value.made)
      << remark::metric("Seconds", value.cost)
      << remark::reason("{0}", value.reason);
}

void ckopt::emitPlanRemarks(func::FuncOp function, const RematPlan &plan,
                            bool asDiagnostics) {
  bool asRemarks = function.getContext()->getRemarkEngine() != nullptr;
  if (!asDiagnostics && !asRemarks)
    return;
  planner::Report report = planReport(plan);
  std::vector<const planner::ValueReport *> byValue(
      plan.problem.graph.values.size());
  for (const planner::ValueReport &value : report.values)
    byValue[size_t(value.value)] = &value;
  // In the order of the program, so that the remarks are the same every time.
  for (Operation *op : plan.problem.ops)
    for (Value result : op->getResults()) {
      auto id = plan.problem.storage.find(result);
      if (id == plan.problem.storage.end())
        continue;
      // A new state has its argument's storage, which is neither.
      const planner::ValueReport *value = byValue[size_t(id->second)];
      if (!value || (value->fate != planner::Fate::Again &&
                     value->fate != planner::Fate::Kept))
        continue;
      if (asDiagnostics)
        emitDiagnostic(result.getLoc(), *value);
      if (asRemarks)
        emitOptimizationRemark(result.getLoc(), function.getSymName(), *value);
    }
}
