//===- TrainCommands.cpp - train, compare, bench --------------------------===//
#include "Commands.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Report.h"
#include "ckopt/Support/Safetensors.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

#include <algorithm>
#include <chrono>
#include <map>

using namespace ckopt;
using runtime::TensorRole;

/// Settings of losses that differ from the defaults: what older checkpoints do
/// not name was as it is by default.
static void describeLoss(const autodiff::LossSettings &set,
                         StringMetadata &result) {
  const autodiff::LossSettings usual;
  auto note = [&](const char *key, double value, double otherwise) {
    if (value != otherwise)
      llvm::raw_string_ostream(result[key]) << llvm::format("%.17g", value);
  };
  auto list = [&](const char *key, const std::vector<double> &values) {
    for (double value : values)
      llvm::raw_string_ostream(result[key]) << llvm::format("%.17g ", value);
  };
  if (set.reduction != usual.reduction)
    result["reduction"] = set.reduction;
  if (set.classAxis)
    result["class-axis"] = std::to_string(*set.classAxis);
  note("label-smoothing", set.labelSmoothing, usual.labelSmoothing);
  note("beta", set.beta, usual.beta);
  note("delta", set.delta, usual.delta);
  note("margin", set.margin, usual.margin);
  list("class-weights", set.classWeights);
  list("pos-weight", set.posWeight);
}

/// What only some schedules have.
static void addSchedule(const LearningRateSchedule &schedule,
                        StringMetadata &result,
                        llvm::function_ref<void(const char *, double)> set) {
  using Kind = ScheduleKind;
  if (schedule.byEpoch)
    result["lr-unit"] = "epoch";
  if (schedule.kind == Kind::Step || schedule.kind == Kind::MultiStep ||
      schedule.kind == Kind::Exponential)
    set("lr-gamma", schedule.gamma);
  if (schedule.kind == Kind::Step)
    set("lr-step-size", double(schedule.stepSize));
  for (int64_t at : schedule.milestones)
    result["lr-milestones"] += std::to_string(at) + " ";
  if (schedule.kind == Kind::OneCycle) {
    set("lr-pct-start", schedule.warmShare);
    set("lr-div-factor", schedule.divide);
    set("lr-final-div-factor", schedule.divideFinal);
    result["lr-anneal"] = schedule.linearCycle ? "linear" : "cos";
  }
  if (schedule.kind == Kind::File)
    result["lr-file"] = std::to_string(llvm::xxh3_64bits(
        llvm::ArrayRef(reinterpret_cast<const uint8_t *>(schedule.rates.data()),
                       schedule.rates.size() * sizeof(double))));
}

/// Options that the bits of a run depend on; a resumed run must share them.
static StringMetadata identity(const DriverOptions &options) {
  const StepOptions &step = options.compile.step;
  const OptimizerSettings &opt = step.optimizer;
  const LearningRateSchedule &schedule = options.train.schedule;
  StringMetadata result;
  auto set = [&](const char *key, double value) {
    std::string text;
    llvm::raw_string_ostream(text) << llvm::format("%.17g", value);
    result[key] = text;
  };
  std::string dims;
  for (const auto &[name, size] : options.compile.import.dims)
    dims += name + "=" + std::to_string(size) + " ";
  result["loss"] = step.loss;
  result["dims"] = dims;
  result["layout"] = step.layout;
  result["cpu"] = options.compile.target.cpu + " -O" +
                  std::to_string(options.compile.target.optLevel);
  result["ignore-index"] = std::to_string(step.lossSettings.ignoreIndex);
  describeLoss(step.lossSettings, result);
  result["seed"] = std::to_string(options.seed);
  result["optimizer"] = opt.kind;
  result["schedule"] = scheduleName(schedule.kind);
  result["compute-type"] = options.compile.import.computeType;
  if (step.matmulPrecision != "f32")
    result["matmul-precision"] = step.matmulPrecision;
  result["freeze"] = options.compile.import.freezeRegex;
  if (!options.compile.import.trainRegex.empty())
    result["train"] = options.compile.import.trainRegex;
  if (step.freezeNorms)
    result["freeze-norms"] = "yes";
  for (size_t i = 0; i < options.compile.groups.size(); ++i)
    result["group " + std::to_string(i + 1)] = options.compile.groups[i].text;
  if (opt.ema > 0)
    set("ema", opt.ema);
  set("lr", schedule.base);
  set("min-lr-ratio", schedule.minRatio);
  set("warmup-steps", double(schedule.warmupSteps));
  if (const OptimizerKind *kind = findOptimizer(opt.kind))
    for (const HyperParameter &parameter : kind->parameters)
      set(parameter.name, hyperValue(*kind, opt.values, parameter.name));
  addSchedule(schedule, result, set);
  set("clip-norm", opt.clipNorm);
  set("holdout", options.train.holdout);
  set("threads", step.threads);
  set("accumulate", double(opt.accumulate));
  return result;
}

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

