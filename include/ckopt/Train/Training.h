//===- Training.h - the loop around a compiled step -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loop feeds batches of a source (ckopt/Train/Data/BatchSource.h), runs
// steps, evaluates, and writes checkpoints. The order of samples is a function
// of (seed, epoch), dropout of (seed, step, site, element), the learning rate
// of the step: a resumed run continues with the bits of an uninterrupted one.
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

/// The state of dynamic loss scaling (docs/precision.md).
struct LossScale {
  double scale = 1;         ///< of the next step
  int64_t skipped = 0;      ///< updates that were skipped since training began
  std::string text() const; ///< the scale: "65536"
};

/// The result of one step.
struct StepReport {
  int64_t step = 0;      ///< from 1
  DataPosition position; ///< position of its first sample
  double loss = 0, learningRate = 0;
  double seconds = 0; ///< seconds of the step itself, without feeding
  /// Of held-out samples, if they were evaluated after this step.
  std::optional<MetricSums> validation;
  bool classified = false;            ///< the validation has an accuracy
  std::optional<LossScale> lossScale; ///< with precision f16
  bool skipped = false;               ///< gradients overflowed: no update
};

/// The result of an evaluation during a run.
struct ValidationPoint {
  int64_t step = 0; ///< the step after which it was made
  MetricSums sums;
};

struct TrainOptions {
  int64_t epochs = 1;
  int64_t maxSteps = 0; ///< steps; 0: as many as the epochs have
  uint64_t seed = 0;
  /// Micro-batches whose gradients make one update: the number for which the
  /// step was compiled, or 1, which stands for it.
  int64_t accumulate = 1;
  double holdout = 0; ///< fraction kept for evaluation
  /// Samples for evaluation, instead of a fraction of the training samples.
  BatchSource *validation = nullptr;
  /// Steps between evaluations; 0: at the end, and after each epoch if the best
  /// is requested.
  int64_t validateEvery = 0;
  /// The metric that decides the best evaluation; nullopt: the loss.
  std::optional<Metric> bestBy;
  /// Gets the state of the best evaluation so far: a checkpoint
  /// (.safetensors), or weights (.onnx); "": none.
  std::string keepBest;
  /// Number of evaluations in a row without a better one after which the run
  /// ends; 0: none.
  int64_t earlyStop = 0;
  LearningRateSchedule schedule;
  std::string checkpoint;      ///< written at the end of each epoch; "": none
  int64_t checkpointEvery = 0; ///< steps; 0: each epoch
  std::string resume;
  /// Updates and epochs of the session's earlier calls; those of this run are
  /// added. A resumed run takes them from its checkpoint.
  int64_t stepsBefore = 0, epochsBefore = 0;
  StringMetadata identity; ///< options that a resumed run must share
  bool averages = false;   ///< the step keeps averaged weights (EMA)
  bool progress = true;    ///< a line an epoch on standard error
  std::string log;         ///< a line a step: .csv or .jsonl; "": none
  MessageHandler messages; ///< of warnings; null: the step's own handler
  /// Called after each step, on all ranks or on none: a number other than 0 (of
  /// a signal, say) on any rank ends the run there, with a checkpoint.
  std::function<int()> stopAsked;
  /// Called after each step.
  std::function<llvm::Error(const StepReport &)> report;
  /// The report looks at nothing but what it is given: a device may have begun
  /// the next step when it is called.
  bool reportsLate = false;
  /// Called when a step was given to the session, with its number.
  std::function<void(int64_t step)> started;
  /// Called after the last step and before held-out samples are evaluated, so
  /// that the caller can save weights before the evaluation can fail.
  std::function<llvm::Error(int64_t steps)> trained;
  /// Writes the weights for keepBest=FILE.onnx; null: the step's own function.
  std::function<llvm::Error(const std::string &path)> writeWeights;
  /// Makes the session of a batch of fewer samples, in the arena of the run's;
  /// null: samples at an epoch's end that fill no batch are left out. Set for
  /// steps that were compiled for a range of batches.
  std::function<llvm::Expected<std::unique_ptr<Session>>(int64_t samples)>
      smaller;
  int64_t leastSamples = 0; ///< of a batch that `smaller` takes
};

