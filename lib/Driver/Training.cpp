//===- Training.cpp - the loop around a compiled step ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Feeding.h"
#include "Progress.h"
#include "RunChecks.h"
#include "ckopt/Support/Error.h"
#include <cmath>

using namespace ckopt;
using runtime::TensorRole;

namespace {

/// Whether an evaluation has an accuracy.
bool classifies(const DataOptions &options) {
  return options.loss == "cross_entropy" ||
         (options.loss.empty() && options.classify);
}

/// The state of one training run.
class Trainer {
public:
  Trainer(Session &session, BatchSource &source, const DataOptions &dataOptions,
          const TrainOptions &options)
      : session(session), source(source), dataOptions(dataOptions),
        options(options) {}

  llvm::Expected<TrainResult> run();

private:
  llvm::Error checkCounts() const;
  void warn(std::string text) const;
  llvm::Error findValidation();
  llvm::Error resume(DataPosition &position);
  llvm::Error planUpdates();
  llvm::Error planUnknown();
  llvm::Error checkHorizon(const StringMetadata &saved) const;
  llvm::Error runOnce(const char *function, double &time, double &loss);
  llvm::Error runStep(BatchStream &batches);
  llvm::Error runSteps(BatchStream &batches);
  llvm::Error save(DataPosition position);
  llvm::Error report(DataPosition at, ProgressLine &progress);
  llvm::Error finish();
  llvm::Error evaluateAverages();

  Session &session;
  BatchSource &source;
  std::unique_ptr<BatchSource> heldOut;
  BatchSource *validation = nullptr; ///< null: nothing to evaluate
  const DataOptions &dataOptions;
  const TrainOptions &options;
  TrainResult result;
  LearningRateSchedule schedule;
  StringMetadata identity;
  /// Of the whole run, whatever --max-steps says; nothing: only the source's
  /// end will tell.
  std::optional<int64_t> updates = 0;
  int64_t stepNumber = 0;
  std::vector<double> seconds;
  DivergenceWatch watch;
};

} // namespace

constexpr const char *horizonKey = "schedule-steps";

llvm::Error Trainer::checkCounts() const {
  if (options.epochs < 0 || options.maxSteps < 0 ||
      options.checkpointEvery < 0 || options.validateEvery < 0)
    return usageError("epochs and steps must not be negative");
  if (options.accumulate < 1)
    return usageError("an update needs at least one batch");
  return llvm::Error::success();
}

void Trainer::warn(std::string text) const {
  Message message{Message::Severity::Warning, "", std::move(text)};
  options.messages ? options.messages(message) : printMessage(message);
}

llvm::Error Trainer::findValidation() {
  if (options.validation && options.holdout > 0)
    return usageError("evaluate on validation samples or on held-out ones, not "
                      "on both");
  auto rest = source.holdOut(options.holdout, options.seed);
  if (!rest)
    return rest.takeError();
  heldOut = std::move(*rest);
  validation = heldOut ? heldOut.get() : options.validation;
  return llvm::Error::success();
}

/// What needs to know how many samples there are.
llvm::Error Trainer::planUnknown() {
  updates = std::nullopt;
  const char *need = schedule.byEpoch ? "a learning rate by epochs"
                     : schedule.hasEnd() && !schedule.totalSteps
                         ? "a schedule without a given end"
                     : options.accumulate > 1 ? "accumulation"
                                              : nullptr;
  if (need)
    return usageError(source.name() +
                      " does not say how many samples it has, "
                      "and " +
                      need + " needs to know");
  return llvm::Error::success();
}

/// Whole updates that the epochs have; a schedule ends with the last of them,
/// so that a run which stops earlier can go on as if it never had.
llvm::Error Trainer::planUpdates() {
  int64_t batch = batchSize(session.manifest());
  schedule = options.schedule;
  identity = options.identity;
  if (auto samples = source.numSamples()) {
    int64_t batches = options.epochs * (*samples / batch);
    updates = batches / options.accumulate;
    result.droppedBatches = batches % options.accumulate;
    if (batches > 0 && *updates == 0)
      return inputError("one update takes " + llvm::Twine(options.accumulate) +
                        " batches of " + llvm::Twine(batch) +
                        " samples, but the run has " + llvm::Twine(batches) +
                        " in all; give a smaller --accumulate or more "
                        "--epochs");
    schedule.batchesPerEpoch = std::max<int64_t>(*samples / batch, 1);
    schedule.batchesPerStep = options.accumulate;
    if (!schedule.totalSteps)
      schedule.totalSteps = schedule.byEpoch ? options.epochs : *updates;
  } else if (llvm::Error error = planUnknown()) {
    return error;
  }
  if (!schedule.hasEnd())
    return schedule.verify();
  identity[horizonKey] = std::to_string(schedule.totalSteps);
  return updates != 0 ? schedule.verify() : llvm::Error::success();
}

