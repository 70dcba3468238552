//===- Training.cpp - the loop around a compiled step ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Driver/Training.h"
#include "RunChecks.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Report.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <cmath>

using namespace ckopt;
using runtime::TensorRole;

using Clock = std::chrono::steady_clock;

static double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

namespace {

/// One line that is written over on a terminal, and a line an epoch elsewhere.
class ProgressLine {
public:
  ProgressLine(bool on, int64_t epochs, int64_t stepsPerEpoch)
      : on(on), live(llvm::sys::Process::StandardErrIsDisplayed()),
        epochs(epochs), stepsPerEpoch(stepsPerEpoch), start(Clock::now()) {}

  void step(int64_t epoch, int64_t inEpoch, double loss, double seconds) {
    bool last = inEpoch == stepsPerEpoch;
    if (!on || (!live && !last) || (live && !last && secondsSince(shown) < 0.1))
      return;
    shown = Clock::now();
    llvm::errs() << (live ? "\r" : "")
                 << llvm::format("epoch %lld/%lld  step %lld/%lld  loss %.6f  "
                                 "%.2f ms/step  %.1f s",
                                 (long long)epoch + 1, (long long)epochs,
                                 (long long)inEpoch, (long long)stepsPerEpoch,
                                 loss, seconds * 1e3, secondsSince(start))
                 << (live ? "   " : "\n");
    dirty = live;
  }
  void finish() {
    if (dirty)
      llvm::errs() << "\n";
    dirty = false;
  }

private:
  bool on, live, dirty = false;
  int64_t epochs, stepsPerEpoch;
  Clock::time_point start, shown;
};

/// The state of one training run.
class Trainer {
public:
  Trainer(Session &session, const Dataset &data, const DataOptions &dataOptions,
          const TrainOptions &options)
      : session(session), data(data), dataOptions(dataOptions),
        options(options) {}

  llvm::Expected<TrainResult> run();

private:
  llvm::Error resume(DataPosition &position);
  llvm::Error planUpdates(int64_t trainedSamples);
  llvm::Error checkHorizon(const StringMetadata &saved) const;
  llvm::Error runOnce(const char *function, double &time, double &loss);
  llvm::Error runStep(BatchIterator &batches);
  llvm::Error checkGradientNorm();
  llvm::Error checkState();
  llvm::Error save(DataPosition position);
  llvm::Error finish(llvm::ArrayRef<int64_t> holdout);
  llvm::Error evaluateAverages(llvm::ArrayRef<int64_t> holdout);

  Session &session;
  const Dataset &data;
  const DataOptions &dataOptions;
  const TrainOptions &options;
  TrainResult result;
  LearningRateSchedule schedule;
  StringMetadata identity;
  int64_t updates = 0; ///< of the whole run, whatever --max-steps says
  int64_t stepNumber = 0;
  std::vector<double> seconds;
  DivergenceWatch watch;
};

} // namespace

constexpr const char *horizonKey = "schedule-steps";
/// Reading all weights costs as much as a few of their updates.
constexpr int64_t kStateCheckEvery = 100;
/// Result of a step that clips (lib/Autodiff/Optimizer.cpp).
constexpr llvm::StringLiteral kGradientNormName = "gradient_norm";

/// Whole updates that the epochs have; a schedule ends with the last of them,
/// so that a run which stops earlier can go on as if it never had.
llvm::Error Trainer::planUpdates(int64_t trainedSamples) {
  int64_t batch = batchSize(session.manifest());
  int64_t batches = options.epochs * (trainedSamples / batch);
  updates = batches / options.accumulate;
  result.droppedBatches = batches % options.accumulate;
  if (batches > 0 && updates == 0)
    return inputError("one update takes " + llvm::Twine(options.accumulate) +
                      " batches of " + llvm::Twine(batch) +
                      " samples, but the run has " + llvm::Twine(batches) +
                      " in all; give a smaller --accumulate or more --epochs");
  schedule = options.schedule;
  schedule.batchesPerEpoch = std::max<int64_t>(trainedSamples / batch, 1);
  schedule.batchesPerStep = options.accumulate;
  if (!schedule.totalSteps)
    schedule.totalSteps = schedule.byEpoch ? options.epochs : updates;
  identity = options.identity;
  if (!schedule.hasEnd())
    return schedule.verify();
  identity[horizonKey] = std::to_string(schedule.totalSteps);
  return updates ? schedule.verify() : llvm::Error::success();
}

