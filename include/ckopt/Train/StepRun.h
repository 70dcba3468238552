//===- StepRun.h - runs a step on batches of the caller ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A run owns a compiled step and its session, and knows how many updates it
// made. It checks each batch like a dataset, and checks the run as train()
// does. The same batches give the bits of train().
//
//   auto run = StepRun::create(std::move(*step), train, load);
//   TensorMap batch;
//   batch.set("x", images); // [batch, ...]
//   batch.set("y", labels);
//   auto result = (*run)->step(batch);
//
// Several ranks (Ranks.h) all make the same training calls, with the same whole
// batches; only rank 0 writes files. Ranks that share weights (fsdp) must also
// make these calls together, which read weights or run the model: evaluate() on
// the same number of samples, predict(), weights(), read(), writeWeights(),
// writeCheckpoint(). Weights are always passed whole. Ranks that make different
// calls all get an error.
//
// Threads: a run is used by one thread at a time. After an error of step() the
// weights are those that the failed update left.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TRAIN_STEPRUN_H
#define CKOPT_TRAIN_STEPRUN_H

#include "ckopt/Train/Step.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ckopt {

/// The outcome of one batch.
struct StepResult {
  double loss = 0;
  bool updated = true;  ///< false: the gradients wait for further batches
  bool skipped = false; ///< with precision f16: gradients overflowed, and only
                        ///< the loss's scale changed
};

/// The loss of one batch and its gradients, by "grad/" and the parameters'
/// names.
struct BatchGradients {
  double loss = 0;
  TensorMap gradients;
};

/// An array in memory of the device that a step runs on.
struct DeviceArray {
  std::string name; ///< as in a batch
  DType dtype = DType::F32;
  std::vector<int64_t> shape, strides; ///< strides: in elements
  void *data = nullptr;                ///< its first element
  void *stream = nullptr; ///< a CUstream, in whose order it is copied
};

/// Where a weight lies as long as the run lives; later updates change it there.
struct WeightPlace {
  TensorSpec spec;
  std::vector<int64_t> strides; ///< in elements
  void *data = nullptr;
  int32_t device = -1; ///< number of the device; -1: the host
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
  /// schedule that ends needs totalSteps. The step, and copies of it, can then
  /// not be loaded again (Compilation::releaseWeights()).
  static llvm::Expected<std::unique_ptr<StepRun>>
  create(CompiledStep step, const TrainOptions &train, const LoadOptions &load);
  /// Loads the step of other batches or lengths of the same model in the arena
  /// of `beside`, which must be large enough: weights, optimizer state and the
  /// place of the run are those of both. Neither reads what the other's last
  /// run computed.
  static llvm::Expected<std::unique_ptr<StepRun>>
  create(CompiledStep step, const TrainOptions &train, StepRun &beside);
  /// The same step at another size of the dimension that it leaves open.
  llvm::Expected<std::unique_ptr<StepRun>> at(int64_t size);
  ~StepRun();
  StepRun(const StepRun &) = delete;

  const CompiledStep &compiled() const;
  Session &session();
  /// Returns the fields of a batch, inputs in the model's order, then targets;
  /// `array` is the name under which a batch holds each.
  llvm::ArrayRef<FieldSpec> fields() const;
  /// Returns whether a field can be copied within the step's device: one
  /// process runs it, and the host needs to look at no label, index or target.
  bool copiesOnDevice(const FieldSpec &field) const;
  /// Returns the number of the device that the step runs on; nothing on the
  /// CPU, where the three calls below are usage errors.
  std::optional<int32_t> device() const;
  /// Puts what the run is given from now on behind what a stream of the
  /// caller's (a CUstream) was given so far.
  llvm::Error waitFor(void *stream);
  /// Puts what the stream is given from now on behind the run's work.
  llvm::Error letWait(void *stream);
  /// Copies an array of the device to the host.
  llvm::Expected<HostTensor> readArray(const DeviceArray &array) const;
  int64_t batch() const; ///< samples, of all ranks
  /// Returns the number of updates made, those before resume() included.
  int64_t updates() const;
  /// Returns the number of epochs that fit() began.
  int64_t epochs() const;
  /// Returns the state of loss scaling; nothing without precision f16.
  const std::optional<LossScale> &lossScale() const;
  /// Returns the rate of the next update.
  double learningRate() const;

