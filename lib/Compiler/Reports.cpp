//===- Reports.cpp - what a plan says, as text and JSON -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Compiler/Reports.h"
#include "ckopt/Base/PrintableText.h"
#include "ckopt/Support/Report.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <map>

using namespace ckopt;

/// Describes how much faster any plan can be, which is what more search could
/// gain at most.
static std::string gapText(const RematFigures &plan) {
  if (plan.lowerBound <= 0)
    return "unknown";
  return formatPercent(std::max(0.0, plan.seconds / plan.lowerBound - 1), 2);
}

/// Names the plans that bounds on time speak of, where these are not all.
static std::string ofPlans(const RematFigures &plan) {
  std::string words = plan.scope.ofCost().words();
  return words.empty() ? "" : " of a plan" + words;
}

/// Returns the share of each class in the arithmetic of products, by name.
static std::map<std::string, double> productShares(const PlanSummary &summary) {
  std::map<std::string, double> shares;
  double all = 0;
  for (const PlanSummary::ProductKernel &product : summary.products) {
    shares[product.precision] += product.flops;
    all += product.flops;
  }
  for (auto &[precision, share] : shares)
    share /= std::max(all, 1.0);
  return shares;
}

void ckopt::printPlan(const Compilation &compilation, llvm::raw_ostream &os) {
  const PlanSummary &summary = compilation.summary();
  const RematFigures &plan = summary.figures;
  const CompileOptions &options = compilation.options();
  if (int64_t ranks = options.step.ranks; ranks > 1 && options.import.batch)
    os << ranks << " ranks, each with " << *options.import.batch
       << " of a batch's " << *options.import.batch * ranks
       << " samples; the figures are those of one rank\n\n";
  TextTable memory;
  memory.addColumn("memory");
  memory.addColumn("bytes", TextTable::Right);
  memory.addColumn("", TextTable::Right);
  auto row = [&](const std::string &name, int64_t bytes) {
    memory.addRow({name, groupDigits(bytes), formatBytes(bytes)});
  };
  row("parameters", summary.parameterBytes);
  row("optimizer state", summary.optimizerBytes);
  row("running statistics, constants", summary.stateBytes);
  row("data and scalars", summary.dataBytes);
  row("gradients, activations, workspace (arena less the above)",
      plan.arena - summary.parameterBytes - summary.optimizerBytes -
          summary.stateBytes - summary.dataBytes);
  memory.addRule();
  if (plan.load)
    row("load (largest sum of live bytes)", plan.load);
  row("planned peak (arena)", plan.arena);
  if (plan.budget)
    row("budget", plan.budget);
  if (plan.memoryBound)
    row("no plan" + plan.scope.words() + " can need less than (proven)",
        plan.memoryBound);
  memory.print(os);
  os << "\n";
  TextTable time;
  time.addColumn("time");
  time.addColumn("", TextTable::Right);
  time.addRow(
      {"kernel calls, of them recomputed",
       std::to_string(summary.calls) + ", " + std::to_string(plan.recomputed)});
  time.addRow({"distinct kernels", std::to_string(summary.kernels)});
  if (summary.lowProducts)
    time.addRow({"products computed from " + summary.lowType,
                 formatPercent(*summary.lowProducts, 1)});
  for (const auto &[precision, share] : productShares(summary))
    time.addRow({"products by " + precision, formatPercent(share, 1)});
  time.addRow({"predicted step", formatSeconds(plan.seconds)});
  if (plan.costModel != "analytic")
    time.addRow({"costs", plan.costModel});
  if (plan.communication > 0)
    time.addRow({"communication that no kernel hides",
                 formatSeconds(plan.exposed) + " of " +
                     formatSeconds(plan.communication)});
  if (plan.baseSeconds > 0)
    time.addRow(
        {"predicted overhead of recomputation",
         formatPercent(std::max(0.0, plan.seconds / plan.baseSeconds - 1), 2)});
  time.addRow({"more search" + ofPlans(plan) + " could gain at most (proven)",
               gapText(plan)});
  time.addRow({"plan", planner::statusName(plan.status)});
  if (plan.regions)
    time.addRow({"checkpointed regions", std::to_string(plan.regions)});
  if (plan.autoArena) {
    auto more = [](double part, double whole) {
      return (part < 0 ? "-" : "+") +
             formatPercent(whole > 0 ? std::abs(part) / whole : 0, 2);
    };
    int64_t bytes = plan.arena - plan.autoArena;
    time.addRow({"the policy against auto, time",
                 more(plan.seconds - plan.autoSeconds, plan.autoSeconds)});
    time.addRow({"the policy against auto, bytes",
                 (bytes > 0 ? "+" : "") + groupDigits(bytes)});
    if (plan.autoSecondsInArena > 0)
      time.addRow({"the policy against auto in as many bytes, time",
                   more(plan.seconds - plan.autoSecondsInArena,
                        plan.autoSecondsInArena)});
  }
  time.addRow({"time to plan", formatSeconds(summary.planSeconds)});
  time.print(os);
  if (!compilation.trained().empty())
    os << "\n";
  for (const std::string &line : compilation.trained())
    os << printable(line) << "\n";
}

void ckopt::writePlanJson(llvm::json::OStream &json,
                          const PlanSummary &summary) {
  const RematFigures &plan = summary.figures;
  writeFigures(json, plan);
  json.attribute("parameter_bytes", summary.parameterBytes);
  json.attribute("optimizer_bytes", summary.optimizerBytes);
  json.attribute("state_bytes", summary.stateBytes);
  json.attribute("data_bytes", summary.dataBytes);
  if (plan.hasPlan()) {
    json.attribute("calls", summary.calls);
    json.attribute("kernels", summary.kernels);
    if (summary.lowProducts)
      json.attribute(summary.lowType + "_products",
                     jsonNumber(*summary.lowProducts));
    if (!summary.products.empty())
      json.attributeArray("products", [&] {
        for (const PlanSummary::ProductKernel &product : summary.products)
          json.object([&] {
            json.attribute("kernel", product.kernel);
            json.attribute("class", product.precision);
            json.attribute("calls", product.calls);
          });
      });
  }
  if (plan.policy)
    json.attributeObject("policy", [&] {
      json.attribute("regions", plan.regions);
      if (!plan.autoArena)
        return;
      json.attribute("auto_seconds", jsonNumber(plan.autoSeconds));
      json.attribute("auto_planned_peak_bytes", plan.autoArena);
      if (plan.autoSecondsInArena > 0)
        json.attribute("auto_seconds_in_planned_peak",
                       jsonNumber(plan.autoSecondsInArena));
    });
  json.attribute("plan_seconds", jsonNumber(summary.planSeconds));
}

Timeline ckopt::memoryTimeline(const Compilation &compilation) {
  const CompileOptions &options = compilation.given();
  Timeline timeline;
  timeline.title = options.title();
  timeline.subtitle = "budget: " + options.step.remat.budget.describe();
  if (!compilation.timelineBefore().steps.empty())
    timeline.panels.push_back(compilation.timelineBefore());
  if (compilation.summary().figures.hasPlan())
    timeline.panels.push_back(compilation.timeline("after: the planned step"));
  return timeline;
}

std::string ckopt::stepReport(const Compilation &compilation) {
  return jsonText([&](llvm::json::OStream &json) {
    json.object([&] {
      json.attribute("format", "ckopt-step-report/1");
      json.attribute("model", jsonString(compilation.given().title()));
      json.attributeObject("plan",
                           [&] { writePlanJson(json, compilation.summary()); });
    });
  });
}