/// The samples by what they hold, whatever file and arrays they came from.
static std::string fingerprint(const Dataset &data) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << data.numSamples() << " samples";
  for (size_t i = 0; i < data.numFields(); ++i) {
    const HostTensor &array = data.tensor(i);
    llvm::ArrayRef<uint8_t> bytes(static_cast<const uint8_t *>(array.rawData()),
                                  size_t(array.sizeInBytes()));
    os << ", " << data.spec(i).name << " " << array.typeString() << " "
       << llvm::format_hex_no_prefix(llvm::xxh3_64bits(bytes), 16);
  }
  return text;
}

/// Weights as an ONNX file or as safetensors.
static llvm::Error writeWeights(const DriverOptions &options,
                                const std::string &path,
                                const TensorMap &weights) {
  if (llvm::StringRef(path).ends_with(".safetensors"))
    return writeSafetensors(path, weights);
  std::map<std::string, HostTensor> byName;
  for (auto &[name, value] : weights)
    byName[name] = value;
  return onnx_frontend::exportModel(options.compile.model, path, byName);
}

/// What was trained, and its averages; running statistics and frozen weights
/// are the same in both.
static llvm::Error writeOutputs(const DriverOptions &options,
                                const Session &session, bool anySteps) {
  auto weights = session.weights(/*optimizerState=*/false);
  if (!weights)
    return weights.takeError();
  if (!options.output.empty())
    if (llvm::Error error = writeWeights(options, options.output, *weights))
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
  return writeWeights(options, options.emaOutput, *weights);
}

/// One training run, from model file to result.
struct Run {
  std::unique_ptr<Compilation> compilation;
  TrainResult result;
};

static llvm::Expected<Run> trainOnce(DriverOptions &options, bool writeOutput) {
  Run run;
  auto compilation = planModel(options);
  if (!compilation)
    return compilation.takeError();
  run.compilation = std::move(*compilation);
  auto loaded = loadStep(*run.compilation, options);
  if (!loaded)
    return loaded.takeError();
  Session &session = *loaded->session;
  describeTargets(*run.compilation, options.data);
  auto data = loadDataset(session, options.data);
  if (!data)
    return data.takeError();
  TrainOptions train = options.train;
  train.accumulate = options.compile.step.optimizer.accumulate;
  train.identity = identity(options);
  train.identity["batch"] = std::to_string(batchSize(session.manifest()));
  train.identity["data"] = fingerprint(*data);
  train.averages = options.compile.step.optimizer.ema > 0;
  if (writeOutput)
    train.trained = [&](int64_t steps) {
      return writeOutputs(options, session, steps > 0);
    };
  auto result = ckopt::train(session, *data, options.data, train);
  if (!result)
    return result.takeError();
  run.result = std::move(*result);
  return std::move(run);
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
    options.compile.step.budget = budget;
    if (!options.quiet)
      llvm::errs() << "budget: " << budget.describe() << "\n";
    auto run = trainOnce(options, runs.empty());
    if (!run)
      return run.takeError();
    runs.push_back(std::move(*run));
    options.remarks = false; // they are the same for every budget
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
  auto compilation = planModel(options);
  if (!compilation)
    return compilation.takeError();
  auto loaded = loadStep(**compilation, options);
  if (!loaded)
    return loaded.takeError();
  Session &session = *loaded->session;
  // Without data: small deterministic numbers, labels within the classes.
  for (TensorRole role : {TensorRole::Input, TensorRole::Target})
    for (int64_t index : session.tensors(role)) {
      const runtime::TensorInfo &info = session.info_of(index);
      HostTensor value(hostType(info.dtype), info.shape);
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
    printPlan(**compilation, llvm::outs());
    llvm::outs() << "\n";
  }
  llvm::outs() << "step: best " << formatSeconds(seconds.front()) << ", median "
               << formatSeconds(seconds[seconds.size() / 2]) << ", worst "
               << formatSeconds(seconds.back()) << " of " << steps
               << " (predicted "
               << formatSeconds((*compilation)->summary().figures.seconds)
               << "), loss " << formatNumber(*loss, 6) << ", measured peak "
               << formatBytesExact(*peak) << "\n";
  if (options.profile)
    profile.print(session.manifest(), steps);
  if (!options.profileOut.empty())
    if (llvm::Error error =
            profile.write(options.profileOut, session.manifest(), steps))
      return error;
  return writeReports(options, **compilation, nullptr);
}
