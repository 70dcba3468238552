//===- Training.cpp - the loop around a compiled step ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TrainLog.h"
#include "Updates.h"
#include "ckopt/Runtime/KeepAlive.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Train/Feeding.h"
#include "ckopt/Train/Progress.h"
#include "ckopt/Train/RunChecks.h"
#include "ckopt/Train/Stopping.h"
#include "ckopt/Train/TrainRanks.h"
#include "ckopt/Train/Validation.h"
#include <cmath>

using namespace ckopt;
using runtime::TensorRole;

namespace {

/// The state of one training run.
class Trainer {
public:
  Trainer(Session &session, BatchSource &source, const StepData &dataOptions,
          const TrainOptions &options)
      : session(session), source(source), dataOptions(dataOptions),
        options(options), validation(session, dataOptions, options),
        checkpoint(options.checkpoint), best(options.keepBest),
        stop(options.stopAsked, session.ranks()) {}

  llvm::Expected<TrainResult> run();

private:
  llvm::Error checkCounts() const;
  void warn(MessageText text) const;
  llvm::Error resume(DataPosition &position);
  llvm::Error planUpdates();
  llvm::Error planUnknown();
  llvm::Error tooFew(int64_t batches) const;
  bool isOver(const BatchStream &batches) const;
  llvm::Expected<bool> runStep(BatchStream &batches);
  llvm::Error runSteps(BatchStream &batches);
  TrainingState state(DataPosition position) const;
  llvm::Error save(DataPosition position);
  llvm::Error keepBest(DataPosition position);
  llvm::Error report(DataPosition at, bool epochEnds, ProgressLine &progress);
  llvm::Error finish(DataPosition position);
  llvm::Error evaluateLast(DataPosition position);
  llvm::Error evaluateAverages();

  Session &session;
  BatchSource &source;
  const StepData &dataOptions;
  const TrainOptions &options;
  Validation validation;
  std::unique_ptr<TrainLog> log;
  TrainResult result;
  LearningRateSchedule schedule;
  StringMetadata identity;
  /// Of the whole run, whatever --max-steps says; nothing: only the source's
  /// end will tell.
  std::optional<int64_t> updates = 0;
  int64_t stepNumber = 0;
  /// Those of `options`; of several ranks, those of rank 0.
  std::string checkpoint, best;
  std::vector<double> seconds, communication;
  DivergenceWatch watch;
  SkipWatch skips;
  StopCheck stop;
};

} // namespace

/// The option of a checkpoint that counts updates of no epoch of its run.
constexpr const char *beforeKey = "steps-before";

llvm::Error Trainer::checkCounts() const {
  if (options.epochs < 0 || options.maxSteps < 0 ||
      options.checkpointEvery < 0 || options.stepsBefore < 0 ||
      options.epochsBefore < 0)
    return usageError("epochs and steps must not be negative");
  if (options.accumulate < 1)
    return usageError("an update needs at least one batch");
  return checkRunFiles(options);
}

void Trainer::warn(MessageText text) const {
  Message message{Message::Severity::Warning, "", std::move(text)};
  options.messages ? options.messages(message) : printMessage(message);
}

/// What needs to know how many samples there are.
llvm::Error Trainer::planUnknown() {
  updates = std::nullopt;
  bool byEpoch = schedule.byEpoch;
  if (!byEpoch && (!schedule.hasEnd() || schedule.totalSteps))
    return llvm::Error::success();
  return usageError(llvm::Twine(byEpoch ? "a learning rate by epochs"
                                        : "a schedule without a given end") +
                    " needs to know how many samples there are, which is not "
                    "known of " +
                    source.name());
}

llvm::Error Trainer::tooFew(int64_t batches) const {
  return inputError(
      "one update takes " + llvm::Twine(options.accumulate) + " batches of " +
      llvm::Twine(batchSize(session.manifest()) * session.ranks().size()) +
      " samples, but the run has " + llvm::Twine(batches) +
      " in all; give a smaller " + Setting("accumulate") + " or more " +
      Setting("epochs"));
}