  /// Feeds one whole batch (first dimensions are the batch size) and runs the
  /// step on it. A loss that rises far above its first value gives a warning,
  /// in the messages of the compilation.
  /// `onDevice`: arrays of the batch that are copied within the device, for
  /// fields of which copiesOnDevice() holds.
  llvm::Expected<StepResult> step(const TensorMap &batch,
                                  llvm::ArrayRef<DeviceArray> onDevice = {});
  /// The same, but on a device returns while the step runs: with the result of
  /// the batch before, if that was started so and is not settled; nothing if
  /// none was. What is wrong with a batch's numbers is told by the next call.
  llvm::Expected<std::optional<StepResult>>
  stepLater(const TensorMap &batch, llvm::ArrayRef<DeviceArray> onDevice = {});
  /// Waits for the batch that stepLater() started, if there is one. Other calls
  /// that train, or change where the run is, do so first; what is wrong with
  /// that batch is then their error.
  llvm::Expected<std::optional<StepResult>> settle();
  /// Whether a batch was started and not settled: a call that fails before it
  /// trains leaves it so.
  bool hasStarted() const;
  /// Trains on a source as train() does, with the seed, the schedule and the
  /// accumulation of this run; updates and epochs are counted on from those of
  /// earlier calls. With `options.resume` it continues from a checkpoint of
  /// fit() or of the driver. `metrics` are computed by evaluations in addition
  /// to the loss.
  llvm::Expected<TrainResult> fit(BatchSource &source, TrainOptions options,
                                  std::vector<Metric> metrics = {});
  /// Computes the gradients of one whole batch, in a step that was compiled
  /// without an optimizer. Running statistics are updated. Numbers that are not
  /// finite are an error (ExitNonFinite).
  llvm::Expected<BatchGradients>
  gradients(const TensorMap &batch, llvm::ArrayRef<DeviceArray> onDevice = {});
  /// Computes the metrics of any number of samples; the last batch is padded
  /// and masked. The sums include those for `metrics`.
  llvm::Expected<MetricSums> evaluate(const TensorMap &samples,
                                      std::vector<Metric> metrics = {});
  /// The same for the samples of a source (openSource).
  llvm::Expected<MetricSums> evaluate(BatchSource &source,
                                      std::vector<Metric> metrics = {});
  /// Computes the outputs of any number of samples, by name; targets are not
  /// needed.
  llvm::Expected<TensorMap> predict(const TensorMap &samples);

  /// Returns parameters, running statistics and frozen weights by name; with
  /// `averaged` the averages (EMA) of the parameters.
  llvm::Expected<TensorMap> weights(bool averaged = false) const;
  /// Returns the names, types and whole shapes of the tensors in weights().
  std::vector<TensorSpec> describeWeights() const;
  /// Tells where the tensors of weights() lie; an error where ranks share them.
  llvm::Expected<std::vector<WeightPlace>> locateWeights() const;
  /// Returns tensors of these names, whole.
  llvm::Expected<TensorMap> read(llvm::ArrayRef<std::string> names) const;
  /// Sets weights by name; those without a value stay. An unknown name is an
  /// error.
  llvm::Error setWeights(const TensorMap &weights);
  /// Writes weights to FILE.onnx, FILE.safetensors or a FOLDER.
  llvm::Error writeWeights(const std::string &path,
                           WrittenWeights which = {}) const;

  /// Writes what updates change, and hashes of what they do not.
  llvm::Error writeCheckpoint(const std::string &path) const;
  /// Continues from such a file; one of a run with other options or frozen
  /// weights is an error. If ranks share weights, all of them must call this.
  llvm::Error resume(const std::string &path);
  /// Takes weights, optimizer state and the number of updates of another step
  /// of the same model, which may be for other batches and lengths.
  llvm::Error resume(const StepRun &other);

  /// Times kernels over `steps` updates of the batch, and then undoes these.
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
