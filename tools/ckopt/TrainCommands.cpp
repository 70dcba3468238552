//===- TrainCommands.cpp - train, compare ---------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "ckopt/Compiler/Compile.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Report.h"
#include "ckopt/Support/StoredTensors.h"
#include "ckopt/Train/Data/ReadAhead.h"
#include "ckopt/Train/Progress.h"
#include "ckopt/Train/Step.h"
#include "ckopt/Train/Stopping.h"
#include "ckopt/Train/TrainRanks.h"
#include "ckopt/Train/Validation.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <bit>

using namespace ckopt;

static llvm::Error checkTrainFlags(const DriverOptions &options) {
  if (llvm::Error error = needData(options))
    return error;
  if (options.data.isStream() &&
      (options.train.epochs > 1 || options.command == Command::Compare))
    return usageError("--data=- can be read but once: one run of one epoch");
  if (options.validation == "-")
    return usageError("--validation=-: standard input can be read but once, "
                      "and evaluations read their samples again; give a file");
  if (!options.validation.empty() && options.train.holdout > 0)
    return usageError("give one of --validation and --holdout");
  if (llvm::Error error = checkValidation(options.train,
                                          !options.validation.empty() ||
                                              options.train.holdout > 0,
                                          !options.data.metrics.empty()))
    return error;
  if (!(options.train.holdout >= 0 && options.train.holdout < 1))
    return usageError("--holdout must lie in [0, 1)");
  for (auto [flag, out] : {std::pair("-o", &options.output),
                           std::pair("--ema-out", &options.emaOutput)}) {
    if (out->empty())
      continue;
    if (llvm::Error error = checkWeightsPath(*out, flag))
      return error;
    if (isWeightFolder(*out) && !options.weights.empty() &&
        llvm::sys::fs::equivalent(StoredTensors::folderOf(options.weights),
                                  *out))
      return usageError(llvm::Twine(flag) + "=" + *out +
                        " would replace files of --weights, '" +
                        options.weights + "': give the result another folder");
  }
  return llvm::Error::success();
}

/// Writes trained weights and, if asked, their averages; running statistics and
/// frozen weights are the same in both files.
static llvm::Error writeOutputs(const DriverOptions &options,
                                const Compilation &compilation,
                                const Session &session,
                                const StringMetadata &metadata, bool anySteps) {
  if (!options.output.empty())
    if (llvm::Error error =
            writeWeights(compilation, session, options.output,
                         {false, options.saveTrained}, metadata))
      return error;
  if (options.emaOutput.empty())
    return llvm::Error::success();
  // Before the first step there are no averages.
  return writeWeights(compilation, session, options.emaOutput,
                      {anySteps, options.saveTrained}, metadata);
}

/// The samples of --validation, with the arrays of --data or --tokens.
static llvm::Expected<std::unique_ptr<BatchSource>>
openValidation(const PlannedStep &planned, const DriverOptions &options,
               std::vector<std::string> classNames) {
  StepData data = planned.data;
  (!data.images.empty()   ? data.images
   : !data.tokens.empty() ? data.tokens
                          : data.path) = options.validation;
  data.classNames = std::move(classNames);
  return openSource(*planned.session, data, DatasetSource::Order::AsStored);
}

/// One training run, from model file to result; without a result where no plan
/// fits the budget.
struct TrainedRun {
  std::unique_ptr<Compilation> compilation;
  TrainResult result;
  std::string devices; ///< of the ranks; "": they have none

  bool trained() const { return compilation->summary().figures.hasPlan(); }
};

