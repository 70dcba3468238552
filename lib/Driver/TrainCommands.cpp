//===- TrainCommands.cpp - train, compare, bench --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Report.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <chrono>
#include <map>

using namespace ckopt;
using runtime::TensorRole;

static llvm::Error checkTrainFlags(const DriverOptions &options) {
  if (options.data.path.empty())
    return usageError("give --data=FILE.npz");
  if (!(options.train.holdout >= 0 && options.train.holdout < 1))
    return usageError("--holdout must lie in [0, 1)");
  for (auto [flag, out] : {std::pair("-o", &options.output),
                           std::pair("--ema-out", &options.emaOutput)})
    if (!out->empty() && !llvm::StringRef(*out).ends_with(".onnx") &&
        !llvm::StringRef(*out).ends_with(".safetensors"))
      return usageError(llvm::Twine(flag) +
                        " must end in .onnx or .safetensors, got '" + *out +
                        "'");
  return llvm::Error::success();
}

/// What was trained, and its averages; running statistics and frozen weights
/// are the same in both.
static llvm::Error writeOutputs(const DriverOptions &options,
                                const Session &session, bool anySteps) {
  auto weights = session.weights(/*optimizerState=*/false);
  if (!weights)
    return weights.takeError();
  if (!options.output.empty())
    if (llvm::Error error =
            writeWeightsFile(options.compile.model, options.output, *weights))
      return error;
  if (options.emaOutput.empty())
    return llvm::Error::success();
  if (anySteps) { // before them there is nothing to average
    auto averages = averagedWeights(session);
    if (!averages)
      return averages.takeError();
    for (auto &[name, value] : *averages)
      weights->set(name, value);
  }
  return writeWeightsFile(options.compile.model, options.emaOutput, *weights);
}

/// One training run, from model file to result.
struct Run {
  std::unique_ptr<Compilation> compilation;
  TrainResult result;
};

static llvm::Expected<Run> trainOnce(DriverOptions &options, bool writeOutput) {
  auto planned = prepareStep(options);
  if (!planned)
    return planned.takeError();
  Session &session = *planned->session;
  auto source = openSource(session, options.data);
  if (!source)
    return source.takeError();
  TrainOptions train = options.train;
  if (writeOutput)
    train.trained = [&](int64_t steps) {
      return writeOutputs(options, session, steps > 0);
    };
  auto result = ckopt::train(*planned->compilation, session, options.data,
                             **source, std::move(train));
  if (!result)
    return result.takeError();
  return Run{std::move(planned->compilation), std::move(*result)};
}

llvm::Error ckopt::runTrain(DriverOptions &options) {
  if (llvm::Error error = checkTrainFlags(options))
    return error;
  auto run = trainOnce(options, /*writeOutput=*/true);
  if (!run)
    return run.takeError();
  const TrainResult &result = run->result;
  if (!options.quiet) {
    printPlan(*run->compilation, llvm::outs());
    llvm::outs() << "\n";
  }
  if (result.nothingToDo)
    llvm::outs() << "nothing to do: the run is at epoch "
                 << result.position.epoch << " of " << options.train.epochs
                 << ", step " << result.steps << "\n";
  else
    llvm::outs() << "steps " << result.steps << ", loss "
                 << formatNumber(result.firstLoss, 6) << " -> "
                 << formatNumber(result.finalLoss, 6) << ", "
                 << formatSeconds(result.stepSeconds) << " a step (median)\n";
  if (result.droppedPerEpoch)
    llvm::outs() << result.droppedPerEpoch
                 << " samples of each epoch's last, partial batch were not "
                    "used\n";
  if (result.droppedBatches)
    llvm::outs() << result.droppedBatches
                 << " batches at the end were too few for an update and were "
                    "not used\n";
  if (result.evaluated)
    llvm::outs() << "held-out samples " << result.evaluated << ", loss "
                 << formatNumber(result.evaluation.meanLoss(), 6)
                 << (result.classified
                         ? ", accuracy " +
                               formatPercent(result.evaluation.accuracy(), 2)
                         : std::string())
                 << "\n";
  if (result.evaluated && options.compile.step.optimizer.ema > 0 &&
      result.averageEvaluation.count)
    llvm::outs() << "averaged weights: loss "
                 << formatNumber(result.averageEvaluation.meanLoss(), 6)
                 << (result.classified
                         ? ", accuracy " +
                               formatPercent(
                                   result.averageEvaluation.accuracy(), 2)
                         : std::string())
                 << "\n";
  if (!result.evaluated && options.train.holdout > 0)
    llvm::outs() << "held-out samples: not evaluated, fewer than a batch of "
                    "the loss that the model computes\n";
  if (!result.nothingToDo)
    llvm::outs() << "measured peak " << formatBytesExact(result.measuredPeak)
                 << "; beside it, outside of the budget, the data: "
                 << formatBytesExact(result.dataBytes) << "\n";
  if (!options.output.empty())
    llvm::outs() << "wrote " << options.output << "\n";
  if (!options.emaOutput.empty())
    llvm::outs() << "wrote " << options.emaOutput << " (averaged weights)\n";
  return writeReports(options, *run->compilation, &result);
}

