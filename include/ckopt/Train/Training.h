//===- Training.h - the loop around a compiled step -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loop feeds batches of a source (ckopt/Train/Data/BatchSource.h), runs
// steps, evaluates, and writes checkpoints. The order of samples is a function
// of (seed, epoch), dropout of (seed, step, site, element), the learning rate
// of the step: a resumed run continues with the bits of an unbroken one.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TRAIN_TRAINING_H
#define CKOPT_TRAIN_TRAINING_H

#include "ckopt/Support/Messages.h"
#include "ckopt/Train/Data/Checkpoint.h"
#include "ckopt/Train/Data/DataOptions.h"
#include "ckopt/Train/Data/Schedule.h"
#include "ckopt/Train/Session.h"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace ckopt {

/// Where dynamic loss scaling stands (docs/precision.md).
struct LossScale {
  double scale = 1;         ///< of the next step
  int64_t skipped = 0;      ///< updates that were skipped since training began
  std::string text() const; ///< the scale: "65536"
};

/// What one step gave.
struct StepReport {
  int64_t step = 0;      ///< from 1
  DataPosition position; ///< of its first sample
  double loss = 0, learningRate = 0;
  double seconds = 0; ///< of the step itself, without feeding
  /// Of samples that do not train, where they were evaluated after this step.
  std::optional<MetricSums> validation;
  bool classified = false;            ///< the validation has an accuracy
  std::optional<LossScale> lossScale; ///< with precision f16
  bool skipped = false;               ///< gradients overflowed: no update
};

/// What an evaluation in the course of a run found.
struct ValidationPoint {
  int64_t step = 0; ///< after which
  MetricSums sums;
};

struct TrainOptions {
  int64_t epochs = 1;
  int64_t maxSteps = 0; ///< 0: as many as the epochs have
  uint64_t seed = 0;
  /// Micro-batches whose gradients make one update: what the step was compiled
  /// for, or 1, which stands for that.
  int64_t accumulate = 1;
  double holdout = 0; ///< fraction kept for evaluation
  /// Samples for evaluation, instead of a fraction of those that train.
  BatchSource *validation = nullptr;
  /// Steps; 0: at the end, and after each epoch where the best is asked for.
  int64_t validateEvery = 0;
  /// What the best evaluation is judged by; nullopt: the loss.
  std::optional<Metric> bestBy;
  /// Gets the state of the best evaluation so far: a checkpoint
  /// (.safetensors), or weights (.onnx); "": none.
  std::string keepBest;
  /// Evaluations in a row without a better one that end the run; 0: none.
  int64_t earlyStop = 0;
  LearningRateSchedule schedule;
  std::string checkpoint;      ///< written at the end of each epoch; "": none
  int64_t checkpointEvery = 0; ///< steps; 0: each epoch
  std::string resume;
  /// Updates and epochs that the session has behind it, made by earlier calls;
  /// those of this run are counted on from there. A run that is resumed takes
  /// them from its checkpoint.
  int64_t stepsBefore = 0, epochsBefore = 0;
  StringMetadata identity; ///< options that a resumed run must share
  bool averages = false;   ///< the step keeps averaged weights (EMA)
  bool progress = true;    ///< a line an epoch on standard error
  std::string log;         ///< a line a step: .csv or .jsonl; "": none
  MessageHandler messages; ///< of warnings; null: the step's own handler
  /// Asked after each step, on all ranks or on none: a number other than 0 (of
  /// a signal, say) on any rank ends the run there, with a checkpoint.
  std::function<int()> stopAsked;
  /// Called after each step.
  std::function<llvm::Error(const StepReport &)> report;
  /// Called after the last step and before held-out samples are evaluated, so
  /// that the caller can save weights before the evaluation can fail.
  std::function<llvm::Error(int64_t steps)> trained;
  /// Writes the weights for keepBest=FILE.onnx; null: the step's own way.
  std::function<llvm::Error(const std::string &path)> writeWeights;
};

/// What ranks sent each other in the last update.
struct Communication {
  struct Collective {
    std::string kind;   ///< the op's name
    int64_t bytes = 0;  ///< of the whole tensors
    double seconds = 0; ///< on rank 0
  };
  std::vector<Collective> collectives; ///< in their order
  std::vector<int64_t> messages;       ///< that each rank sent
  std::vector<int64_t> sentBytes;      ///< the same
  double seconds = 0; ///< of rank 0 in collectives, median of the updates
};

