//===- Reports.cpp - what a plan says, as text, JSON and pictures ---------===//
#include "Commands.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Report.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace ckopt;

/// "how far above the fastest possible plan": at most this share.
static std::string gapText(const PlanSummary &plan) {
  if (plan.lowerBound <= 0)
    return "unknown";
  return formatPercent(plan.cost / plan.lowerBound - 1, 2);
}

void ckopt::printPlan(const Compilation &compilation, llvm::raw_ostream &os) {
  const PlanSummary &plan = compilation.summary();
  TextTable memory;
  memory.addColumn("memory");
  memory.addColumn("bytes", TextTable::Right);
  memory.addColumn("", TextTable::Right);
  auto row = [&](const char *name, int64_t bytes) {
    memory.addRow({name, groupDigits(bytes), formatBytes(bytes)});
  };
  row("parameters", plan.parameterBytes);
  row("optimizer state", plan.optimizerBytes);
  row("running statistics, constants", plan.stateBytes);
  row("data and scalars", plan.dataBytes);
  row("gradients, activations, workspace (arena less the above)",
      plan.plannedPeak - plan.parameterBytes - plan.optimizerBytes -
          plan.stateBytes - plan.dataBytes);
  memory.addRule();
  if (plan.load)
    row("load (largest sum of live bytes)", plan.load);
  row("planned peak (arena)", plan.plannedPeak);
  if (plan.budget)
    row("budget", plan.budget);
  if (plan.memoryBound)
    row("no plan can need less than (proven)", plan.memoryBound);
  memory.print(os);
  os << "\n";
  TextTable time;
  time.addColumn("time");
  time.addColumn("", TextTable::Right);
  time.addRow(
      {"kernel calls, of them recomputed",
       std::to_string(plan.calls) + ", " + std::to_string(plan.recomputed)});
  time.addRow({"distinct kernels", std::to_string(plan.kernels)});
  time.addRow({"predicted step", formatSeconds(plan.cost)});
  if (plan.unconstrainedCost > 0)
    time.addRow({"predicted overhead of recomputation",
                 formatPercent(plan.cost / plan.unconstrainedCost - 1, 2)});
  time.addRow({plan.autoArena
                   ? "at most above the fastest plan that follows the policy "
                     "(proven)"
                   : "at most above the fastest possible plan (proven)",
               gapText(plan)});
  if (!plan.status.empty())
    time.addRow({"plan", plan.status});
  if (plan.autoArena) {
    auto more = [](double part, double whole) {
      return (part < 0 ? "-" : "+") +
             formatPercent(whole > 0 ? std::abs(part) / whole : 0, 2);
    };
    int64_t bytes = plan.plannedPeak - plan.autoArena;
    if (plan.regions)
      time.addRow({"checkpointed regions", std::to_string(plan.regions)});
    time.addRow({"the policy against auto, time",
                 more(plan.cost - plan.autoCost, plan.autoCost)});
    time.addRow({"the policy against auto, bytes",
                 (bytes > 0 ? "+" : "") + groupDigits(bytes)});
    if (plan.autoCostInArena > 0)
      time.addRow(
          {"the policy against auto in as many bytes, time",
           more(plan.cost - plan.autoCostInArena, plan.autoCostInArena)});
  }
  time.addRow({"time to plan", formatSeconds(plan.planSeconds)});
  time.print(os);
}

static void writePlanJson(llvm::json::OStream &json, const PlanSummary &plan) {
  json.attribute("planned_peak", plan.plannedPeak);
  json.attribute("load", plan.load);
  json.attribute("budget", plan.budget);
  json.attribute("memory_bound", plan.memoryBound);
  json.attribute("parameter_bytes", plan.parameterBytes);
  json.attribute("optimizer_bytes", plan.optimizerBytes);
  json.attribute("state_bytes", plan.stateBytes);
  json.attribute("data_bytes", plan.dataBytes);
  json.attribute("calls", plan.calls);
  json.attribute("recomputed", plan.recomputed);
  json.attribute("kernels", plan.kernels);
  json.attribute("cost_seconds", jsonNumber(plan.cost));
  json.attribute("unconstrained_cost_seconds",
                 jsonNumber(plan.unconstrainedCost));
  json.attribute("cost_lower_bound_seconds", jsonNumber(plan.lowerBound));
  json.attribute("status", jsonString(plan.status));
  if (plan.autoArena)
    json.attributeObject("policy", [&] {
      json.attribute("regions", plan.regions);
      json.attribute("auto_cost_seconds", jsonNumber(plan.autoCost));
      json.attribute("auto_planned_peak", plan.autoArena);
      if (plan.autoCostInArena > 0)
        json.attribute("auto_cost_seconds_in_planned_peak",
                       jsonNumber(plan.autoCostInArena));
    });
  json.attribute("plan_seconds", jsonNumber(plan.planSeconds));
}

