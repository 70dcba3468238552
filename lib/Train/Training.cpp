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
#include <map>
#include <memory>
#include <utility>

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
  /// An update that was started.
  struct Update {
    int64_t step = 0;
    DataPosition at;
    RunPlace place;
    double loss =
        0; ///< the sum of its batches' losses, as far as they are read
    double seconds = 0;
    ProgressClock::time_point start;
  };
  bool savesBehind(const Update &update) const;
  bool isDue(const Update &update) const;
  llvm::Expected<bool> startUpdate(BatchStream &batches, Update &update);
  llvm::Error runPart(Update &update, int64_t after);
  void noteStart(const Update &update, int64_t after) const {
    if (!after && options.started)
      options.started(update.step);
  }
  llvm::Error takeLoss(Update &update);
  llvm::Error check(Update &update);
  llvm::Error tell(const Update &update);
  llvm::Error lookAtLast();
  llvm::Expected<Session *> sessionOf(int64_t samples);
  int64_t batchesIn(int64_t samples) const;
  void place(Update &update, DataPosition behind) const;
  llvm::Expected<bool> runStep(BatchStream &batches, Update &update);
  llvm::Error endStep(const Update &update, DataPosition position);
  llvm::Error runSteps(BatchStream &batches);
  TrainingState state(DataPosition position) const;
  llvm::Error save(DataPosition position);
  llvm::Error keepBest(DataPosition position);
  llvm::Error report(const Update &update);
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
  int64_t before = 0, end = 0; ///< the steps that the run lies between
  /// The device goes on with the next update before the last one's loss is
  /// read; `last` is that update, and `fetching` the tensor of the loss.
  bool runsOn = false;
  std::optional<Update> last;
  std::optional<int64_t> fetching;
  /// Of the batch that runs: `session`, or one of those of fewer samples.
  Session *running = nullptr;
  std::map<int64_t, std::unique_ptr<Session>> smaller;
  int64_t samplesTaken = 0;
  ProgressClock::time_point looked; ///< when a loss was last there
  std::unique_ptr<ProgressLine> progress;
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

/// Returns the session of a batch of fewer samples.
llvm::Expected<Session *> Trainer::sessionOf(int64_t samples) {
  std::unique_ptr<Session> &made = smaller[samples];
  if (!made)
    if (llvm::Error error = options.smaller(samples).moveInto(made))
      return std::move(error);
  return running = made.get();
}