/// `refused` as in planModel().
static llvm::Expected<TrainedRun>
trainOnce(DriverOptions &options, bool writeOutput,
          std::unique_ptr<Compilation> *refused = nullptr) {
  // An evaluation may hold outputs whole where the step has them in chunks.
  options.compile.step.evaluation = options.compile.step.needsEvaluation =
      options.compile.step.ranksLabels =
          options.train.holdout > 0 || !options.validation.empty();
  auto planned = prepareStep(options, refused);
  if (!planned)
    return planned.takeError();
  Session &session = *planned->session;
  for (const std::string *path : {&options.output, &options.emaOutput})
    if (llvm::Error error = writeOutput
                                ? planned->compilation->checkGoesBack(*path)
                                : llvm::Error::success())
      return std::move(error);
  auto samples = openSource(session, planned->data);
  if (!samples)
    return samples.takeError();
  ReadAheadSource source(std::move(*samples));
  TrainOptions train = options.train;
  std::unique_ptr<BatchSource> validation;
  if (!options.validation.empty()) {
    auto opened = openValidation(*planned, options, source.classNames());
    if (!opened)
      return opened.takeError();
    validation = std::move(*opened);
    train.validation = validation.get();
  }
  if (writeOutput)
    train.trained = [&](int64_t steps) {
      return writeOutputs(options, *planned->compilation, session,
                          weightsMetadata(source.classNames()), steps > 0);
    };
  std::optional<SignalCatcher> signals;
  if (!train.checkpoint.empty() || session.ranks().areSeveral()) {
    signals.emplace();
    train.stopAsked = SignalCatcher::caught;
  }
  if (llvm::Error error = checkRanksAgree(*planned->compilation, session,
                                          source, validation.get(), train))
    return std::move(error);
  planned->compilation->releaseWeights(); // ranks have compared them
  auto result = ckopt::train(*planned->compilation, session, planned->data,
                             source, std::move(train));
  if (!result)
    return result.takeError();
  return TrainedRun{std::move(planned->compilation), std::move(*result),
                    ckrt_rank_devices(session.handle())};
}

/// Which evaluation was the best, and whether the run ended for want of a
/// better one.
static void printBest(llvm::raw_ostream &os, const TrainOptions &options,
                      const TrainResult &result) {
  if (result.stoppedEarly)
    os << "stopped early: the last " << result.best->since
       << " evaluations were not better\n";
  if (!result.best)
    return;
  os << "best " << result.best->metric << " "
     << options.bestBy.value_or(Metric()).format(result.best->value)
     << ", after step " << result.best->step;
  if (!options.keepBest.empty())
    os << ", in " << options.keepBest;
  os << "\n";
}

/// The measured peak, of several ranks that of each.
static std::string describePeaks(const TrainResult &result) {
  const std::vector<int64_t> &peaks = result.rankPeaks;
  std::string text = formatBytesExact(result.measuredPeak);
  if (peaks.size() < 2)
    return text;
  if (llvm::all_equal(peaks))
    return text + " on each of " + std::to_string(peaks.size()) + " ranks";
  for (size_t rank = 1; rank < peaks.size(); ++rank)
    text += ", " + formatBytesExact(peaks[rank]) + " on rank " +
            std::to_string(rank);
  return text;
}

/// Says where a signal ended the run, and how it goes on.
static llvm::Error stoppedError(const DriverOptions &options,
                                const TrainResult &result) {
  const std::string &file = options.train.checkpoint;
  return makeError(ExitCode(128 + result.stopped),
                   llvm::Twine(signalName(result.stopped)) +
                       " ended training after step " +
                       llvm::Twine(result.steps) +
                       (file.empty() ? "; without --checkpoint nothing of it "
                                       "is kept"
                                     : "; --resume=" + file + " goes on"));
}