//===----------------------------------------------------------------------===//
// compare
//===----------------------------------------------------------------------===//

/// All losses of a run, bit for bit.
static bool sameLosses(const TrainResult &a, const TrainResult &b) {
  return a.losses.size() == b.losses.size() &&
         std::equal(a.losses.begin(), a.losses.end(), b.losses.begin(),
                    [](double x, double y) {
                      return std::bit_cast<uint64_t>(x) ==
                             std::bit_cast<uint64_t>(y);
                    });
}

/// --report: what each budget gave.
static llvm::Error writeComparison(const DriverOptions &options,
                                   llvm::ArrayRef<MemoryBudget> budgets,
                                   llvm::ArrayRef<Run> runs, bool equal) {
  if (options.report.empty())
    return llvm::Error::success();
  return writeJsonFile(options.report, [&](llvm::json::OStream &json) {
    json.object([&] {
      json.attribute("format", "ckopt-compare-report/1");
      json.attribute("model", jsonString(options.compile.model));
      json.attribute("same_losses", equal);
      json.attributeArray("runs", [&] {
        for (size_t i = 0; i < runs.size(); ++i)
          json.object([&] {
            json.attribute("budget", jsonString(budgets[i].describe()));
            writeRun(json, *runs[i].compilation, &runs[i].result);
          });
      });
    });
  });
}

