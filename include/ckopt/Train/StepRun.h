//===- StepRun.h - a step whose batches the caller brings -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A run owns a compiled step and its session, and knows how many updates it
// made. It checks each batch as a dataset is checked, and looks for what goes
// wrong as train() does. The same batches give the bits of train().
//
//   auto run = StepRun::create(std::move(*step), train, load);
//   TensorMap batch;
//   batch.set("x", images); // [batch, ...]
//   batch.set("y", labels);
//   auto result = (*run)->step(batch);
//
// Of several ranks (Ranks.h) all make the same calls that train, with the same
// whole batches; rank 0 alone writes files. Ranks that share weights (fsdp)
// also make the calls together that read weights or run the model: evaluate(),
// of as many samples, predict(), weights(), read(), writeWeights(),
// writeCheckpoint(). Weights come and go whole. A rank that makes another call
// than its peers gets an error, and so do they.
//
// Threads: a run is used by one thread at a time. After an error of step() the
// weights are those that the failed update left.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TRAIN_STEPRUN_H
#define CKOPT_TRAIN_STEPRUN_H

#include "ckopt/Train/Step.h"

#include <memory>
#include <string>
#include <vector>

namespace ckopt {

/// The outcome of one batch.
struct StepResult {
  double loss = 0;
  bool updated = true;  ///< false: its gradients wait for those of others
  bool skipped = false; ///< with precision f16: gradients overflowed, and
                        ///< nothing changed but the loss's scale
};

/// The loss of one batch and its gradients, by "grad/" and the parameters'
/// names.
struct BatchGradients {
  double loss = 0;
  TensorMap gradients;
};

/// The time of one kernel call.
struct CallTime {
  std::string kernel, source, primitive; ///< primitive: "" for generated code
  bool recomputed = false;
  double seconds = 0; ///< mean over the steps
};

class StepRun {
public:
  /// Loads the step. It uses only the seed and the schedule of `train`; a
  /// schedule that ends needs totalSteps.
  static llvm::Expected<std::unique_ptr<StepRun>>
  create(CompiledStep step, const TrainOptions &train, const LoadOptions &load);
  ~StepRun();
  StepRun(const StepRun &) = delete;

  const CompiledStep &compiled() const;
  Session &session();
  /// Returns the fields of a batch, inputs in the model's order, then targets;
  /// `array` is the name under which a batch holds each.
  llvm::ArrayRef<FieldSpec> fields() const;
  int64_t batch() const; ///< samples, of all ranks
  /// Returns the number of updates made, those before resume() included.
  int64_t updates() const;
  /// Returns the number of epochs that fit() began.
  int64_t epochs() const;
  /// Returns where loss scaling stands; nothing without precision f16.
  const std::optional<LossScale> &lossScale() const;
  /// Returns the rate of the next update.
  double learningRate() const;

  /// Feeds one whole batch (first dimensions are the batch size) and runs the
  /// step on it. Warns, in the messages of the compilation, of a loss that
  /// rises far above its first value.
  llvm::Expected<StepResult> step(const TensorMap &batch);
  /// Trains on a source as train() does, with the seed, the schedule and the
  /// accumulation of this run; updates and epochs are counted on from those of
  /// earlier calls. With `options.resume` it goes on from a checkpoint of fit()
  /// or of the driver. `metrics` are what evaluations compute beside the loss.
  llvm::Expected<TrainResult> fit(BatchSource &source, TrainOptions options,
                                  std::vector<Metric> metrics = {});
  /// Computes the gradients of one whole batch, in a step that was compiled
  /// without an optimizer. Running statistics are updated. Numbers that are not
  /// finite are an error (ExitNonFinite).
  llvm::Expected<BatchGradients> gradients(const TensorMap &batch);
  /// Computes the metrics of any number of samples; the last batch is padded
  /// and masked. Sums hold what `metrics` are computed from.
  llvm::Expected<MetricSums> evaluate(const TensorMap &samples,
                                      std::vector<Metric> metrics = {});
  /// The same of the samples of a source (openSource).
  llvm::Expected<MetricSums> evaluate(BatchSource &source,
                                      std::vector<Metric> metrics = {});
  /// Computes the outputs of any number of samples, by name; targets are not
  /// needed.
  llvm::Expected<TensorMap> predict(const TensorMap &samples);

  /// Returns parameters, running statistics and frozen weights by name; with
  /// `averaged` the averages (EMA) of the parameters.
  llvm::Expected<TensorMap> weights(bool averaged = false) const;
  /// Returns the names, types and whole shapes of what weights() returns.
  std::vector<TensorSpec> describeWeights() const;
  /// Returns tensors of these names, whole.
  llvm::Expected<TensorMap> read(llvm::ArrayRef<std::string> names) const;
  /// Sets weights by name; those without a value stay. An unknown name is an
  /// error.
  llvm::Error setWeights(const TensorMap &weights);
  /// Writes weights to FILE.onnx or FILE.safetensors.
  llvm::Error writeWeights(const std::string &path,
                           bool averaged = false) const;

  /// Writes all that the next updates depend on, but the batches.
  llvm::Error writeCheckpoint(const std::string &path) const;
  /// Goes on from such a file; one of a run with other options is an error.
  llvm::Error resume(const std::string &path);

  /// Times kernels over `steps` updates of the batch, and takes these back.
  /// Needs a step with CompileOptions::instrument.
  llvm::Expected<std::vector<CallTime>> profile(const TensorMap &batch,
                                                int64_t steps);

private:
  struct Impl;
  explicit StepRun(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace ckopt

#endif // CKOPT_TRAIN_STEPRUN_H