llvm::Error ckopt::runTrain(DriverOptions &options) {
  if (llvm::Error error = checkTrainFlags(options))
    return error;
  auto run = trainOnce(options, /*writeOutput=*/true);
  if (!run)
    return run.takeError();
  const TrainResult &result = run->result;
  if (result.stopped)
    return stoppedError(options, result);
  printPlan(*run->compilation, options.out());
  options.out() << "\n";
  if (result.nothingToDo)
    options.out() << "nothing to do: the run is at epoch "
                  << result.position.epoch << " of " << options.train.epochs
                  << ", step " << result.steps << "\n";
  else
    options.out() << "steps " << result.steps << ", loss "
                  << formatNumber(result.firstLoss, 6) << " -> "
                  << formatNumber(result.finalLoss, 6) << ", "
                  << formatSeconds(result.stepSeconds) << " a step (median)\n";
  if (result.lossScale && !result.nothingToDo)
    options.out() << "loss scale " << result.lossScale->text()
                  << " at the end, " << result.skippedUpdates << " of "
                  << result.losses.size() << " updates skipped\n";
  if (result.droppedPerEpoch)
    options.out() << result.droppedPerEpoch
                  << " samples of each epoch's last, partial batch were not "
                     "used\n";
  if (result.droppedBatches)
    options.out() << result.droppedBatches
                  << " batches at the end were too few for an update and were "
                     "not used\n";
  if (result.evaluated)
    options.out() << (options.validation.empty() ? "held-out" : "validation")
                  << " samples " << result.evaluated << ", loss "
                  << formatNumber(result.evaluation.meanLoss(), 6)
                  << describeMetrics(result.evaluation, result.classified,
                                     options.data.metrics)
                  << "\n";
  if (result.evaluated && options.compile.step.optimizer.ema > 0 &&
      result.averageEvaluation.count)
    options.out() << "averaged weights: loss "
                  << formatNumber(result.averageEvaluation.meanLoss(), 6)
                  << describeMetrics(result.averageEvaluation,
                                     result.classified, options.data.metrics)
                  << "\n";
  printBest(options.out(), options.train, result);
  if (!result.evaluated &&
      (options.train.holdout > 0 || !options.validation.empty()))
    options.out() << (options.validation.empty() ? "held-out" : "validation")
                  << " samples: not evaluated, "
                  << (result.allIgnored
                          ? "all of their labels are ignored\n"
                          : "fewer than a batch of the loss that the model "
                            "computes\n");
  if (!result.nothingToDo)
    options.out() << "measured peak " << describePeaks(result)
                  << "; beside it, outside of the budget, the data: "
                  << formatBytesExact(result.dataBytes) << "\n";
  if (!result.communication.messages.empty()) {
    options.out() << "communication: "
                  << result.communication.collectives.size()
                  << " sums over ranks a step, rank 0 sent "
                  << formatBytes(result.communication.sentBytes.front())
                  << " in " << result.communication.messages.front()
                  << " messages";
    // On a device they are parts of a graph, and the host does not wait.
    if (result.communication.seconds > 0)
      options.out() << " and was in them for "
                    << formatSeconds(result.communication.seconds)
                    << " (median)";
    options.out() << "\n";
  }
  if (!run->devices.empty())
    options.out() << "devices: " << run->devices << "\n";
  tellWritten(options, options.output);
  tellWritten(options, options.emaOutput, "averaged weights");
  tellWritten(options, options.train.checkpoint);
  tellWritten(options, options.train.log);
  if (!result.nothingToDo && options.output.empty() &&
      options.emaOutput.empty() && options.train.checkpoint.empty() &&
      options.train.keepBest.empty())
    options.out() << "the trained weights are not kept: -o FILE writes them\n";
  return writeReports(options, *run->compilation, &result);
}

//===----------------------------------------------------------------------===//
// compare
//===----------------------------------------------------------------------===//

/// Returns whether all losses of two runs have the same bits.
static bool sameLosses(const TrainResult &a, const TrainResult &b) {
  return a.losses.size() == b.losses.size() &&
         std::equal(a.losses.begin(), a.losses.end(), b.losses.begin(),
                    [](double x, double y) {
                      return std::bit_cast<uint64_t>(x) ==
                             std::bit_cast<uint64_t>(y);
                    });
}

/// Writes --report: the result for each budget.
static llvm::Error writeComparison(const DriverOptions &options,
                                   llvm::ArrayRef<MemoryBudget> budgets,
                                   llvm::ArrayRef<TrainedRun> runs,
                                   bool equal) {
  if (options.report.empty())
    return llvm::Error::success();
  auto fill = [&](llvm::json::OStream &json) {
    json.object([&] {
      json.attribute("format", "ckopt-compare-report/1");
      json.attribute("model", jsonString(options.compile.model));
      json.attribute("same_losses", equal);
      json.attributeArray("runs", [&] {
        for (size_t i = 0; i < runs.size(); ++i)
          json.object([&] {
            json.attribute("budget", jsonString(budgets[i].describe()));
            writeRun(json, *runs[i].compilation,
                     runs[i].trained() ? &runs[i].result : nullptr);
          });
      });
    });
  };
  if (llvm::Error error = writeJsonFile(options.report, fill))
    return error;
  tellWritten(options, options.report);
  return llvm::Error::success();
}

/// Returns the cheapest plan of earlier runs that is within the budget, as a
/// start: more bytes never give a slower plan.
static llvm::Expected<std::optional<StoredPlan>>
knownPlan(llvm::ArrayRef<TrainedRun> runs, const MemoryBudget &budget) {
  const RematPlan *best = nullptr;
  for (const TrainedRun &run : runs) {
    const RematPlan *plan = run.compilation->planned().mainPlan();
    if (plan && plan->result.hasPlan() &&
        (budget.kind == MemoryBudget::Kind::Bytes ||
         budget.kind == MemoryBudget::Kind::Ratio) &&
        plan->arena <= budget.resolve(plan->fullArena, plan->fixedBytes) &&
        (!best || plan->result.plan.cost < best->result.plan.cost))
      best = plan;
  }
  if (!best)
    return std::nullopt;
  auto stored = StoredPlan::parse(printStoredPlan(*best), "of another budget");
  if (!stored)
    return stored.takeError();
  return std::optional<StoredPlan>(std::move(*stored));
}

