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

using namespace ckopt;

llvm::Error ckopt::writeTimeline(const DriverOptions &options,
                                 const Timeline &timeline) {
  if (!options.timeline.empty())
    if (llvm::Error error = writeTimelineSvg(options.timeline, timeline))
      return error;
  return options.trace.empty() ? llvm::Error::success()
                               : writeMemoryTrace(options.trace, timeline);
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
          if (const StepCode *code = compilation.code())
            failure =
                llvm::joinErrors(std::move(failure), code->writeJson(json));
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
  if (llvm::Error error = (*compilation)->code()->inspect(options.out()))
    return error;
  if (!options.compile.device.target.empty())
    if (llvm::Error error = printDevice(**compilation, options, options.out()))
      return error;
  std::vector<ModuleSum> modules = sumByModule(**compilation, options.depth);
  printModules(modules, "predicted time", options.out());
  return writeReports(options, **compilation, nullptr,
                      [&](auto &json) { writeModules(modules, json); });
}