/// Refuses to resume if the schedule ends at another step, because its rates
/// differ.
llvm::Error Trainer::checkHorizon(const StringMetadata &saved) const {
  auto was = saved.find(horizonKey), is = identity.find(horizonKey);
  if (was == saved.end() || is == identity.end() || was->second == is->second)
    return llvm::Error::success();
  return inputError(options.resume + ": its learning-rate schedule ends at " +
                    (schedule.byEpoch ? "epoch " : "step ") + was->second +
                    ", this run's at " +
                    (schedule.byEpoch ? "epoch " : "step ") + is->second +
                    "; give the --epochs that it was started with (and "
                    "--max-steps to stop earlier)");
}

llvm::Error Trainer::resume(DataPosition &position) {
  if (options.resume.empty())
    return llvm::Error::success();
  if (!source.canSeek())
    return inputError(options.resume +
                      ": the run cannot go on: " + source.name() +
                      " cannot go back to the sample where it stood");
  auto checkpoint = readCheckpoint(options.resume);
  if (!checkpoint)
    return checkpoint.takeError();
  if (llvm::Error error = checkHorizon(checkpoint->state.options))
    return error;
  if (llvm::Error error =
          checkOptions(checkpoint->state.options, identity, options.resume))
    return error;
  if (llvm::Error error = session.restore(checkpoint->tensors, options.resume))
    return error;
  stepNumber = checkpoint->state.step;
  position = checkpoint->state.data;
  return llvm::Error::success();
}

llvm::Error Trainer::save(DataPosition position) {
  if (options.checkpoint.empty())
    return llvm::Error::success();
  Checkpoint checkpoint;
  auto tensors = session.weights(/*optimizerState=*/true);
  if (!tensors)
    return tensors.takeError();
  if (llvm::Error error = checkFinite(*tensors, stepNumber))
    return error;
  checkpoint.tensors = std::move(*tensors);
  checkpoint.state.step = stepNumber;
  checkpoint.state.data = position;
  checkpoint.state.seed = options.seed;
  checkpoint.state.options = identity;
  return writeCheckpoint(options.checkpoint, checkpoint);
}

/// Runs one function on one batch and adds up its time and loss.
llvm::Error Trainer::runOnce(const char *function, double &time, double &loss) {
  auto start = ProgressClock::now();
  if (llvm::Error error = session.run(function))
    return withContext(std::move(error), "step " + llvm::Twine(stepNumber));
  time += secondsSince(start);
  auto value = readLoss(session, function);
  if (!value)
    return value.takeError();
  loss += *value;
  return llvm::Error::success();
}

/// One update: all but the last micro-batch only add to the gradients' sums.
llvm::Error Trainer::runStep(BatchStream &batches) {
  ++stepNumber;
  if (llvm::Error error = session.fill(TensorRole::Step, double(stepNumber)))
    return error;
  if (llvm::Error error =
          session.fill(TensorRole::LearningRate, schedule.at(stepNumber)))
    return error;
  double time = 0, loss = 0;
  for (int64_t micro = options.accumulate - 1; micro >= 0; --micro) {
    if (llvm::Error error = batches.feed())
      return error;
    if (options.accumulate > 1)
      if (llvm::Error error = setSeed(session, microSeed(options.seed, micro)))
        return error;
    if (llvm::Error error = runOnce(micro ? "accumulate" : "step", time, loss))
      return error;
  }
  seconds.push_back(time);
  loss /= double(options.accumulate);
  result.losses.push_back(loss);
  if (llvm::Error error = checkFinite(loss, "loss", stepNumber))
    return error;
  if (llvm::Error error = checkGradientNorm(session, stepNumber))
    return error;
  if (stepNumber % kStateCheckEvery == 0)
    return checkState(session, stepNumber);
  return llvm::Error::success();
}

llvm::Error Trainer::finish() {
  result.steps = stepNumber;
  if (!result.losses.empty()) {
    result.firstLoss = result.losses.front();
    result.finalLoss = result.losses.back();
  }
  if (!seconds.empty()) {
    std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2,
                     seconds.end());
    result.stepSeconds = seconds[seconds.size() / 2];
  }
  if (validation) {
    auto evaluation = evaluate(session, *validation, dataOptions);
    if (!evaluation)
      return evaluation.takeError();
    result.evaluation = evaluation->sums;
    result.evaluated = evaluation->samples;
    result.classified = classifies(dataOptions);
  }
  if (watch.leftAt() && !watch.wasReported())
    warn(watch.describe());
  result.divergedAt = watch.leftAt();
  result.dataBytes = source.bytesInMemory();
  auto peak = session.measuredPeak();
  if (!peak)
    return peak.takeError();
  result.measuredPeak = *peak;
  return llvm::Error::success();
}