llvm::Error ckopt::writeReports(const DriverOptions &options,
                                const Compilation &compilation,
                                const TrainResult *result) {
  if (!options.timeline.empty()) {
    Timeline timeline;
    timeline.title = options.compile.model;
    timeline.subtitle = "budget: " + options.compile.step.budget.describe();
    timeline.panels.push_back(compilation.timeline("planned step"));
    bool json = llvm::StringRef(options.timeline).ends_with(".json");
    if (llvm::Error error = json ? writeMemoryTrace(options.timeline, timeline)
                                 : writeTimelineSvg(options.timeline, timeline))
      return error;
  }
  if (options.report.empty())
    return llvm::Error::success();
  return writeJsonFile(options.report, [&](llvm::json::OStream &json) {
    json.object([&] {
      json.attribute("format", "ckopt-report/1");
      json.attribute("model", jsonString(options.compile.model));
      json.attributeObject("plan",
                           [&] { writePlanJson(json, compilation.summary()); });
      if (!result)
        return;
      json.attributeObject("training", [&] {
        json.attribute("steps", result->steps);
        json.attribute("first_loss", jsonNumber(result->firstLoss));
        json.attribute("final_loss", jsonNumber(result->finalLoss));
        json.attribute("step_seconds", jsonNumber(result->stepSeconds));
        json.attribute("measured_peak", result->measuredPeak);
        json.attribute("evaluated", result->evaluated);
        if (result->classified)
          json.attribute("accuracy", jsonNumber(result->evaluation.accuracy()));
        if (result->evaluated)
          json.attribute("evaluation_loss",
                         jsonNumber(result->evaluation.meanLoss()));
        json.attributeArray("losses", [&] {
          for (double loss : result->losses)
            json.value(jsonNumber(loss));
        });
      });
    });
  });
}

/// Every tensor with a name, largest first, and what lies outside the arena.
llvm::Error ckopt::runInspect(DriverOptions &options) {
  auto compilation = planModel(options);
  if (!compilation)
    return compilation.takeError();
  if (llvm::Error error = (*compilation)->emit())
    return error;
  printPlan(**compilation, llvm::outs());
  const runtime::Manifest &manifest = (*compilation)->manifest();
  TextTable tensors;
  for (const char *header : {"tensor", "role", "type"})
    tensors.addColumn(header);
  tensors.addColumn("offset", TextTable::Right);
  tensors.addColumn("bytes", TextTable::Right);
  for (const runtime::TensorInfo &info : manifest.tensors)
    tensors.addRow({info.name, std::string(runtime::roleName(info.role)),
                    std::string(runtime::dtypeName(info.dtype)) + " " +
                        shapeString(info.shape),
                    groupDigits(info.offset), groupDigits(info.bytes)});
  llvm::outs() << "\n";
  tensors.print(llvm::outs());
  llvm::outs() << "\nlibrary primitives (" << manifest.primitives.size()
               << " distinct):\n";
  for (const runtime::PrimitiveDesc &desc : manifest.primitives) {
    std::string error;
    auto primitive = runtime::Primitive::create(desc, manifest.threads, error);
    llvm::outs() << "  " << runtime::describe(desc) << "  "
                 << (primitive ? primitive->implementation() : error) << "\n";
  }
  // What a process holds beside the arena.
  llvm::outs()
      << "\noutside the arena:\n  code and tables of the step  "
      << formatBytesExact(int64_t((*compilation)->object().size()))
      << "\n  stacks of " << manifest.threads
      << " threads         8 MiB each, mapped, touched as used\n"
         "  oneDNN: packing buffers of its own inside matrix products\n"
         "  (per thread, bounded by its cache blocking), and the code\n"
         "  that it generates for each primitive\n"
         "  file mappings of data and weights that are being read\n";
  return writeReports(options, **compilation, nullptr);
}