/// Trains at each budget. One that nothing fits gives a run without a result;
/// an error only where no budget gives another.
static llvm::Expected<std::vector<TrainedRun>>
trainAtBudgets(DriverOptions &options, llvm::ArrayRef<MemoryBudget> budgets) {
  std::vector<TrainedRun> runs;
  bool anyTrained = false;
  llvm::Error none = llvm::Error::success();
  bool given = !options.plan.empty() || !options.planHint.empty();
  for (const MemoryBudget &budget : budgets) {
    RematSettings &remat = options.compile.step.remat;
    remat.budget = budget;
    if (!given) {
      auto known = knownPlan(runs, budget);
      if (!known)
        return llvm::joinErrors(std::move(none), known.takeError());
      remat.hint = std::move(*known);
    }
    if (!options.quiet)
      llvm::errs() << "budget: " << budget.describe() << "\n";
    std::unique_ptr<Compilation> refused;
    auto run = trainOnce(options, /*writeOutput=*/!anyTrained, &refused);
    if (!run && !refused)
      return llvm::joinErrors(std::move(none), run.takeError());
    if (run) {
      anyTrained = true;
      runs.push_back(std::move(*run));
    } else {
      none = llvm::joinErrors(std::move(none), run.takeError());
      runs.push_back({std::move(refused), {}, ""});
    }
    options.compile.remarks = false; // they are the same for every budget
  }
  if (!anyTrained)
    return std::move(none);
  llvm::consumeError(std::move(none)); // The table says it.
  return std::move(runs);
}

/// The row of a budget that nothing fits.
static std::vector<std::string> refusedRow(const MemoryBudget &budget,
                                           const RematFigures &plan) {
  std::string words = plan.scope.words();
  std::string none = plan.status != planner::Status::Infeasible ? "none found"
                     : words.empty() ? "nothing fits"
                                     : "no plan" + words + " fits";
  return {budget.describe(), groupDigits(plan.budget),
          none + ", smallest " + groupDigits(plan.smallestFound)};
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
  auto trained = trainAtBudgets(options, budgets);
  if (!trained)
    return trained.takeError();
  const std::vector<TrainedRun> &runs = *trained;
  TextTable table;
  for (const char *header :
       {"budget", "bytes", "planned peak", "measured peak", "recomputed",
        "overhead (predicted)", "overhead (measured)", "bound", "final loss",
        "accuracy", "losses"})
    table.addColumn(header, TextTable::Right);
  const TrainedRun &first =
      *llvm::find_if(runs, [](const TrainedRun &run) { return run.trained(); });
  const TrainResult &base = first.result;
  const RematFigures &basePlan = first.compilation->summary().figures;
  bool equal = true;
  for (size_t i = 0; i < runs.size(); ++i) {
    const PlanSummary &summary = runs[i].compilation->summary();
    const RematFigures &plan = summary.figures;
    const TrainResult &result = runs[i].result;
    if (!runs[i].trained()) {
      table.addRow(refusedRow(budgets[i], plan));
      continue;
    }
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
         &runs[i] == &first ? ""
         : same             ? "same bits"
                            : "DIFFER"});
  }
  options.out() << "\n";
  table.print(options.out());
  options.out() << "bound: more search for a plan"
                << basePlan.scope.ofCost().words()
                << " could gain at most so much predicted time (proven)\n";
  if (!options.timeline.empty() || !options.trace.empty()) {
    Timeline timeline;
    timeline.title = options.compile.model;
    timeline.panels.push_back(
        first.compilation->timeline("without recomputation"));
    if (&runs.back() != &first && runs.back().trained())
      timeline.panels.push_back(runs.back().compilation->timeline(
          "budget: " + budgets.back().describe()));
    if (llvm::Error error = writeTimeline(options, timeline))
      return error;
    for (const std::string &path : {options.timeline, options.trace})
      tellWritten(options, path);
  }
  if (llvm::Error error = writeComparison(options, budgets, runs, equal))
    return error;
  if (!equal)
    return makeError(ExitInternal, "losses differ between budgets: this must "
                                   "never happen; please report it");
  return llvm::Error::success();
}