/// Returns the batches of an epoch of so many samples.
int64_t Trainer::batchesIn(int64_t samples) const {
  int64_t batch = batchSize(session.manifest()) * session.ranks().size();
  bool takesRest = options.smaller && samples % batch >= options.leastSamples;
  return samples / batch + (takesRest && samples % batch);
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
  schedule = options.schedule;
  identity = options.identity;
  if (auto samples = source.numSamples()) {
    int64_t batches = options.epochs * batchesIn(*samples);
    updates = batches / options.accumulate;
    result.droppedBatches = batches % options.accumulate;
    if (batches > 0 && *updates == 0)
      return tooFew(batches);
    schedule.batchesPerEpoch = std::max<int64_t>(batchesIn(*samples), 1);
    schedule.batchesPerStep = options.accumulate;
    if (!schedule.totalSteps)
      schedule.totalSteps = schedule.byEpoch ? options.epochs : *updates;
    int64_t accounted =
        options.epochsBefore * batchesIn(*samples) / options.accumulate;
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
  llvm::Error failed = saved ? llvm::Error::success() : saved.takeError();
  if (session.isSharded()) // then ranks look at their weights together
    failed = session.ranks().agreeOnError(std::move(failed));
  if (failed)
    return failed;
  if (llvm::Error error =
          restoreRun(options.resume, session, *saved, identity,
                     options.schedule, [&](MessageText text) { warn(text); }))
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

bool Trainer::savesBehind(const Update &update) const {
  int64_t every = options.checkpointEvery;
  return every ? update.step % every == 0 : update.place.epochEnds;
}

/// Whether the state behind the update is read before another one starts.
bool Trainer::isDue(const Update &update) const {
  return update.step >= end || update.step % kStateCheckEvery == 0 ||
         validation.isDue(update.step, update.place.epochEnds) ||
         savesBehind(update);
}

/// Starts an update: all but the last micro-batch only add to the gradients'
/// sums. False: the run was over before it was made.
llvm::Expected<bool> Trainer::startUpdate(BatchStream &batches,
                                          Update &update) {
  update.step = ++stepNumber;
  update.at = batches.position();
  update.start = ProgressClock::now();
  session.ranks().forgetCollectives();
  for (int64_t micro = options.accumulate - 1; micro >= 0; --micro) {
    running = &session;
    auto samples = batches.feed([&](int64_t part) { return sessionOf(part); });
    if (!samples)
      return samples.takeError();
    samplesTaken += *samples * session.ranks().size();
    if (llvm::Error error = runPart(update, micro))
      return std::move(error);
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
  communication.push_back(session.ranks().collectiveSeconds());
  return true;
}

/// Runs a batch that `after` others of its update follow. If the run goes on
/// meanwhile, the loss that is waited for is that of the batch before.
llvm::Error Trainer::runPart(Update &update, int64_t after) {
  UpdateSettings settings{schedule, options.seed, options.accumulate};
  if (!runsOn) {
    auto outcome = runBatch(*running, settings, update.step, after);
    if (!outcome)
      return outcome.takeError();
    update.seconds += outcome->seconds;
    update.loss += outcome->loss;
    noteStart(update, after);
    return llvm::Error::success();
  }
  if (llvm::Error error = startBatch(session, settings, update.step, after))
    return error;
  noteStart(update, after);
  if (llvm::Error error = last ? lookAtLast() : takeLoss(update))
    return error;
  auto loss = beginLoss(session, after ? "accumulate" : "step");
  if (!loss)
    return loss.takeError();
  fetching = *loss;
  return llvm::Error::success();
}

llvm::Error Trainer::takeLoss(Update &update) {
  if (!fetching)
    return llvm::Error::success();
  auto loss = endLoss(session, *std::exchange(fetching, std::nullopt));
  if (!loss)
    return loss.takeError();
  update.loss += *loss;
  update.seconds += secondsSince(std::max(update.start, looked));
  looked = ProgressClock::now();
  return llvm::Error::success();
}

/// Takes the update's loss, and looks whether it went wrong.
llvm::Error Trainer::check(Update &update) {
  if (llvm::Error error = takeLoss(update))
    return error;
  seconds.push_back(update.seconds);
  update.loss /= double(options.accumulate);
  result.losses.push_back(update.loss);
  if (llvm::Error error = skips.update(session, update.step))
    return error;
  return checkUpdate(session, update.loss, update.step, skips.skipped());
}

/// Looks at the update that ran before the one that was just started.
llvm::Error Trainer::lookAtLast() {
  Update update = *std::exchange(last, std::nullopt);
  if (llvm::Error error = check(update))
    return error;
  return tell(update);
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

/// Tells the caller of the update, evaluated where it is time.
llvm::Error Trainer::report(const Update &update) {
  StepReport step{update.step,
                  update.at,
                  update.loss,
                  schedule.at(update.step),
                  update.seconds,
                  std::nullopt,
                  classifies(dataOptions),
                  skips.state(),
                  skips.skipped()};
  if (validation.isDue(update.step, update.place.epochEnds)) {
    auto evaluation = validation.evaluate(update.step);
    if (!evaluation)
      return evaluation.takeError();
    step.validation = evaluation->sums;
    progress->validated(update.step, evaluation->sums,
                        describeMetrics(evaluation->sums, step.classified,
                                        dataOptions.metrics));
  }
  if (log)
    if (llvm::Error error = log->add(step))
      return error;
  return options.report ? options.report(step) : llvm::Error::success();
}

/// Shows and reports the update.
llvm::Error Trainer::tell(const Update &update) {
  std::string scale;
  if (skips.state())
    scale = "  scale " + skips.state()->text() + ", " +
            std::to_string(skips.count()) + " skipped";
  progress->step(update.place, update.loss, update.seconds, scale);
  if (skips.isStuck()) {
    progress->finish();
    warn(skips.describe());
  }
  if (!skips.skipped() && watch.add(update.step, update.loss)) {
    progress->finish();
    warn(watch.describe());
  }
  return report(update);
}

/// Notes where in the run the update is, before the batches from `behind` on.
void Trainer::place(Update &update, DataPosition behind) const {
  int64_t batch = batchSize(session.manifest()) * session.ranks().size();
  RunPlace &place = update.place;
  place.epoch = update.at.epoch;
  place.inEpoch = update.at.position / batch + 1;
  place.epochEnds = behind.epoch != update.at.epoch;
  place.stepsDone = update.step - before;
  place.samples = samplesTaken;
  if (end != INT64_MAX)
    place.stepsLeft = end - update.step;
}

/// Makes one update, and looks at it, or at the one before it (then `last` is
/// this one). False: the run was over before it was made.
llvm::Expected<bool> Trainer::runStep(BatchStream &batches, Update &update) {
  auto made = startUpdate(batches, update);
  if (!made || !*made)
    return made;
  place(update, batches.position());
  if (runsOn && !isDue(update)) {
    if (llvm::Error error = stop.afterStep().moveInto(result.stopped))
      return std::move(error);
    if (!result.stopped) {
      last = update;
      return true;
    }
  }
  if (llvm::Error error = check(update))
    return std::move(error);
  return true;
}

/// What follows an update that nothing runs behind.
llvm::Error Trainer::endStep(const Update &update, DataPosition position) {
  if (llvm::Error error = tell(update))
    return error;
  if (validation.isDue(update.step, update.place.epochEnds))
    if (llvm::Error error = keepBest(position))
      return error;
  if (llvm::Error error = stop.afterStep().moveInto(result.stopped))
    return session.ranks().withRank(std::move(error), stepNumber);
  return savesBehind(update) || result.stopped ? save(position)
                                               : llvm::Error::success();
}

llvm::Error Trainer::runSteps(BatchStream &batches) {
  int64_t perEpoch = batchesIn(source.numSamples().value_or(0));
  int64_t epochs = options.epochsBefore + options.epochs;
  progress = std::make_unique<ProgressLine>(options.progress, epochs, perEpoch);
  end = updates.value_or(INT64_MAX);
  if (options.maxSteps)
    end = std::min(options.stepsBefore + options.maxSteps, end);
  before = stepNumber;
  runsOn = mayRunOn(session, skips) && (!options.report || options.reportsLate);
  session.ranks().endPreparing();
  while (stepNumber < end && !validation.isEnough() && !result.stopped &&
         !isOver(batches)) {
    Update update;
    auto made = runStep(batches, update);
    if (made && *made && last)
      continue; // it is looked at when the next one runs
    if (!made || !*made) {
      llvm::Error error = last ? lookAtLast() : llvm::Error::success();
      if (!made)
        error = llvm::joinErrors(
            std::move(error),
            session.ranks().withRank(made.takeError(), stepNumber));
      progress->finish();
      return llvm::joinErrors(std::move(error), clearGradientSums(session));
    }
    if (llvm::Error error = endStep(update, batches.position()))
      return error;
  }
  if (last)
    if (llvm::Error error = lookAtLast())
      return session.ranks().withRank(std::move(error), stepNumber);
  progress->finish();
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
      BatchStream::create(std::move(*feeder), source, options.seed, position,
                          options.smaller ? options.leastSamples : 0);
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
