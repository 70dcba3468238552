//===- StepRun.cpp - a step whose batches the caller brings ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "StepRunImpl.h"

#include "Feeding.h"
#include "LossChoice.h"
#include "Outputs.h"
#include "Updates.h"
#include "ckopt/Runtime/StatusExit.h"
#include "ckopt/Support/Error.h"

using namespace ckopt;
using runtime::TensorRole;

StepRun::StepRun(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
StepRun::~StepRun() = default;

const CompiledStep &StepRun::compiled() const { return impl->compiled; }
Session &StepRun::session() { return *impl->session; }
llvm::ArrayRef<FieldSpec> StepRun::fields() const { return impl->fields; }
int64_t StepRun::batch() const { return impl->batch; }
int64_t StepRun::updates() const { return impl->updates; }
const std::optional<LossScale> &StepRun::lossScale() const {
  return impl->skips.state();
}
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
  addHash(given, load.weights);
  auto loaded = compiled.load(load);
  if (!loaded)
    return loaded.takeError();
  session = std::move(*loaded);
  data.path = "batch"; // of errors
  auto described = describeFields(*session, data);
  if (!described)
    return described.takeError();
  fields = std::move(*described);
  const StepOptions &step = compiled.compilation().given().step;
  if (step.ranks != numRanks())
    return usageError("the step is one of " + llvm::Twine(step.ranks) +
                      " ranks, and there are " + llvm::Twine(numRanks()) +
                      " (joinRanks)");
  batch = batchSize(session->manifest()) * step.ranks;
  if (llvm::Error error = skips.begin(*session))
    return error;
  if (llvm::Error error = setSeed(*session, train.seed))
    return error;
  return checkRanksAgree(compiled.compilation(), *session, train);
}