/// Whole updates that the epochs have; a schedule ends with the last of them,
/// so that a run which stops earlier can go on as if it never had.
llvm::Error Trainer::planUpdates() {
  int64_t batch = batchSize(session.manifest()) * session.ranks().size();
  schedule = options.schedule;
  identity = options.identity;
  if (auto samples = source.numSamples()) {
    int64_t batches = options.epochs * (*samples / batch);
    updates = batches / options.accumulate;
    result.droppedBatches = batches % options.accumulate;
    if (batches > 0 && *updates == 0)
      return tooFew(batches);
    schedule.batchesPerEpoch = std::max<int64_t>(*samples / batch, 1);
    schedule.batchesPerStep = options.accumulate;
    if (!schedule.totalSteps)
      schedule.totalSteps = schedule.byEpoch ? options.epochs : *updates;
    int64_t accounted =
        options.epochsBefore * (*samples / batch) / options.accumulate;
    if (options.stepsBefore != accounted)
      identity[beforeKey] = std::to_string(options.stepsBefore - accounted);
    *updates += options.stepsBefore;
  } else if (llvm::Error error = planUnknown()) {
    return error;
  }
  if (!schedule.hasEnd())
    return schedule.verify();
  identity[horizonKey] = std::to_string(schedule.totalSteps);
  return updates != 0 ? schedule.verify() : llvm::Error::success();
}

llvm::Error Trainer::resume(DataPosition &position) {
  if (options.resume.empty()) {
    stepNumber = options.stepsBefore;
    position.epoch = options.epochsBefore;
    return llvm::Error::success();
  }
  if (!source.canSeek())
    return inputError(options.resume +
                      ": the run cannot go on: " + source.name() +
                      " cannot go back to the sample where it stood");
  auto saved = openCheckpoint(options.resume);
  if (!saved)
    return saved.takeError();
  if (llvm::Error error = restoreRun(options.resume, session, *saved, identity,
                                     options.schedule))
    return error;
  if (!saved->tensors.hasChecksums())
    warn(options.resume + ": it has no checksum, so that damage to it cannot "
                          "be seen; checkpoints that this ckopt writes have "
                          "one");
  if (!validation.resume(saved->state.best))
    warn(options.resume + ": its best evaluation was by '" +
         saved->state.best->metric + "', this run looks for another");
  stepNumber = saved->state.step;
  position = saved->state.data;
  return llvm::Error::success();
}

TrainingState Trainer::state(DataPosition position) const {
  return {stepNumber, position, options.seed, identity, validation.bestSoFar()};
}

llvm::Error Trainer::save(DataPosition position) {
  if (checkpoint.empty())
    return llvm::Error::success();
  return session.ranks().withRank(saveRun(checkpoint, session, state(position)),
                                  stepNumber);
}

/// Writes --keep-best where the evaluation after this step was the best.
llvm::Error Trainer::keepBest(DataPosition position) {
  if (best.empty() || !validation.isBest(stepNumber))
    return llvm::Error::success();
  if (llvm::StringRef(best).ends_with(".safetensors"))
    return session.ranks().withRank(saveRun(best, session, state(position)),
                                    stepNumber);
  if (!session.ranks().isMain() && !session.isSharded())
    return llvm::Error::success();
  if (!options.writeWeights)
    return usageError("the best weights go to a .safetensors file; how others "
                      "are written is not known (TrainOptions::writeWeights)");
  if (llvm::Error error = checkState(session, stepNumber))
    return error;
  return options.writeWeights(best);
}

/// Whether a source whose length was not known has shown its end.
bool Trainer::isOver(const BatchStream &batches) const {
  return !updates &&
         batches.position().epoch >= options.epochsBefore + options.epochs;
}

/// One update: all but the last micro-batch only add to the gradients' sums.
/// False: the run was over before it was made.
llvm::Expected<bool> Trainer::runStep(BatchStream &batches) {
  ++stepNumber;
  double time = 0, loss = 0;
  session.ranks().forgetCollectives();
  for (int64_t micro = options.accumulate - 1; micro >= 0; --micro) {
    if (llvm::Error error = batches.feed())
      return std::move(error);
    auto outcome =
        runBatch(session, {schedule, options.seed, options.accumulate},
                 stepNumber, micro);
    if (!outcome)
      return outcome.takeError();
    time += outcome->seconds;
    loss += outcome->loss;
    if (llvm::Error error = batches.lookAhead())
      return std::move(error);
    if (micro && isOver(batches)) {
      --stepNumber;
      result.droppedBatches = options.accumulate - micro;
      if (result.losses.empty())
        return tooFew(result.droppedBatches);
      return false;
    }
  }
  seconds.push_back(time);
  communication.push_back(session.ranks().collectiveSeconds());
  loss /= double(options.accumulate);
  result.losses.push_back(loss);
  if (llvm::Error error = skips.update(session, stepNumber))
    return std::move(error);
  if (llvm::Error error =
          checkUpdate(session, loss, stepNumber, skips.skipped()))
    return std::move(error);
  return true;
}