llvm::Error ckopt::runCompare(DriverOptions &options) {
  if (llvm::Error error = checkTrainFlags(options))
    return error;
  std::vector<MemoryBudget> budgets = options.budgets;
  if (budgets.empty()) {
    budgets.resize(3);
    budgets[1].kind = MemoryBudget::Kind::Ratio;
    budgets[1].ratio = 0.6;
    budgets[2].kind = MemoryBudget::Kind::Minimum;
  }
  std::vector<Run> runs;
  for (const MemoryBudget &budget : budgets) {
    options.compile.step.remat.budget = budget;
    if (!options.quiet)
      llvm::errs() << "budget: " << budget.describe() << "\n";
    auto run = trainOnce(options, runs.empty());
    if (!run)
      return run.takeError();
    runs.push_back(std::move(*run));
    options.compile.remarks = false; // they are the same for every budget
  }
  TextTable table;
  for (const char *header :
       {"budget", "bytes", "planned peak", "measured peak", "recomputed",
        "overhead (predicted)", "overhead (measured)", "bound", "final loss",
        "accuracy", "losses"})
    table.addColumn(header, TextTable::Right);
  const TrainResult &base = runs.front().result;
  const RematFigures &basePlan = runs.front().compilation->summary().figures;
  bool equal = true;
  for (size_t i = 0; i < runs.size(); ++i) {
    const PlanSummary &summary = runs[i].compilation->summary();
    const RematFigures &plan = summary.figures;
    const TrainResult &result = runs[i].result;
    bool same = sameLosses(result, base);
    equal &= same;
    table.addRow(
        {budgets[i].describe(), plan.budget ? groupDigits(plan.budget) : "none",
         groupDigits(plan.arena), groupDigits(result.measuredPeak),
         std::to_string(plan.recomputed) + " of " +
             std::to_string(summary.calls),
         formatPercent(
             basePlan.seconds > 0 ? plan.seconds / basePlan.seconds - 1 : 0),
         formatPercent(result.stepSeconds / base.stepSeconds - 1),
         formatPercent(plan.lowerBound > 0 ? plan.seconds / plan.lowerBound - 1
                                           : 0),
         formatNumber(result.finalLoss, 9),
         result.classified ? formatPercent(result.evaluation.accuracy(), 2)
                           : "",
         i == 0 ? ""
         : same ? "same bits"
                : "DIFFER"});
  }
  llvm::outs() << "\n";
  table.print(llvm::outs());
  llvm::outs()
      << "bound: the plan's predicted time is at most so far above the "
         "fastest possible one for its budget (proven)\n";
  if (!options.timeline.empty()) {
    Timeline timeline;
    timeline.title = options.compile.model;
    timeline.panels.push_back(
        runs.front().compilation->timeline("without recomputation"));
    if (runs.size() > 1)
      timeline.panels.push_back(runs.back().compilation->timeline(
          "budget: " + budgets.back().describe()));
    if (llvm::Error error = writeTimeline(options.timeline, timeline))
      return error;
    llvm::outs() << "wrote " << options.timeline << "\n";
  }
  if (llvm::Error error = writeComparison(options, budgets, runs, equal))
    return error;
  if (!equal)
    return makeError(ExitInternal, "losses differ between budgets: this must "
                                   "never happen; please report it");
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// bench
//===----------------------------------------------------------------------===//

namespace {
/// Seconds of each kernel call, summed over the steps that were timed.
struct Profile {
  std::vector<double> seconds;
  bool on = false;

  static void add(void *self, int64_t call, double time) {
    auto *profile = static_cast<Profile *>(self);
    if (!profile->on)
      return;
    profile->seconds.resize(
        std::max(profile->seconds.size(), size_t(call) + 1));
    profile->seconds[size_t(call)] += time;
  }
  void print(const runtime::Manifest &manifest, int64_t steps) const;
  llvm::Error write(llvm::StringRef path, const runtime::Manifest &manifest,
                    int64_t steps) const;
};
} // namespace

/// One line a kernel symbol, slowest first.
void Profile::print(const runtime::Manifest &manifest, int64_t steps) const {
  struct Line {
    double seconds = 0;
    int64_t calls = 0;
    std::string what, source;
  };
  std::map<std::string, Line> lines;
  double total = 0;
  for (size_t i = 0; i < seconds.size(); ++i) {
    const runtime::CallInfo &call = manifest.calls[i];
    Line &line = lines[call.kernel];
    line.seconds += seconds[i];
    total += seconds[i];
    line.calls += seconds[i] > 0;
    if (line.source.empty())
      line.source = call.source.substr(0, 60);
    if (call.primitive >= 0)
      line.what =
          runtime::describe(manifest.primitives[size_t(call.primitive)]);
  }
  std::vector<std::pair<std::string, Line>> sorted(lines.begin(), lines.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) {
    return std::pair(-a.second.seconds, a.first) <
           std::pair(-b.second.seconds, b.first);
  });
  TextTable table;
  for (const char *header : {"time a step", "share", "calls"})
    table.addColumn(header, TextTable::Right);
  for (const char *header : {"kernel", "primitive", "first source node"})
    table.addColumn(header);
  for (auto &[kernel, line] : sorted)
    table.addRow({formatSeconds(line.seconds / double(steps)),
                  formatPercent(line.seconds / total),
                  std::to_string(line.calls), kernel, line.what, line.source});
  llvm::outs() << "\n";
  table.print(llvm::outs());
}

