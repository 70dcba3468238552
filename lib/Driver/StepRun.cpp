//===- StepRun.cpp - a step whose batches the caller brings ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Driver/StepRun.h"
#include "Feeding.h"
#include "LossChoice.h"
#include "RunChecks.h"
#include "ckopt/Support/Error.h"

#include <cstring>

using namespace ckopt;
using runtime::TensorRole;

struct StepRun::Impl {
  Impl(CompiledStep step, const TrainOptions &train)
      : compiled(std::move(step)), train(train), data(compiled.data()) {}

  llvm::Error open(const LoadOptions &load);
  llvm::Expected<StringMetadata> identity() const;
  llvm::Error checkArrays(const TensorMap &arrays) const;
  llvm::Error feedBatch(const TensorMap &batch);
  llvm::Error runUpdate(const char *function);
  llvm::Error check(double updateLoss);
  llvm::Expected<StepResult> step(const TensorMap &batch);

  CompiledStep compiled;
  TrainOptions train;
  DataOptions data;
  std::unique_ptr<Session> session;
  std::vector<FieldSpec> fields;
  int64_t batch = 1;
  int64_t updates = 0;
  /// Batches of the current update that were added up, and their losses.
  int64_t pending = 0;
  double pendingLoss = 0;
  DivergenceWatch watch;
};