/// Evaluates what the run ends with. It may be the best, which a checkpoint
/// written before does not say.
llvm::Error Trainer::evaluateLast(DataPosition position) {
  if (!validation.exists())
    return llvm::Error::success();
  bool wasBest = validation.isBest(stepNumber);
  auto evaluation = validation.evaluate(stepNumber);
  if (!evaluation)
    return evaluation.takeError();
  result.evaluation = evaluation->sums;
  result.evaluated = evaluation->samples;
  result.allIgnored = evaluation->allIgnored;
  result.classified = classifies(dataOptions);
  if (wasBest || !validation.isBest(stepNumber))
    return llvm::Error::success();
  if (llvm::Error error = keepBest(position))
    return error;
  return best.empty() ? llvm::Error::success() : save(position);
}

/// Reorders the numbers.
static double medianOf(std::vector<double> &numbers) {
  auto middle = numbers.begin() + int64_t(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

llvm::Error Trainer::finish(DataPosition position) {
  if (!result.losses.empty()) {
    result.firstLoss = result.losses.front();
    result.finalLoss = result.losses.back();
  }
  if (!seconds.empty()) {
    result.stepSeconds = medianOf(seconds);
    if (llvm::Error error =
            gatherTraffic(session.ranks(), result.communication))
      return error;
    result.communication.seconds = medianOf(communication);
  }
  if (llvm::Error error = evaluateLast(position))
    return error;
  result.validations = validation.points();
  result.best = validation.bestSoFar();
  if (watch.leftAt() && !watch.wasReported())
    warn(watch.describe());
  result.divergedAt = watch.leftAt();
  result.lossScale = skips.state();
  result.skippedUpdates = skips.count();
  auto made = int64_t(result.losses.size());
  if (made && skips.count() == made)
    warn(skips.describeUseless(made));
  result.dataBytes = source.bytesInMemory();
  result.classes = source.classNames();
  auto peak = session.measuredPeak();
  if (!peak)
    return peak.takeError();
  result.measuredPeak = *peak;
  auto peaks = session.ranks().gather(*peak);
  if (!peaks)
    return peaks.takeError();
  result.rankPeaks = std::move(*peaks);
  return llvm::Error::success();
}

/// Evaluates the averaged weights in place of the trained ones, which come back
/// afterwards.
llvm::Error Trainer::evaluateAverages() {
  if (!options.averages || !validation.exists() || stepNumber == 0)
    return llvm::Error::success();
  auto averages = averagedWeights(session, /*own=*/true);
  if (!averages)
    return averages.takeError();
  auto write = [&](const TensorMap &values) -> llvm::Error {
    for (const auto &[name, value] : values) {
      auto index = session.find(name);
      if (!index)
        return index.takeError();
      if (llvm::Error error = session.write(*index, value))
        return error;
    }
    return llvm::Error::success();
  };
  TensorMap trained;
  for (int64_t index : session.tensors(TensorRole::Parameter)) {
    auto value = session.read(index);
    if (!value)
      return value.takeError();
    trained.set(session.infoOf(index).name, std::move(*value));
  }
  if (llvm::Error error = write(*averages))
    return error;
  auto evaluation = evaluateOnMain(session, validation.source(), dataOptions);
  if (!evaluation)
    return evaluation.takeError();
  result.averageEvaluation = evaluation->sums;
  return write(trained);
}

/// Tells the caller of the step that began at `at`, evaluated where it is time.
llvm::Error Trainer::report(DataPosition at, bool epochEnds,
                            ProgressLine &progress) {
  StepReport step{stepNumber,
                  at,
                  result.losses.back(),
                  schedule.at(stepNumber),
                  seconds.back(),
                  std::nullopt,
                  classifies(dataOptions),
                  skips.state(),
                  skips.skipped()};
  if (validation.isDue(stepNumber, epochEnds)) {
    auto evaluation = validation.evaluate(stepNumber);
    if (!evaluation)
      return evaluation.takeError();
    step.validation = evaluation->sums;
    progress.validated(stepNumber, evaluation->sums,
                       describeMetrics(evaluation->sums, step.classified,
                                       dataOptions.metrics));
  }
  if (log)
    if (llvm::Error error = log->add(step))
      return error;
  return options.report ? options.report(step) : llvm::Error::success();
}

llvm::Error Trainer::runSteps(BatchStream &batches) {
  int64_t batch = batchSize(session.manifest()) * session.ranks().size();
  int64_t perEpoch = source.numSamples().value_or(0) / batch;
  int64_t epochs = options.epochsBefore + options.epochs;
  ProgressLine progress(options.progress, epochs, perEpoch);
  int64_t end = updates.value_or(INT64_MAX);
  if (options.maxSteps)
    end = std::min(options.stepsBefore + options.maxSteps, end);
  int64_t before = stepNumber;
  session.ranks().endPreparing();
  while (stepNumber < end && !validation.isEnough() && !result.stopped &&
         !isOver(batches)) {
    DataPosition at = batches.position();
    auto made = runStep(batches);
    if (!made || !*made) {
      progress.finish();
      if (llvm::Error error = clearGradientSums(session))
        return made ? std::move(error)
                    : llvm::joinErrors(made.takeError(), std::move(error));
      return made ? llvm::Error::success()
                  : session.ranks().withRank(made.takeError(), stepNumber);
    }
    bool epochEnds = batches.position().epoch != at.epoch;
    RunPlace place;
    place.epoch = at.epoch;
    place.inEpoch = at.position / batch + 1;
    place.epochEnds = epochEnds;
    place.stepsDone = stepNumber - before;
    place.samples = place.stepsDone * options.accumulate * batch;
    if (end != INT64_MAX)
      place.stepsLeft = end - stepNumber;
    std::string scale;
    if (skips.state())
      scale = "  scale " + skips.state()->text() + ", " +
              std::to_string(skips.count()) + " skipped";
    progress.step(place, result.losses.back(), seconds.back(), scale);
    if (skips.isStuck()) {
      progress.finish();
      warn(skips.describe());
    }
    if (!skips.skipped() && watch.add(stepNumber, result.losses.back())) {
      progress.finish();
      warn(watch.describe());
    }
    if (llvm::Error error = report(at, epochEnds, progress))
      return error;
    if (validation.isDue(stepNumber, epochEnds))
      if (llvm::Error error = keepBest(batches.position()))
        return error;
    bool due = options.checkpointEvery
                   ? stepNumber % options.checkpointEvery == 0
                   : epochEnds;
    if (llvm::Error error = stop.afterStep().moveInto(result.stopped))
      return session.ranks().withRank(std::move(error), stepNumber);
    if (due || result.stopped)
      if (llvm::Error error = save(batches.position()))
        return error;
  }
  progress.finish();
  result.stoppedEarly = validation.isEnough();
  return llvm::Error::success();
}

llvm::Expected<TrainResult> Trainer::run() {
  if (llvm::Error error = checkCounts())
    return std::move(error);
  if (llvm::Error error = validation.open(source))
    return std::move(error);
  if (llvm::Error error = planUpdates())
    return std::move(error);
  DataPosition position;
  if (llvm::Error error = resume(position))
    return std::move(error);
  for (std::string *path : {&checkpoint, &best})
    if (llvm::Error error = session.ranks().shareMainPath(*path))
      return std::move(error);
  if (llvm::Error error = skips.begin(session))
    return std::move(error);
  std::optional<int64_t> after;
  if (!options.resume.empty() || options.stepsBefore > 0)
    after = stepNumber;
  auto opened = TrainLog::open(options.log, dataOptions.metrics,
                               skips.state().has_value(), after);
  if (!opened)
    return opened.takeError();
  log = std::move(*opened);
  auto feeder = Feeder::create(session, source, dataOptions,
                               /*needTargets=*/true, Feeder::Rows::Own);
  if (!feeder)
    return feeder.takeError();
  if (llvm::Error error = feeder->compareFirst(options.seed, position))
    return std::move(error);
  auto batches =
      BatchStream::create(std::move(*feeder), source, options.seed, position);
  if (!batches)
    return batches.takeError();
  if (llvm::Error error = setSeed(session, options.seed))
    return std::move(error);
  if (llvm::Error error = runSteps(*batches))
    return std::move(error);
  result.position = batches->position();
  result.steps = stepNumber;
  if (result.stopped)
    return std::move(result);
  runtime::KeepAlive alive;
  if (llvm::Error error = checkSameState(session))
    return std::move(error);
  result.nothingToDo = result.losses.empty();
  result.droppedPerEpoch = batches->dropped();
  if (updates && stepNumber != *updates)
    result.droppedBatches = 0; // the run stopped before the epoch's end
  if (llvm::Error error = save(batches->position()))
    return std::move(error);
  if (options.trained) {
    if (llvm::Error error = checkState(session, stepNumber))
      return std::move(error);
    if (llvm::Error error = options.trained(stepNumber))
      return std::move(error);
  }
  if (llvm::Error error = finish(batches->position()))
    return std::move(error);
  if (llvm::Error error = evaluateAverages())
    return std::move(error);
  return std::move(result);
}

llvm::Expected<TrainResult> ckopt::train(Session &session, BatchSource &source,
                                         const StepData &dataOptions,
                                         const TrainOptions &options) {
  return Trainer(session, source, dataOptions, options).run();
}