/// A schedule that ends at another step has other rates at all of them.
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
  auto checkpoint = readCheckpoint(options.resume);
  if (!checkpoint)
    return checkpoint.takeError();
  std::vector<TensorSpec> expected;
  for (TensorRole role : {TensorRole::Parameter, TensorRole::Frozen,
                          TensorRole::State, TensorRole::OptimizerState})
    for (int64_t index : session.tensors(role)) {
      const runtime::TensorInfo &tensor = session.info_of(index);
      expected.push_back({tensor.name, tensor.dtype, tensor.shape});
    }
  if (llvm::Error error =
          checkTensors(checkpoint->tensors, expected, options.resume))
    return error;
  if (llvm::Error error = checkHorizon(checkpoint->state.options))
    return error;
  if (llvm::Error error =
          checkOptions(checkpoint->state.options, identity, options.resume))
    return error;
  for (const TensorSpec &spec : expected) {
    auto index = session.find(spec.name);
    if (!index)
      return index.takeError();
    if (llvm::Error error =
            session.write(*index, *checkpoint->tensors.find(spec.name)))
      return error;
  }
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

/// Runs one function on one batch and adds its time and loss.
llvm::Error Trainer::runOnce(const char *function, double &time, double &loss) {
  auto start = Clock::now();
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
llvm::Error Trainer::runStep(BatchIterator &batches) {
  ++stepNumber;
  if (llvm::Error error = session.fill(TensorRole::Step, double(stepNumber)))
    return error;
  if (llvm::Error error =
          session.fill(TensorRole::LearningRate, schedule.at(stepNumber)))
    return error;
  double time = 0, loss = 0;
  for (int64_t micro = options.accumulate - 1; micro >= 0; --micro) {
    if (llvm::Error error = feed(session, data, batches.next()))
      return error;
    // Micro-batches of one step draw different dropout masks.
    if (options.accumulate > 1)
      if (llvm::Error error = setSeed(
              session, options.seed + uint64_t(micro) * 0x9E3779B97F4A7C15u))
        return error;
    if (llvm::Error error = runOnce(micro ? "accumulate" : "step", time, loss))
      return error;
  }
  seconds.push_back(time);
  loss /= double(options.accumulate);
  result.losses.push_back(loss);
  if (llvm::Error error = checkFinite(loss, "loss", stepNumber))
    return error;
  if (llvm::Error error = checkGradientNorm())
    return error;
  if (stepNumber % kStateCheckEvery == 0)
    return checkState();
  return llvm::Error::success();
}

/// Clipping by an infinite norm multiplies all gradients by 0, silently.
llvm::Error Trainer::checkGradientNorm() {
  for (const runtime::FunctionInfo &info : session.manifest().functions)
    for (int32_t index : info.outputs)
      if (info.name == "step" &&
          session.info_of(index).name == kGradientNormName) {
        auto value = session.read(index);
        if (!value)
          return value.takeError();
        return checkFinite(value->getDouble(0), "norm of the gradients",
                           stepNumber);
      }
  return llvm::Error::success();
}

/// All that a step leaves behind.
llvm::Error Trainer::checkState() {
  auto tensors = session.weights(/*optimizerState=*/true);
  if (!tensors)
    return tensors.takeError();
  return checkFinite(*tensors, stepNumber);
}

llvm::Error Trainer::finish(llvm::ArrayRef<int64_t> holdout) {
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
  if (!holdout.empty()) {
    auto metrics = evaluate(session, data, dataOptions, holdout);
    if (!metrics)
      return metrics.takeError();
    result.evaluation = *metrics;
    // A loss of the step's own counts whole batches alone.
    int64_t whole = int64_t(holdout.size());
    if (dataOptions.loss.empty())
      whole -= whole % batchSize(session.manifest());
    result.evaluated = metrics->count ? whole : 0;
    result.classified = dataOptions.loss == "cross_entropy" ||
                        (dataOptions.loss.empty() && dataOptions.classify);
  }
  if (watch.leftAt() && !watch.wasReported())
    llvm::errs() << "warning: " << watch.describe() << "\n";
  result.divergedAt = watch.leftAt();
  for (size_t i = 0; i < data.numFields(); ++i)
    result.dataBytes += data.tensor(i).sizeInBytes();
  auto peak = session.measuredPeak();
  if (!peak)
    return peak.takeError();
  result.measuredPeak = *peak;
  return llvm::Error::success();
}

/// Evaluates the averaged weights in place of the trained ones, which come back
/// afterwards.
llvm::Error Trainer::evaluateAverages(llvm::ArrayRef<int64_t> holdout) {
  if (!options.averages || holdout.empty() || stepNumber == 0)
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
  auto metrics = evaluate(session, data, dataOptions, holdout);
  if (!metrics)
    return metrics.takeError();
  result.averageEvaluation = *metrics;
  return write(trained);
}

llvm::Expected<TrainResult> Trainer::run() {
  auto split = splitHoldout(data.numSamples(), options.holdout, options.seed);
  if (!split)
    return split.takeError();
  if (llvm::Error error = planUpdates(int64_t(split->train.size())))
    return std::move(error);
  DataPosition position;
  if (llvm::Error error = resume(position))
    return std::move(error);
  auto batches = BatchIterator::create(
      split->train, batchSize(session.manifest()), options.seed, position);
  if (!batches)
    return batches.takeError();
  result.droppedPerEpoch = batches->droppedPerEpoch();
  if (llvm::Error error = setSeed(session, options.seed))
    return std::move(error);
  ProgressLine progress(options.progress, options.epochs,
                        batches->batchesPerEpoch());
  int64_t end =
      options.maxSteps ? std::min(options.maxSteps, updates) : updates;
  while (stepNumber < end) {
    DataPosition at = batches->position();
    if (llvm::Error error = runStep(*batches)) {
      progress.finish();
      return std::move(error);
    }
    progress.step(at.epoch, at.position / batchSize(session.manifest()) + 1,
                  result.losses.back(), seconds.back());
    if (watch.add(stepNumber, result.losses.back())) {
      progress.finish();
      llvm::errs() << "warning: " << watch.describe() << "\n";
    }
    bool epochEnds = batches->position().epoch != at.epoch;
    bool due = options.checkpointEvery
                   ? stepNumber % options.checkpointEvery == 0
                   : epochEnds;
    if (due)
      if (llvm::Error error = save(batches->position()))
        return std::move(error);
  }
  progress.finish();
  result.nothingToDo = result.losses.empty();
  if (stepNumber != updates)
    result.droppedBatches = 0; // stopped before its end
  result.position = batches->position();
  if (llvm::Error error = save(batches->position()))
    return std::move(error);
  if (options.trained) {
    if (llvm::Error error = checkState())
      return std::move(error);
    if (llvm::Error error = options.trained(stepNumber))
      return std::move(error);
  }
  if (llvm::Error error = finish(split->holdout))
    return std::move(error);
  if (llvm::Error error = evaluateAverages(split->holdout))
    return std::move(error);
  return std::move(result);
}

llvm::Expected<TrainResult> ckopt::train(Session &session, const Dataset &data,
                                         const DataOptions &dataOptions,
                                         const TrainOptions &options) {
  return Trainer(session, data, dataOptions, options).run();
}