/// A ckopt-profile/1 file (CostProfile.h): the mean time of one call of each
/// kernel. Symbols do not depend on the budget, so it serves every plan.
llvm::Error Profile::write(llvm::StringRef path,
                           const runtime::Manifest &manifest,
                           int64_t steps) const {
  std::map<std::string, std::pair<double, int64_t>> kernels;
  for (size_t i = 0; i < seconds.size(); ++i) {
    auto &[sum, calls] = kernels[manifest.calls[i].kernel];
    sum += seconds[i];
    calls += seconds[i] > 0;
  }
  return writeJsonFile(path, [&](llvm::json::OStream &json) {
    json.object([&] {
      json.attribute("format", "ckopt-profile/1");
      json.attributeArray("ops", [&] {
        for (const auto &[kernel, timed] : kernels)
          if (timed.second)
            json.object([&, &kernel = kernel, &timed = timed] {
              json.attribute("op", kernel);
              json.attribute("seconds",
                             jsonNumber(timed.first / double(timed.second) /
                                        double(steps)));
            });
      });
    });
  });
}

llvm::Error ckopt::runBench(DriverOptions &options) {
  auto planned = prepareStep(options);
  if (!planned)
    return planned.takeError();
  const Compilation &compilation = *planned->compilation;
  Session &session = *planned->session;
  // Without data: small deterministic numbers, labels within the classes.
  for (TensorRole role : {TensorRole::Input, TensorRole::Target})
    for (int64_t index : session.tensors(role)) {
      const runtime::TensorInfo &info = session.info_of(index);
      HostTensor value(info.dtype, info.shape);
      for (int64_t i = 0; i < value.numElements(); ++i)
        value.setDouble(i, isFloat(value.dtype())
                               ? double((i * 37 + 11) % 101) / 50.0 - 1.0
                               : double(i % 2));
      if (llvm::Error error = session.write(index, value))
        return error;
    }
  if (llvm::Error error =
          session.fill(TensorRole::LearningRate, options.train.schedule.base))
    return error;
  Profile profile;
  if (options.profile || !options.profileOut.empty())
    if (auto status =
            ckrt_set_profile(session.handle(), Profile::add, &profile))
      return makeError(ExitInternal, ckrt_last_error() +
                                         (" (" + std::to_string(status) + ")"));
  std::vector<double> seconds;
  int64_t steps = options.steps ? options.steps : 10;
  for (int64_t i = 0; i < options.warmup + steps; ++i) {
    if (llvm::Error error = session.fill(TensorRole::Step, double(i + 1)))
      return error;
    profile.on = i >= options.warmup;
    auto start = std::chrono::steady_clock::now();
    if (llvm::Error error = session.run("step"))
      return error;
    if (i >= options.warmup)
      seconds.push_back(std::chrono::duration<double>(
                            std::chrono::steady_clock::now() - start)
                            .count());
  }
  std::sort(seconds.begin(), seconds.end());
  auto loss = readLoss(session);
  if (!loss)
    return loss.takeError();
  auto peak = session.measuredPeak();
  if (!peak)
    return peak.takeError();
  if (!options.quiet) {
    printPlan(compilation, llvm::outs());
    llvm::outs() << "\n";
  }
  llvm::outs() << "step: best " << formatSeconds(seconds.front()) << ", median "
               << formatSeconds(seconds[seconds.size() / 2]) << ", worst "
               << formatSeconds(seconds.back()) << " of " << steps
               << " (predicted "
               << formatSeconds(compilation.summary().figures.seconds)
               << "), loss " << formatNumber(*loss, 6) << ", measured peak "
               << formatBytesExact(*peak) << "\n";
  if (options.profile)
    profile.print(session.manifest(), steps);
  if (!options.profileOut.empty())
    if (llvm::Error error =
            profile.write(options.profileOut, session.manifest(), steps))
      return error;
  return writeReports(options, compilation, nullptr);
}