llvm::Expected<std::unique_ptr<StepRun>>
StepRun::create(CompiledStep step, const TrainOptions &train,
                const LoadOptions &load) {
  if (llvm::Error error = step.check())
    return std::move(error);
  auto impl = std::make_unique<Impl>(std::move(step), train);
  if (llvm::Error error = impl->open(load))
    return std::move(error);
  return std::unique_ptr<StepRun>(new StepRun(std::move(impl)));
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

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

/// Writes arrays that have the step's types and shapes as they are; false: one
/// has to be converted.
static llvm::Expected<bool> feedWhole(Session &session, const TensorMap &arrays,
                                      llvm::ArrayRef<FieldSpec> fields) {
  std::vector<std::pair<int64_t, const HostTensor *>> writes;
  for (const FieldSpec &field : fields) {
    auto index = session.find(field.name);
    if (!index)
      return index.takeError();
    const runtime::TensorInfo &info = session.info_of(*index);
    const HostTensor *given = arrays.find(field.array);
    if (!given || given->dtype() != info.dtype ||
        given->shape() != llvm::ArrayRef<int64_t>(info.shape))
      return false;
    writes.emplace_back(*index, given);
  }
  for (auto [index, given] : writes)
    if (llvm::Error error = session.write(index, *given))
      return std::move(error);
  return true;
}

/// Reads a batch of all ranks from the caller's arrays.
llvm::Expected<Dataset>
StepRun::Impl::readBatch(const TensorMap &arrays) const {
  auto samples = readSamples(arrays, fields);
  if (!samples)
    return samples.takeError();
  bool batched =
      llvm::any_of(fields, [](const FieldSpec &f) { return f.batched; });
  if (batched && samples->numSamples() != batch)
    return inputError("the batch has " + llvm::Twine(samples->numSamples()) +
                      " samples, the step was compiled for " +
                      llvm::Twine(batch));
  return samples;
}

llvm::Error StepRun::Impl::meet(const Meeting &meeting, llvm::Error own) const {
  return withRank(meetRanks(meeting, std::move(own)), updates + 1);
}

llvm::Error StepRun::Impl::meetSharing(const Meeting &meeting,
                                       llvm::Error own) const {
  return isSharded() ? meet(meeting, std::move(own)) : std::move(own);
}

/// Makes a feeder that holds the samples, converted.
static llvm::Expected<Feeder> fill(Session &session, DatasetSource &source,
                                   const DataOptions &data) {
  if (llvm::Error error = source.seek(/*seed=*/0, {}))
    return std::move(error);
  auto feeder = Feeder::create(session, source, data, /*needTargets=*/true,
                               /*sharded=*/true);
  if (feeder)
    if (auto count = feeder->load({}); !count)
      return count.takeError();
  return feeder;
}

/// Writes a batch; of several ranks each has the same one, and writes its part.
/// What is wrong with one rank's arrays is an error on all.
llvm::Error StepRun::Impl::feedBatch(const TensorMap &arrays, Call call) {
  auto samples = readBatch(arrays);
  if (samples && numRanks() == 1) {
    auto written = feedWhole(*session, arrays, fields);
    if (!written || *written)
      return written.takeError();
  }
  llvm::Error own = samples.takeError();
  std::optional<DatasetSource> source;
  std::optional<Feeder> feeder;
  if (!own) {
    source.emplace(std::move(*samples), DatasetSource::Order::AsStored);
    own = fill(*session, *source, data).moveInto(feeder);
  }
  Meeting start = {call, 0,
                   "was given other weights than rank 0, or only one of them "
                   "was: all ranks set and resume the same"};
  if (isSet && !own && numRanks() > 1) {
    own = hashCommonState(*session).moveInto(start.same);
    start.same ^= given;
  }
  if (llvm::Error error = meet(start, std::move(own)))
    return error;
  isSet = false;
  given = 0;
  return withRank(feeder->write(), updates + 1);
}

/// Runs the batch in the session as the next part of the update after
/// `updates`.
llvm::Expected<double> StepRun::Impl::runNext() {
  auto outcome =
      runBatch(*session, {train.schedule, train.seed, train.accumulate},
               updates + 1, train.accumulate - 1 - pending);
  if (!outcome)
    return withRank(outcome.takeError(), updates + 1);
  return outcome->loss;
}

/// Looks at what an update left.
llvm::Error StepRun::Impl::check(double updateLoss) {
  if (llvm::Error error = skips.update(*session, updates))
    return error;
  if (llvm::Error error =
          checkUpdate(*session, updateLoss, updates, skips.skipped()))
    return error;
  if (skips.isStuck())
    compiled.compilation().say(Message::Severity::Warning, skips.describe());
  if (!skips.skipped() && watch.add(updates, updateLoss))
    compiled.compilation().say(Message::Severity::Warning, watch.describe());
  return llvm::Error::success();
}

llvm::Expected<StepResult> StepRun::Impl::step(const TensorMap &arrays) {
  const StepOptions &options = compiled.compilation().given().step;
  if (llvm::Error error = checkUpdates(options.optimizer))
    return std::move(error);
  if (llvm::Error error = feedBatch(arrays, Call::Step))
    return std::move(error);
  StepResult result;
  result.updated = pending + 1 == train.accumulate;
  auto loss = runNext();
  if (!loss)
    return loss.takeError();
  result.loss = *loss;
  pendingLoss += *loss;
  ++pending;
  if (!result.updated) {
    if (!skips.state())
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
  result.skipped = skips.skipped();
  return result;
}

llvm::Expected<StepResult> StepRun::step(const TensorMap &batch) {
  return impl->step(batch);
}

llvm::Expected<BatchGradients> StepRun::gradients(const TensorMap &batch) {
  const StepOptions &given = impl->compiled.compilation().given().step;
  if (!given.optimizer.kind.empty())
    return usageError("gradients are results of a step that was compiled with "
                      "--optimizer=none");
  if (llvm::Error error = impl->feedBatch(batch, Call::Gradients))
    return std::move(error);
  auto loss = impl->runNext();
  if (!loss)
    return loss.takeError();
  BatchGradients result;
  result.loss = *loss;
  for (TensorRole role : {TensorRole::Loss, TensorRole::Gradient}) {
    TensorMap values;
    for (int64_t index : impl->session->tensors(role)) {
      auto value = impl->session->readWhole(index);
      if (!value)
        return value.takeError();
      values.set(impl->session->info_of(index).name, std::move(*value));
    }
    if (llvm::Error error = checkGradients(values, given.precision))
      return std::move(error);
    result.gradients = std::move(values);
  }
  return std::move(result);
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

/// Ranks that share weights gather them for each batch.
static constexpr const char *kOtherSamples =
    "came with another number of samples than rank 0, with which it shares "
    "weights";

/// Reads any number of samples from the caller's arrays.
llvm::Expected<Dataset>
StepRun::Impl::readSamples(const TensorMap &arrays,
                           llvm::ArrayRef<FieldSpec> wanted) const {
  if (llvm::Error error = checkArrays(arrays))
    return std::move(error);
  return Dataset::fromTensors(arrays, wanted, data.path);
}

llvm::Expected<MetricSums> StepRun::evaluate(const TensorMap &samples,
                                             std::vector<Metric> metrics) {
  auto data = impl->readSamples(samples, impl->fields);
  if (!data)
    return impl->meetSharing({Call::Evaluate}, data.takeError());
  DatasetSource source(std::move(*data), DatasetSource::Order::AsStored);
  return evaluate(source, std::move(metrics));
}

llvm::Expected<MetricSums> StepRun::evaluate(BatchSource &source,
                                             std::vector<Metric> metrics) {
  DataOptions data = impl->data;
  data.metrics = std::move(metrics);
  int64_t given = source.numSamples().value_or(0);
  if (llvm::Error error =
          impl->meetSharing({Call::Evaluate, uint64_t(given), kOtherSamples},
                            checkMetrics(*impl->session, data)))
    return std::move(error);
  auto result = ckopt::evaluate(*impl->session, source, data);
  if (!result)
    return result.takeError();
  if (result->allIgnored)
    return inputError("nothing was evaluated: all labels are the one that is "
                      "ignored (--ignore-index)");
  if (result->samples == 0)
    return inputError(
        "nothing was evaluated: the step computes its loss itself, from whole "
        "batches of " +
        llvm::Twine(batchSize(impl->session->manifest())) +
        " samples, or it has no evaluation");
  if (result->samples < given)
    impl->compiled.compilation().say(
        Message::Severity::Warning,
        std::to_string(given - result->samples) +
            " samples were not evaluated: the step computes its loss itself, "
            "from whole batches of " +
            std::to_string(batchSize(impl->session->manifest())));
  return result->sums;
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
  auto data = impl->readSamples(samples, inputs);
  Meeting start = {Call::Predict, 0, kOtherSamples};
  if (data)
    start.same = uint64_t(data->numSamples());
  if (llvm::Error error = impl->meetSharing(start, data.takeError()))
    return std::move(error);
  DatasetSource source(std::move(*data), DatasetSource::Order::AsStored);
  auto outputs = computeOutputs(*impl->session, source, impl->data,
                                evaluationOutputs(*impl->session, false));
  if (!outputs)
    return outputs.takeError();
  if (outputs->empty())
    return inputError("the model has no output but its loss");
  return outputs;
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

/// Returns whether the step has averages, if these are asked for.
llvm::Error StepRun::Impl::checkAveraged(bool averaged) const {
  if (averaged && compiled.compilation().given().step.optimizer.ema <= 0)
    return usageError("there are no averaged weights: compile with --ema=D");
  return llvm::Error::success();
}

/// Returns whole weights.
llvm::Expected<TensorMap> StepRun::Impl::collectWeights(bool averaged) const {
  auto weights = session->weights(/*optimizerState=*/false);
  // Before updates there is nothing to average.
  if (!weights || !averaged || updates == 0)
    return weights;
  auto averages = averagedWeights(*session);
  if (!averages)
    return averages.takeError();
  for (auto &[name, value] : *averages)
    weights->set(name, value);
  return weights;
}

static constexpr const char *kOtherWeights =
    "asks for other weights than rank 0, with which it shares them";

llvm::Expected<TensorMap> StepRun::weights(bool averaged) const {
  if (llvm::Error error =
          impl->meetSharing({Call::Weights, averaged, kOtherWeights},
                            impl->checkAveraged(averaged)))
    return std::move(error);
  return impl->collectWeights(averaged);
}

std::vector<TensorSpec> StepRun::describeWeights() const {
  std::vector<TensorSpec> result;
  for (TensorRole role :
       {TensorRole::Parameter, TensorRole::Frozen, TensorRole::State})
    for (int64_t index : impl->session->tensors(role)) {
      const runtime::TensorInfo &info = impl->session->info_of(index);
      result.push_back({info.name, info.dtype, info.fullShape()});
    }
  return result;
}

llvm::Expected<TensorMap>
StepRun::read(llvm::ArrayRef<std::string> names) const {
  std::vector<int64_t> indices;
  Meeting start = {Call::Weights, 0, kOtherWeights};
  llvm::Error own = llvm::Error::success();
  for (const std::string &name : names) {
    indices.push_back(0);
    own = llvm::joinErrors(std::move(own),
                           impl->session->find(name).moveInto(indices.back()));
    start.same = start.same * 31 + uint64_t(indices.back()) + 2;
  }
  if (llvm::Error error = impl->meetSharing(start, std::move(own)))
    return std::move(error);
  TensorMap result;
  for (auto [name, index] : llvm::zip_equal(names, indices)) {
    auto value = impl->session->readWhole(index);
    if (!value)
      return value.takeError();
    result.set(name, std::move(*value));
  }
  return result;
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
      else if (value.shape() != llvm::ArrayRef<int64_t>(info.fullShape()))
        error = inputError("'" + name + "' has shape " +
                           shapeString(info.fullShape()) + ", the value " +
                           shapeString(value.shape()));
      else
        error = withContext(value.checkConvertible(info.dtype),
                            "'" + llvm::Twine(name) + "'");
      indices.push_back(*index);
    }
    errors = llvm::joinErrors(std::move(errors), std::move(error));
  }
  if (errors)
    return errors;
  impl->isSet = true;
  addHash(impl->given, weights);
  for (const auto &[entry, index] : llvm::zip(weights, indices))
    if (llvm::Error error = impl->session->write(index, entry.second))
      return error;
  return llvm::Error::success();
}

llvm::Error StepRun::writeWeights(const std::string &path,
                                  bool averaged) const {
  if (!isMainRank() && !impl->isSharded())
    return llvm::Error::success();
  if (llvm::Error error = impl->meetSharing(
          {Call::Save, averaged, kOtherWeights}, impl->checkAveraged(averaged)))
    return error;
  llvm::Error own = checkState(*impl->session, impl->updates);
  if (impl->isSharded())
    own = agreeOnError(std::move(own));
  if (own)
    return own;
  llvm::Error error = impl->compiled.compilation().writeWeights(
      *impl->session, path, averaged && impl->updates > 0,
      weightsMetadata(impl->classes));
  return impl->isSharded() ? agreeOnError(std::move(error)) : std::move(error);
}

//===----------------------------------------------------------------------===//
// Checkpoints
//===----------------------------------------------------------------------===//

/// What a run that goes on must share, but its batches: those are the caller's.
StringMetadata StepRun::Impl::identity() const {
  StringMetadata result = runIdentity(compiled.compilation().given(), train,
                                      *session, "the caller's batches");
  if (train.schedule.hasEnd())
    result[horizonKey] = std::to_string(train.schedule.totalSteps);
  return result;
}

llvm::Error StepRun::writeCheckpoint(const std::string &path) const {
  llvm::Error own = llvm::Error::success();
  if (impl->pending)
    own = usageError("a checkpoint holds whole updates, and " +
                     llvm::Twine(impl->pending) + " of " +
                     llvm::Twine(impl->train.accumulate) +
                     " batches of the next one are in");
  if (llvm::Error error = impl->meet({Call::Checkpoint}, std::move(own)))
    return error;
  std::string shared = path;
  if (llvm::Error error = shareMainPath(shared))
    return error;
  return saveRun(shared, *impl->session,
                 {impl->updates, {}, impl->train.seed, impl->identity(), {}});
}

llvm::Error StepRun::resume(const std::string &path) {
  auto checkpoint = openCheckpoint(path);
  if (!checkpoint)
    return checkpoint.takeError();
  if (llvm::Error error = restoreRun(path, *impl->session, *checkpoint,
                                     impl->identity(), impl->train.schedule))
    return error;
  impl->isSet = true;
  if (impl->isSharded()) // what all ranks hold is compared by itself
    if (llvm::Error error = addHash(impl->given, checkpoint->tensors))
      return error;
  impl->updates = checkpoint->state.step;
  impl->epochs = 0;
  impl->pending = 0;
  impl->pendingLoss = 0;
  impl->watch = DivergenceWatch();
  return impl->skips.begin(*impl->session);
}

//===----------------------------------------------------------------------===//
// Profile
//===----------------------------------------------------------------------===//

static void addCallTime(void *times, int64_t call, double seconds) {
  auto &sums = *static_cast<std::vector<double> *>(times);
  if (size_t(call) < sums.size())
    sums[size_t(call)] += seconds;
}

static void addLaunchTime(void *times, int64_t call, int64_t, double seconds) {
  addCallTime(times, call, seconds);
}

namespace {
/// What a step changes or keeps, of this rank, by the indices of tensors.
using OwnState = std::vector<std::pair<int64_t, HostTensor>>;
} // namespace

static llvm::Expected<OwnState> readState(const Session &session) {
  OwnState state;
  for (TensorRole role : Session::stateRoles())
    for (int64_t index : session.tensors(role)) {
      auto value = session.read(index);
      if (!value)
        return value.takeError();
      state.emplace_back(index, std::move(*value));
    }
  return std::move(state);
}

static llvm::Error writeState(Session &session, const OwnState &state) {
  for (const auto &[index, value] : state)
    if (llvm::Error error = session.write(index, value))
      return error;
  return llvm::Error::success();
}

llvm::Expected<std::vector<CallTime>> StepRun::profile(const TensorMap &batch,
                                                       int64_t steps) {
  if (!impl->compiled.compilation().given().instrument)
    return usageError("kernels are timed in a step that was compiled with "
                      "--profile");
  if (steps < 1 || impl->pending)
    return usageError("give at least one step, between whole updates");
  Session &session = *impl->session;
  auto before = readState(session);
  if (!before)
    return before.takeError();
  if (llvm::Error error = impl->feedBatch(batch, Call::Profile))
    return std::move(error);
  const runtime::Manifest &manifest = session.manifest();
  std::vector<double> sums(manifest.calls.size());
  bool onDevice = manifest.target == runtime::Target::Cuda;
  if (!onDevice && ckrt_set_profile(session.handle(), addCallTime, &sums))
    return makeError(ExitInternal, ckrt_last_error());
  llvm::Error error = llvm::Error::success();
  // The first step warms caches up. A device times launches by its own clock,
  // after a step that leaves plausible values behind.
  for (int64_t i = 0; i <= (onDevice ? 0 : steps) && !error; ++i) {
    error = impl->runNext().takeError();
    if (i == 0)
      std::fill(sums.begin(), sums.end(), 0.0);
  }
  if (onDevice && !error)
    if (auto status = ckrt_time_launches(session.handle(), "step", 4,
                                         int32_t(std::min<int64_t>(steps, 100)),
                                         addLaunchTime, &sums))
      error = makeError(exitCodeOf(status), ckrt_last_error());
  ckrt_set_profile(session.handle(), nullptr, nullptr);
  error = llvm::joinErrors(std::move(error), writeState(session, *before));
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
                      call.originalCall >= 0,
                      onDevice ? sums[i] : sums[i] / double(steps)});
  }
  return std::move(result);
}
