//===- Reports.cpp - what a plan says, as text, JSON and pictures ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "ModuleSums.h"
#include "ckopt/Base/PrintableText.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Report.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <map>

using namespace ckopt;

/// Describes "how far above the fastest possible plan" the plan is at most.
static std::string gapText(const RematFigures &plan) {
  if (plan.lowerBound <= 0)
    return "unknown";
  return formatPercent(std::max(0.0, plan.seconds / plan.lowerBound - 1), 2);
}

/// Names the plans that bounds on time speak of.
static std::string possiblePlan(const RematFigures &plan) {
  std::string words = plan.scope.ofCost().words();
  return words.empty() ? "possible plan" : "plan" + words;
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
  time.addRow({"at most above the fastest " + possiblePlan(plan) + " (proven)",
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

static void writePlanJson(llvm::json::OStream &json,
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

llvm::Error ckopt::writeTimeline(const DriverOptions &options,
                                 const Timeline &timeline) {
  if (!options.timeline.empty())
    if (llvm::Error error = writeTimelineSvg(options.timeline, timeline))
      return error;
  return options.trace.empty() ? llvm::Error::success()
                               : writeMemoryTrace(options.trace, timeline);
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

/// What the ranks sent each other in the last update.
static void writeCommunication(llvm::json::OStream &json,
                               const TrainResult &result) {
  const Communication &traffic = result.communication;
  auto numbers = [&](const char *name, llvm::ArrayRef<int64_t> values) {
    json.attributeArray(name, [&] {
      for (int64_t value : values)
        json.value(value);
    });
  };
  json.attributeObject("communication", [&] {
    json.attribute("ranks", int64_t(result.rankPeaks.size()));
    json.attribute("seconds", jsonNumber(traffic.seconds));
    numbers("peaks", result.rankPeaks);
    numbers("messages", traffic.messages);
    numbers("sent_bytes", traffic.sentBytes);
    json.attributeArray("collectives", [&] {
      for (const Communication::Collective &collective : traffic.collectives)
        json.object([&] {
          json.attribute("kind", collective.kind);
          json.attribute("bytes", collective.bytes);
          json.attribute("seconds", jsonNumber(collective.seconds));
        });
    });
  });
}

void ckopt::writeRun(llvm::json::OStream &json, const Compilation &compilation,
                     const TrainResult *result) {
  json.attributeObject("plan",
                       [&] { writePlanJson(json, compilation.summary()); });
  if (!result)
    return;
  json.attributeObject("training", [&] {
    json.attribute("steps", result->steps);
    json.attribute("first_loss", jsonNumber(result->firstLoss));
    json.attribute("final_loss", jsonNumber(result->finalLoss));
    if (result->lossScale) {
      json.attribute("loss_scale", jsonNumber(result->lossScale->scale));
      json.attribute("skipped_updates", result->skippedUpdates);
    }
    if (result->divergedAt)
      json.attribute("diverged_at", result->divergedAt);
    json.attribute("data_bytes", result->dataBytes);
    json.attribute("step_seconds", jsonNumber(result->stepSeconds));
    json.attribute("measured_peak", result->measuredPeak);
    if (result->rankPeaks.size() > 1)
      writeCommunication(json, *result);
    json.attribute("evaluated", result->evaluated);
    if (result->classified)
      json.attribute("accuracy", jsonNumber(result->evaluation.accuracy()));
    if (result->evaluated)
      json.attribute("evaluation_loss",
                     jsonNumber(result->evaluation.meanLoss()));
    if (!result->classes.empty())
      json.attributeArray("classes", [&] {
        for (const std::string &name : result->classes)
          json.value(jsonString(name));
      });
    if (const auto &best = result->best)
      json.attributeObject("best", [&] {
        json.attribute("metric", jsonString(best->metric));
        json.attribute("value", jsonNumber(best->value));
        json.attribute("step", best->step);
      });
    if (result->stoppedEarly)
      json.attribute("stopped_early", true);
    json.attributeArray("losses", [&] {
      for (double loss : result->losses)
        json.value(jsonNumber(loss));
    });
  });
}

std::string ckopt::stepReport(const Compilation &compilation) {
  return jsonText([&](llvm::json::OStream &json) {
    json.object([&] {
      json.attribute("format", "ckopt-step-report/1");
      json.attribute("model", jsonString(compilation.given().title()));
      writeRun(json, compilation, nullptr);
    });
  });
}

void ckopt::tellWritten(const DriverOptions &options, llvm::StringRef path,
                        llvm::StringRef what) {
  if (path.empty() || path == "-")
    return;
  options.out() << "wrote " << path;
  if (!what.empty())
    options.out() << " (" << what << ")";
  options.out() << "\n";
}

llvm::Error
ckopt::writeReports(const DriverOptions &options,
                    const Compilation &compilation, const TrainResult *result,
                    llvm::function_ref<void(llvm::json::OStream &)> more) {
  const RematResult &planned = compilation.planned();
  if (planned.mainPlan())
    tellWritten(options, options.planOut);
  if (!planned.plans.empty())
    tellWritten(options, options.planReport);
  if (!options.timeline.empty() || !options.trace.empty())
    if (llvm::Error error = writeTimeline(options, memoryTimeline(compilation)))
      return error;
  tellWritten(options, options.timeline);
  tellWritten(options, options.trace);
  if (options.report.empty())
    return llvm::Error::success();
  llvm::Error failure = llvm::Error::success();
  llvm::Error written =
      writeJsonFile(options.report, [&](llvm::json::OStream &json) {
        json.object([&] {
          json.attribute("format", "ckopt-step-report/1");
          json.attribute("model", jsonString(options.compile.model));
          writeRun(json, compilation, result);
          if (more)
            more(json);
          if (compilation.hasCode())
            failure = llvm::joinErrors(std::move(failure),
                                       compilation.code().writeJson(json));
        });
      });
  llvm::Error error = llvm::joinErrors(std::move(failure), std::move(written));
  if (!error)
    tellWritten(options, options.report);
  return error;
}

/// Prints the device memory that driver, code and graphs take beside the arena.
static llvm::Error printDevice(const Compilation &compilation,
                               const DriverOptions &options,
                               llvm::raw_ostream &os) {
  SessionOptions sessionOptions;
  sessionOptions.measurePeak = false;
  sessionOptions.device = options.compile.device.ordinal;
  auto session = open(compilation, sessionOptions);
  if (!session)
    return session.takeError();
  ckrt_device_report report = {};
  report.size = sizeof(report);
  if (ckrt_device((*session)->handle(), &report))
    return makeError(ExitInternal, ckrt_last_error());
  os << "\n"
     << options.compile.device.target << ":" << report.ordinal << " "
     << report.name << ", compute capability " << report.compute_capability / 10
     << "." << report.compute_capability % 10 << ", " << report.multiprocessors
     << " multiprocessors, driver for CUDA " << report.driver_version / 1000
     << "." << report.driver_version % 1000 / 10 << "\n";
  TextTable memory;
  memory.addColumn("device memory");
  memory.addColumn("bytes", TextTable::Right);
  auto row = [&](const char *what, int64_t bytes) {
    memory.addRow({what, bytes < 0 ? "unknown" : groupDigits(bytes)});
  };
  row("all", report.total_bytes);
  row("in use before loading (context, others)", report.used_bytes);
  row("a context (measured with a second one)", report.context_bytes);
  row("code", report.code_bytes);
  row("cuBLASLt and cuDNN", report.library_bytes);
  row("arena (planned peak, in the driver's units)", report.arena_bytes);
  row("graphs", report.graph_bytes);
  memory.addRule();
  row("pinned host memory", report.pinned_bytes);
  memory.print(os);
  os << report.kernels << " kernels, at most " << report.registers
     << " registers and " << report.local_bytes
     << " bytes of local memory a thread\n";
  return llvm::Error::success();
}

/// Prints every tensor with a name, largest first, and memory outside the
/// arena.
llvm::Error ckopt::runInspect(DriverOptions &options) {
  auto compilation = planModel(options);
  if (!compilation)
    return compilation.takeError();
  if (llvm::Error error = (*compilation)->emit())
    return error;
  printPlan(**compilation, options.out());
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
  options.out() << "\n";
  tensors.print(options.out());
  if (llvm::Error error = (*compilation)->code().inspect(options.out()))
    return error;
  if (!options.compile.device.target.empty())
    if (llvm::Error error = printDevice(**compilation, options, options.out()))
      return error;
  std::vector<ModuleSum> modules = sumByModule(**compilation, options.depth);
  printModules(modules, "predicted time", options.out());
  return writeReports(options, **compilation, nullptr,
                      [&](auto &json) { writeModules(modules, json); });
}