struct TrainResult {
  int64_t steps = 0;
  double firstLoss = 0, finalLoss = 0; ///< of the step's own precision
  std::vector<double> losses;          ///< one a step
  std::vector<std::string> classes;    ///< BatchSource::classNames()
  MetricSums evaluation;               ///< on the held-out samples
  MetricSums averageEvaluation;        ///< the same of the averaged weights
  int64_t evaluated = 0;               ///< samples that the evaluation counts
  bool allIgnored = false; ///< it had samples, whose labels do not count
  std::vector<ValidationPoint> validations; ///< all of this run
  std::optional<BestEvaluation> best;       ///< by TrainOptions::bestBy
  bool stoppedEarly = false;
  int stopped = 0;                ///< what TrainOptions::stopAsked gave; else 0
  bool classified = false;        ///< the evaluation has an accuracy
  bool nothingToDo = false;       ///< the run was at its end already
  DataPosition position;          ///< where the run stands now
  double stepSeconds = 0;         ///< median, without feeding
  int64_t measuredPeak = 0;       ///< bytes
  std::vector<int64_t> rankPeaks; ///< the same of each rank
  Communication communication;    ///< with several ranks
  int64_t dataBytes = 0;          ///< of the samples, in memory
  int64_t divergedAt = 0; ///< step after which the loss stayed far above its
                          ///< start; 0: it did not
  int64_t droppedPerEpoch = 0;
  std::optional<LossScale> lossScale; ///< with precision f16
  int64_t skippedUpdates = 0;         ///< of this run
  int64_t droppedBatches = 0; ///< at the run's end: too few for an update
};

/// The batch size that the step was compiled for.
int64_t batchSize(const runtime::Manifest &manifest);

/// Loads the arrays of the step's inputs and targets from those files, and
/// checks all values.
llvm::Expected<Dataset> loadDataset(const Session &session,
                                    const StepData &options);
/// Returns the samples that loadDataset() gives.
llvm::Expected<std::unique_ptr<BatchSource>>
openSource(const Session &session, const StepData &options,
           DatasetSource::Order order = DatasetSource::Order::Shuffled);

/// Trains a session that holds the initial weights. Stops with ExitNonFinite,
/// and writes nothing more, where a loss, a gradient's norm, a weight or an
/// optimizer's state is not finite (with loss scaling: of an update that was
/// made), or where scaled gradients overflow at a scale of 1. A source that
/// cannot say how many samples it has trains without accumulation, and with
/// schedules whose end is given.
llvm::Expected<TrainResult> train(Session &session, BatchSource &source,
                                  const StepData &dataOptions,
                                  const TrainOptions &options);

struct Evaluation {
  MetricSums sums;
  int64_t samples = 0;     ///< that count
  bool allIgnored = false; ///< there were samples, whose labels do not count
};

/// Refuses metrics that evaluations of this step do not have.
llvm::Error checkMetrics(const Session &session, const StepData &dataOptions);

/// Computes the metrics of the "eval" function on one epoch of a source. The
/// last batch is padded and masked; of a loss that the function computes itself
/// only whole batches count.
llvm::Expected<Evaluation> evaluate(Session &session, BatchSource &source,
                                    const StepData &dataOptions);

/// Writes the next batch of a source, which begins at `at`, to the step's
/// inputs and targets, and returns how many samples it had; copies of the first
/// one fill it up.
llvm::Expected<int64_t> feed(Session &session, BatchSource &source,
                             const StepData &dataOptions, DataPosition at = {});

/// Sets the seed of dropout and other random numbers.
llvm::Error setSeed(Session &session, uint64_t seed);

/// Returns the averages (EMA) of all parameters, by the parameters' names; with
/// `own`, of those that ranks share this rank's shards (else all ranks must
/// ask).
llvm::Expected<TensorMap> averagedWeights(const Session &session,
                                          bool own = false);

/// Returns the state of loss scaling; nothing where the step has none.
llvm::Expected<std::optional<LossScale>> readLossScale(const Session &session);

/// Returns the loss of the function ("step", "accumulate") that ran last.
llvm::Expected<double> readLoss(const Session &session,
                                llvm::StringRef function = "step");

} // namespace ckopt

#endif // CKOPT_TRAIN_TRAINING_H