/// Evaluates the averaged weights in place of the trained ones, which come back
/// afterwards.
llvm::Error Trainer::evaluateAverages() {
  if (!options.averages || !validation || stepNumber == 0)
    return llvm::Error::success();
  auto averages = averagedWeights(session);
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
    trained.set(session.info_of(index).name, std::move(*value));
  }
  if (llvm::Error error = write(*averages))
    return error;
  auto evaluation = evaluate(session, *validation, dataOptions);
  if (!evaluation)
    return evaluation.takeError();
  result.averageEvaluation = evaluation->sums;
  return write(trained);
}

/// Tells the caller of the step that began at `at`, evaluated where it is time.
llvm::Error Trainer::report(DataPosition at, ProgressLine &progress) {
  StepReport step{stepNumber,
                  at,
                  result.losses.back(),
                  schedule.at(stepNumber),
                  seconds.back(),
                  std::nullopt,
                  classifies(dataOptions)};
  if (validation && options.validateEvery &&
      stepNumber % options.validateEvery == 0) {
    auto evaluation = evaluate(session, *validation, dataOptions);
    if (!evaluation)
      return evaluation.takeError();
    step.validation = evaluation->sums;
    progress.validated(stepNumber, evaluation->sums, step.classified);
  }
  return options.report ? options.report(step) : llvm::Error::success();
}

llvm::Error Trainer::runSteps(BatchStream &batches) {
  int64_t batch = batchSize(session.manifest());
  int64_t perEpoch = source.numSamples().value_or(0) / batch;
  ProgressLine progress(options.progress, options.epochs, perEpoch);
  int64_t end = updates.value_or(INT64_MAX);
  if (options.maxSteps)
    end = std::min(options.maxSteps, end);
  while (stepNumber < end &&
         (updates || batches.position().epoch < options.epochs)) {
    DataPosition at = batches.position();
    llvm::Error error = runStep(batches);
    if (!error)
      error = batches.lookAhead();
    if (error) {
      progress.finish();
      return error;
    }
    bool epochEnds = batches.position().epoch != at.epoch;
    progress.step(at.epoch, at.position / batch + 1, epochEnds,
                  result.losses.back(), seconds.back());
    if (watch.add(stepNumber, result.losses.back())) {
      progress.finish();
      warn(watch.describe());
    }
    if (llvm::Error error = report(at, progress))
      return error;
    bool due = options.checkpointEvery
                   ? stepNumber % options.checkpointEvery == 0
                   : epochEnds;
    if (due)
      if (llvm::Error error = save(batches.position()))
        return error;
  }
  progress.finish();
  return llvm::Error::success();
}

llvm::Expected<TrainResult> Trainer::run() {
  if (llvm::Error error = checkCounts())
    return std::move(error);
  if (llvm::Error error = findValidation())
    return std::move(error);
  if (llvm::Error error = planUpdates())
    return std::move(error);
  DataPosition position;
  if (llvm::Error error = resume(position))
    return std::move(error);
  auto feeder = Feeder::create(session, source, dataOptions);
  if (!feeder)
    return feeder.takeError();
  auto batches =
      BatchStream::create(std::move(*feeder), source, options.seed, position);
  if (!batches)
    return batches.takeError();
  if (llvm::Error error = setSeed(session, options.seed))
    return std::move(error);
  if (llvm::Error error = runSteps(*batches))
    return std::move(error);
  result.nothingToDo = result.losses.empty();
  result.droppedPerEpoch = batches->dropped();
  if (stepNumber != updates)
    result.droppedBatches = 0; // the run stopped before the epoch's end
  result.position = batches->position();
  if (llvm::Error error = save(batches->position()))
    return std::move(error);
  if (options.trained) {
    if (llvm::Error error = checkState(session, stepNumber))
      return std::move(error);
    if (llvm::Error error = options.trained(stepNumber))
      return std::move(error);
  }
  if (llvm::Error error = finish())
    return std::move(error);
  if (llvm::Error error = evaluateAverages())
    return std::move(error);
  return std::move(result);
}

llvm::Expected<TrainResult> ckopt::train(Session &session, BatchSource &source,
                                         const DataOptions &dataOptions,
                                         const TrainOptions &options) {
  return Trainer(session, source, dataOptions, options).run();
}