StepRun::StepRun(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
StepRun::~StepRun() = default;

const CompiledStep &StepRun::compiled() const { return impl->compiled; }
Session &StepRun::session() { return *impl->session; }
llvm::ArrayRef<FieldSpec> StepRun::fields() const { return impl->fields; }
int64_t StepRun::batch() const { return impl->batch; }
int64_t StepRun::updates() const { return impl->updates; }
double StepRun::learningRate() const {
  return impl->train.schedule.at(impl->updates + 1);
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

llvm::Error StepRun::Impl::open(const LoadOptions &load) {
  const OptimizerSettings &optimizer =
      compiled.compilation().given().step.optimizer;
  train.schedule.base = learningRateOr(train.schedule.base, optimizer.kind);
  train.accumulate = optimizer.accumulate;
  if (llvm::Error error = train.schedule.verify())
    return error;
  auto loaded = compiled.load(load);
  if (!loaded)
    return loaded.takeError();
  session = std::move(*loaded);
  data.path = "batch"; // of errors
  auto described = describeFields(*session, data);
  if (!described)
    return described.takeError();
  fields = std::move(*described);
  batch = batchSize(session->manifest());
  return setSeed(*session, train.seed);
}

llvm::Expected<std::unique_ptr<StepRun>>
StepRun::create(CompiledStep step, const TrainOptions &train,
                const LoadOptions &load) {
  auto impl = std::make_unique<Impl>(std::move(step), train);
  if (llvm::Error error = impl->open(load))
    return std::move(error);
  return std::unique_ptr<StepRun>(new StepRun(std::move(impl)));
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// Writes the batch that begins at `start`, filled up with its first sample.
static llvm::Error feedSamples(Session &session, const Dataset &data,
                               int64_t start, int64_t batch) {
  std::vector<int64_t> indices;
  for (int64_t i = start; i < start + batch; ++i)
    indices.push_back(i < data.numSamples() ? i : start);
  for (size_t field = 0; field < data.numFields(); ++field) {
    auto index = session.find(data.spec(field).name);
    if (!index)
      return index.takeError();
    HostTensor value(data.spec(field).dtype, session.info_of(*index).shape);
    data.gather(field, indices, value.mutableRawData());
    if (llvm::Error error = session.write(*index, value))
      return error;
  }
  return llvm::Error::success();
}

/// Refuses arrays that no field has.
llvm::Error StepRun::Impl::checkArrays(const TensorMap &arrays) const {
  std::string known;
  for (const FieldSpec &field : fields)
    known += (known.empty() ? "'" : ", '") + field.array + "'";
  for (const auto &entry : arrays)
    if (llvm::none_of(fields, [&](const FieldSpec &field) {
          return field.array == entry.first;
        }))
      return inputError(data.path + ": the step takes no array '" +
                        entry.first + "'; there are " + known);
  return llvm::Error::success();
}

llvm::Error StepRun::Impl::feedBatch(const TensorMap &arrays) {
  if (llvm::Error error = checkArrays(arrays))
    return error;
  auto samples = Dataset::fromTensors(arrays, fields, data.path);
  if (!samples)
    return samples.takeError();
  bool batched =
      llvm::any_of(fields, [](const FieldSpec &f) { return f.batched; });
  if (batched && samples->numSamples() != batch)
    return inputError("the batch has " + llvm::Twine(samples->numSamples()) +
                      " samples, the step was compiled for " +
                      llvm::Twine(batch));
  return feedSamples(*session, *samples, 0, batch);
}

/// Runs a function as a part of the update after `updates`.
llvm::Error StepRun::Impl::runUpdate(const char *function) {
  int64_t number = updates + 1;
  if (llvm::Error error = session->fill(TensorRole::Step, double(number)))
    return error;
  if (llvm::Error error =
          session->fill(TensorRole::LearningRate, train.schedule.at(number)))
    return error;
  int64_t after = train.accumulate - 1 - pending;
  if (train.accumulate > 1)
    if (llvm::Error error = setSeed(*session, microSeed(train.seed, after)))
      return error;
  return withContext(session->run(function), "step " + llvm::Twine(number));
}

/// Looks at what an update left.
llvm::Error StepRun::Impl::check(double updateLoss) {
  if (llvm::Error error = checkFinite(updateLoss, "loss", updates))
    return error;
  if (llvm::Error error = checkGradientNorm(*session, updates))
    return error;
  if (watch.add(updates, updateLoss))
    compiled.compilation().say(Message::Severity::Warning, watch.describe());
  return updates % kStateCheckEvery == 0 ? checkState(*session, updates)
                                         : llvm::Error::success();
}

llvm::Expected<StepResult> StepRun::Impl::step(const TensorMap &arrays) {
  const StepOptions &options = compiled.compilation().given().step;
  if (llvm::Error error = checkUpdates(options.optimizer))
    return std::move(error);
  if (llvm::Error error = feedBatch(arrays))
    return std::move(error);
  StepResult result;
  result.updated = pending + 1 == train.accumulate;
  const char *function = result.updated ? "step" : "accumulate";
  if (llvm::Error error = runUpdate(function))
    return std::move(error);
  auto loss = readLoss(*session, function);
  if (!loss)
    return loss.takeError();
  result.loss = *loss;
  pendingLoss += *loss;
  ++pending;
  if (!result.updated) {
    if (llvm::Error error = checkFinite(*loss, "loss", updates + 1))
      return std::move(error);
    return result;
  }
  ++updates;
  double mean = pendingLoss / double(train.accumulate);
  pending = 0;
  pendingLoss = 0;
  if (llvm::Error error = check(mean))
    return std::move(error);
  return result;
}

llvm::Expected<StepResult> StepRun::step(const TensorMap &batch) {
  return impl->step(batch);
}

llvm::Expected<BatchGradients> StepRun::gradients(const TensorMap &batch) {
  if (!impl->compiled.compilation().given().step.optimizer.kind.empty())
    return usageError("gradients are results of a step that was compiled with "
                      "--optimizer=none");
  if (llvm::Error error = impl->feedBatch(batch))
    return std::move(error);
  if (llvm::Error error = impl->runUpdate("step"))
    return std::move(error);
  auto loss = readLoss(*impl->session);
  if (!loss)
    return loss.takeError();
  BatchGradients result;
  result.loss = *loss;
  for (int64_t index : impl->session->tensors(TensorRole::Gradient)) {
    auto value = impl->session->read(index);
    if (!value)
      return value.takeError();
    llvm::StringRef name = impl->session->info_of(index).name;
    result.gradients.set(name, std::move(*value));
  }
  return std::move(result);
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

llvm::Expected<MetricSums> StepRun::evaluate(const TensorMap &samples) {
  if (llvm::Error error = impl->checkArrays(samples))
    return std::move(error);
  auto data = Dataset::fromTensors(samples, impl->fields, impl->data.path);
  if (!data)
    return data.takeError();
  DatasetSource source(std::move(*data), DatasetSource::Order::AsStored);
  auto result = ckopt::evaluate(*impl->session, source, impl->data);
  if (!result)
    return result.takeError();
  if (result->samples == 0)
    return inputError(
        "nothing was evaluated: the step computes its loss itself, from whole "
        "batches of " +
        llvm::Twine(impl->batch) + " samples, or it has no evaluation");
  return result->sums;
}

/// Outputs of the evaluation but its loss.
static std::vector<int64_t> findOutputs(const Session &session) {
  std::vector<int64_t> result;
  for (const runtime::FunctionInfo &function : session.manifest().functions)
    if (function.name == "eval")
      for (int32_t index : function.outputs)
        if (session.info_of(index).role != TensorRole::Loss)
          result.push_back(index);
  return result;
}

/// Runs the evaluation batch by batch; outputs with the batch's dimension are
/// put one after another, of the others the first counts.
static llvm::Expected<TensorMap> evaluateOutputs(Session &session,
                                                 const Dataset &data) {
  std::vector<int64_t> outputs = findOutputs(session);
  int64_t batch = batchSize(session.manifest());
  int64_t samples = std::max<int64_t>(data.numSamples(), 1);
  TensorMap result;
  for (int64_t start = 0; start < samples; start += batch) {
    // Models that draw random numbers draw others for each batch.
    if (llvm::Error error =
            session.fill(TensorRole::Step, double(start / batch + 1)))
      return std::move(error);
    if (llvm::Error error = feedSamples(session, data, start, batch))
      return std::move(error);
    if (llvm::Error error = session.run("eval"))
      return std::move(error);
    for (int64_t index : outputs) {
      const runtime::TensorInfo &info = session.info_of(index);
      auto value = session.read(index);
      if (!value)
        return value.takeError();
      if (info.shape.empty() || info.shape[0] != batch) {
        result.insert(info.name, std::move(*value));
        continue;
      }
      std::vector<int64_t> shape = info.shape;
      shape[0] = samples;
      result.insert(info.name, HostTensor(info.dtype, shape));
      char *to = static_cast<char *>(result.find(info.name)->mutableRawData());
      int64_t sampleBytes = value->sizeInBytes() / batch;
      std::memcpy(to + start * sampleBytes, value->rawData(),
                  size_t(std::min(batch, samples - start) * sampleBytes));
    }
  }
  return std::move(result);
}

llvm::Expected<TensorMap> StepRun::predict(const TensorMap &samples) {
  std::vector<FieldSpec> inputs;
  for (const FieldSpec &field : impl->fields) {
    auto index = impl->session->find(field.name);
    if (!index)
      return index.takeError();
    if (impl->session->info_of(*index).role == TensorRole::Input)
      inputs.push_back(field);
  }
  if (llvm::Error error = impl->checkArrays(samples))
    return std::move(error);
  auto data = Dataset::fromTensors(samples, inputs, impl->data.path);
  if (!data)
    return data.takeError();
  auto outputs = evaluateOutputs(*impl->session, *data);
  if (!outputs)
    return outputs.takeError();
  if (outputs->empty())
    return inputError("the model has no output but its loss");
  return outputs;
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

llvm::Expected<TensorMap> StepRun::weights(bool averaged) const {
  auto weights = impl->session->weights(/*optimizerState=*/false);
  if (!weights || !averaged)
    return weights;
  if (impl->compiled.compilation().given().step.optimizer.ema <= 0)
    return usageError("there are no averaged weights: compile with --ema=D");
  if (impl->updates == 0) // before them there is nothing to average
    return weights;
  auto averages = averagedWeights(*impl->session);
  if (!averages)
    return averages.takeError();
  for (auto &[name, value] : *averages)
    weights->set(name, value);
  return weights;
}

llvm::Error StepRun::setWeights(const TensorMap &weights) {
  std::vector<int64_t> indices;
  llvm::Error errors = llvm::Error::success();
  for (const auto &[name, value] : weights) {
    auto index = impl->session->find(name);
    llvm::Error error = index.takeError();
    if (!error) {
      const runtime::TensorInfo &info = impl->session->info_of(*index);
      bool isWeight = info.role == TensorRole::Parameter ||
                      info.role == TensorRole::Frozen ||
                      info.role == TensorRole::State;
      if (!isWeight)
        error = inputError("'" + name + "' is no weight of the model");
      else if (value.shape() != llvm::ArrayRef<int64_t>(info.shape))
        error =
            inputError("'" + name + "' has shape " + shapeString(info.shape) +
                       ", the value " + shapeString(value.shape()));
      else
        error = withContext(value.checkConvertible(info.dtype),
                            "'" + llvm::Twine(name) + "'");
      indices.push_back(*index);
    }
    errors = llvm::joinErrors(std::move(errors), std::move(error));
  }
  if (errors)
    return errors;
  for (const auto &[entry, index] : llvm::zip(weights, indices))
    if (llvm::Error error = impl->session->write(index, entry.second))
      return error;
  return llvm::Error::success();
}

llvm::Error StepRun::writeWeights(const std::string &path,
                                  bool averaged) const {
  auto values = weights(averaged);
  if (!values)
    return values.takeError();
  if (llvm::Error error = checkFinite(*values, impl->updates))
    return error;
  return writeWeightsFile(impl->compiled.compilation().given().model, path,
                          *values);
}

//===----------------------------------------------------------------------===//
// Checkpoints
//===----------------------------------------------------------------------===//

/// What a run that goes on must share, but its batches: those are the caller's.
llvm::Expected<StringMetadata> StepRun::Impl::identity() const {
  // Nothing is asked of the source but what it is.
  CallbackSource::Options callers;
  callers.name = "the caller's batches";
  CallbackSource batches(callers, nullptr);
  StringMetadata result =
      runIdentity(compiled.compilation().given(), train, *session, batches);
  if (train.schedule.hasEnd())
    result["schedule-steps"] = std::to_string(train.schedule.totalSteps);
  return result;
}

llvm::Error StepRun::writeCheckpoint(const std::string &path) const {
  if (impl->pending)
    return usageError("a checkpoint holds whole updates, and " +
                      llvm::Twine(impl->pending) + " of " +
                      llvm::Twine(impl->train.accumulate) +
                      " batches of the next one are in");
  auto options = impl->identity();
  if (!options)
    return options.takeError();
  auto tensors = impl->session->weights(/*optimizerState=*/true);
  if (!tensors)
    return tensors.takeError();
  if (llvm::Error error = checkFinite(*tensors, impl->updates))
    return error;
  Checkpoint checkpoint;
  checkpoint.tensors = std::move(*tensors);
  checkpoint.state.step = impl->updates;
  checkpoint.state.seed = impl->train.seed;
  checkpoint.state.options = std::move(*options);
  return ckopt::writeCheckpoint(path, checkpoint);
}

llvm::Error StepRun::resume(const std::string &path) {
  auto checkpoint = readCheckpoint(path);
  if (!checkpoint)
    return checkpoint.takeError();
  auto options = impl->identity();
  if (!options)
    return options.takeError();
  if (llvm::Error error =
          checkOptions(checkpoint->state.options, *options, path))
    return error;
  if (llvm::Error error = impl->session->restore(checkpoint->tensors, path))
    return error;
  impl->updates = checkpoint->state.step;
  impl->pending = 0;
  impl->pendingLoss = 0;
  impl->watch = DivergenceWatch();
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Profile
//===----------------------------------------------------------------------===//

static void addCallTime(void *times, int64_t call, double seconds) {
  auto &sums = *static_cast<std::vector<double> *>(times);
  if (size_t(call) < sums.size())
    sums[size_t(call)] += seconds;
}

llvm::Expected<std::vector<CallTime>> StepRun::profile(const TensorMap &batch,
                                                       int64_t steps) {
  if (!impl->compiled.compilation().given().instrument)
    return usageError("kernels are timed in a step that was compiled with "
                      "--profile");
  if (steps < 1 || impl->pending)
    return usageError("give at least one step, between whole updates");
  Session &session = *impl->session;
  auto before = session.weights(/*optimizerState=*/true);
  if (!before)
    return before.takeError();
  if (llvm::Error error = impl->feedBatch(batch))
    return std::move(error);
  const runtime::Manifest &manifest = session.manifest();
  std::vector<double> sums(manifest.calls.size());
  if (ckrt_set_profile(session.handle(), addCallTime, &sums))
    return makeError(ExitInternal, ckrt_last_error());
  llvm::Error error = llvm::Error::success();
  // The first step warms caches up.
  for (int64_t i = 0; i <= steps && !error; ++i) {
    error = llvm::joinErrors(std::move(error), impl->runUpdate("step"));
    if (i == 0)
      std::fill(sums.begin(), sums.end(), 0.0);
  }
  ckrt_set_profile(session.handle(), nullptr, nullptr);
  error = llvm::joinErrors(std::move(error),
                           session.restore(*before, "before profiling"));
  if (error)
    return std::move(error);
  std::vector<CallTime> result;
  for (size_t i = 0; i < sums.size(); ++i) {
    const runtime::CallInfo &call = manifest.calls[i];
    if (manifest.functions[size_t(call.function)].name != "step")
      continue;
    std::string primitive;
    if (call.primitive >= 0)
      primitive =
          runtime::describe(manifest.primitives[size_t(call.primitive)]);
    result.push_back({call.kernel, call.source, primitive,
                      call.originalCall >= 0, sums[i] / double(steps)});
  }
  return std::move(result);
}