/// The messages between ranks in the last update.
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
  bool allIgnored = false; ///< there were such samples, but no labels count
  std::vector<ValidationPoint> validations; ///< all of this run
  std::optional<BestEvaluation> best;       ///< by TrainOptions::bestBy
  bool stoppedEarly = false;
  int stopped = 0; ///< the number that TrainOptions::stopAsked returned; else 0
  bool classified = false; ///< the evaluation has an accuracy
  bool nothingToDo =
      false;              ///< the checkpoint was at the end of the run already
  DataPosition position;  ///< the position of the run at its end
  double stepSeconds = 0; ///< median, without feeding
  int64_t measuredPeak = 0;       ///< bytes
  std::vector<int64_t> rankPeaks; ///< the same of each rank
  Communication communication;    ///< with several ranks
  int64_t dataBytes = 0;          ///< of the samples, in memory
  int64_t divergedAt = 0; ///< step after which the loss stayed far above its
                          ///< start; 0: it did not
  int64_t droppedPerEpoch = 0;
  std::optional<LossScale> lossScale; ///< with precision f16
  int64_t skippedUpdates = 0;         ///< of this run
  int64_t droppedBatches =
      0; ///< batches at the run's end that are too few for an update
};

/// The batch size that the step was compiled for.
int64_t batchSize(const runtime::Manifest &manifest);
/// Returns the least number of samples of a batch: another one than batchSize()
/// where that is the size that the step leaves open.
int64_t leastBatch(runtime::Manifest manifest);

/// Loads the arrays of the step's inputs and targets from those files, and
/// checks all values.
llvm::Expected<Dataset> loadDataset(const Session &session,
                                    const StepData &options);
/// Returns the samples that loadDataset() gives.
llvm::Expected<std::unique_ptr<BatchSource>>
openSource(const Session &session, const StepData &options,
           DatasetSource::Order order = DatasetSource::Order::Shuffled);

/// Trains a session that holds the initial weights. Stops with ExitNonFinite,
/// and writes nothing more, if a loss, a gradient's norm, a weight or an
/// optimizer's state is not finite (with loss scaling: in an update that was
/// made), or if scaled gradients overflow at a scale of 1. A source of unknown
/// length trains with schedules whose end is given. An update whose batches the
/// last epoch does not have is not made.
llvm::Expected<TrainResult> train(Session &session, BatchSource &source,
                                  const StepData &dataOptions,
                                  const TrainOptions &options);

struct Evaluation {
  MetricSums sums;
  int64_t samples = 0;     ///< that count
  bool allIgnored = false; ///< there were such samples, but no labels count
};

/// Refuses a step whose evaluation was left out, since no plan of it fits.
llvm::Error checkEvaluates(const Session &session);

/// Refuses metrics that evaluations of this step do not have.
llvm::Error checkMetrics(const Session &session, const StepData &dataOptions);

/// Computes the metrics of the "eval" function on one epoch of a source. The
/// last batch is padded and masked; for a loss that the function computes
/// itself only whole batches count.
llvm::Expected<Evaluation> evaluate(Session &session, BatchSource &source,
                                    const StepData &dataOptions);

/// Writes the next batch of a source, which begins at `at`, to the step's
/// inputs and targets, and returns its number of samples; an incomplete one is
/// filled with copies of the first.
llvm::Expected<int64_t> feed(Session &session, BatchSource &source,
                             const StepData &dataOptions, DataPosition at = {});

/// Sets the seed of dropout and other random numbers.
llvm::Error setSeed(Session &session, uint64_t seed);

/// Returns the averages (EMA) of all parameters, by the parameters' names. With
/// `own`, tensors that ranks share are this rank's shards (else all ranks must
/// call this).
llvm::Expected<TensorMap> averagedWeights(const Session &session,
                                          bool own = false);

/// Returns the state of loss scaling; nothing if the step has none.
llvm::Expected<std::optional<LossScale>> readLossScale(const Session &session);

/// Returns the loss of the function ("step", "accumulate") that ran last.
llvm::Expected<double> readLoss(const Session &session,
                                llvm::StringRef function = "step");
/// Begins to read it, and returns its tensor: the next run may begin before
/// endLoss() returns the number.
llvm::Expected<int64_t> beginLoss(const Session &session,
                                  llvm::StringRef function);
llvm::Expected<double> endLoss(const Session &session, int64_t tensor);

} // namespace ckopt

#endif // CKOPT_TRAIN_TRAINING_H
