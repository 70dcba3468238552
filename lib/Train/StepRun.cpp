//===- StepRun.cpp - a step whose batches the caller brings ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads a compiled step and makes steps of batches. Ranks meet before each, so
// that what is wrong with one's batch is an error on all. StepEvaluate.cpp,
// StepWeights.cpp and StepProfile.cpp have the calls that only look.
//
//===----------------------------------------------------------------------===//
#include "StepRunImpl.h"

#include "Updates.h"
#include "ckopt/Compiler/LossChoice.h"
#include "ckopt/Compiler/Together.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Train/Feeding.h"

#include <atomic>

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
  if (step.ranks != session->ranks().size())
    return usageError("the step is one of " + llvm::Twine(step.ranks) +
                      " ranks, and there are " +
                      llvm::Twine(session->ranks().size()) + " (joinRanks)");
  batch = batchSize(session->manifest()) * step.ranks;
  if (llvm::Error error = setSeed(*session, train.seed))
    return error;
  if (llvm::Error error =
          checkRanksAgree(compiled.compilation(), *session, train))
    return error;
  compiled.releaseWeights();
  static std::atomic<int64_t> opened = 0;
  number = ++opened;
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<StepRun>>
StepRun::create(CompiledStep step, const TrainOptions &train,
                const LoadOptions &load) {
  auto impl = std::make_unique<Impl>(std::move(step), train,
                                     std::make_shared<StepPlace>());
  if (llvm::Error error = impl->open(load))
    return std::move(error);
  if (llvm::Error error = impl->skips.begin(*impl->session))
    return std::move(error);
  return std::unique_ptr<StepRun>(new StepRun(std::move(impl)));
}

llvm::Expected<std::unique_ptr<StepRun>>
StepRun::create(CompiledStep step, const TrainOptions &train, StepRun &beside) {
  auto impl =
      std::make_unique<Impl>(std::move(step), train, beside.impl->place);
  LoadOptions load;
  load.session.arenaOf = beside.impl->session.get();
  if (llvm::Error error = impl->open(load))
    return std::move(error);
  if (llvm::Error error = impl->checkLike(*beside.impl))
    return std::move(error);
  return std::unique_ptr<StepRun>(new StepRun(std::move(impl)));
}

llvm::Expected<std::unique_ptr<StepRun>> StepRun::at(int64_t size) {
  auto made = std::make_unique<Impl>(impl->compiled, impl->train, impl->place);
  LoadOptions load;
  load.session.arenaOf = impl->session.get();
  load.session.size = size;
  if (llvm::Error error = made->open(load))
    return std::move(error);
  return std::unique_ptr<StepRun>(new StepRun(std::move(made)));
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

llvm::Error StepRun::Impl::checkArray(const std::string &name) const {
  std::string known;
  for (const FieldSpec &field : fields) {
    if (field.array == name)
      return llvm::Error::success();
    known += (known.empty() ? "'" : ", '") + field.array + "'";
  }
  return inputError(data.path + ": the step takes no array '" + name +
                    "'; there are " + known);
}

llvm::Error StepRun::Impl::checkArrays(const TensorMap &arrays) const {
  for (const auto &entry : arrays)
    if (llvm::Error error = checkArray(entry.first))
      return error;
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
    const runtime::TensorInfo &info = session.infoOf(*index);
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
  if (batched)
    if (llvm::Error error = checkCount(samples->numSamples()))
      return std::move(error);
  return samples;
}

llvm::Error StepRun::Impl::checkCount(int64_t samples) const {
  if (samples == batch)
    return llvm::Error::success();
  return inputError("the batch has " + llvm::Twine(samples) +
                    " samples, the step was compiled for " +
                    llvm::Twine(batch));
}

llvm::Error StepRun::Impl::meet(Meeting meeting, llvm::Error own) const {
  meeting.step = number;
  return session->ranks().withRank(
      session->ranks().meet(meeting, std::move(own)), updates + 1);
}

llvm::Error StepRun::Impl::meetSharing(const Meeting &meeting,
                                       llvm::Error own) const {
  return isSharded() ? meet(meeting, std::move(own)) : std::move(own);
}

/// Makes a feeder that holds the samples, converted.
static llvm::Expected<Feeder> fill(Session &session, DatasetSource &source,
                                   const StepData &data) {
  if (llvm::Error error = source.seek(/*seed=*/0, {}))
    return std::move(error);
  auto feeder = Feeder::create(session, source, data, /*needTargets=*/true,
                               Feeder::Rows::Common);
  if (feeder)
    if (auto count = feeder->load({}); !count)
      return count.takeError();
  return feeder;
}

/// Writes a batch; of several ranks each has the same one, and writes its part.
/// What is wrong with one rank's arrays is an error on all.
llvm::Error StepRun::Impl::feedBatch(const Batch &fed, Call call) {
  if (!fed.onDevice.empty())
    return feedFromDevice(fed);
  const TensorMap &arrays = fed.host;
  auto samples = readBatch(arrays);
  if (samples && !session->ranks().areSeveral()) {
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
  if (isSet && !own && session->ranks().areSeveral()) {
    own = hashCommonState(*session).moveInto(start.same);
    start.same ^= given;
  }
  if (llvm::Error error = meet(start, std::move(own)))
    return error;
  isSet = false;
  given = 0;
  return session->ranks().withRank(feeder->write(), updates + 1);
}

/// Runs the batch in the session as the next part of the update after
/// `updates`.
llvm::Expected<double> StepRun::Impl::runNext() {
  auto outcome =
      runBatch(*session, {train.schedule, train.seed, train.accumulate},
               updates + 1, train.accumulate - 1 - pending);
  if (!outcome)
    return session->ranks().withRank(outcome.takeError(), updates + 1);
  return outcome->loss;
}

/// Looks at what an update left.
llvm::Error StepRun::Impl::check(double updateLoss, int64_t update) {
  if (llvm::Error error = skips.update(*session, update))
    return error;
  if (llvm::Error error =
          checkUpdate(*session, updateLoss, update, skips.skipped()))
    return error;
  if (skips.isStuck())
    compiled.compilation().say(Message::Severity::Warning, skips.describe());
  if (!skips.skipped() && watch.add(update, updateLoss))
    compiled.compilation().say(Message::Severity::Warning, watch.describe());
  return llvm::Error::success();
}

llvm::Expected<StepResult> StepRun::Impl::step(const Batch &arrays) {
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
  if (llvm::Error error = check(mean, updates))
    return std::move(error);
  result.skipped = skips.skipped();
  return result;
}

llvm::Expected<StepResult> StepRun::step(const TensorMap &batch,
                                         llvm::ArrayRef<DeviceArray> onDevice) {
  if (llvm::Error error = impl->finish())
    return std::move(error);
  return impl->step({batch, onDevice});
}

llvm::Expected<std::optional<StepResult>>
StepRun::Impl::stepLater(const Batch &arrays) {
  StartedBatch next;
  if (!mayRunOn(*session, skips)) {
    auto last = settle();
    if (!last)
      return last;
    if (llvm::Error error = step(arrays).moveInto(next.result)) {
      if (*last) { // is told by the next call
        started.emplace();
        started->result = **last;
      }
      return std::move(error);
    }
    started = next;
    return last;
  }
  if (llvm::Error error =
          checkUpdates(compiled.compilation().given().step.optimizer))
    return std::move(error);
  if (llvm::Error error = feedBatch(arrays, Call::Step))
    return std::move(error);
  next.update = updates + 1;
  next.updates = pending + 1 == train.accumulate;
  if (llvm::Error error =
          startBatch(*session, {train.schedule, train.seed, train.accumulate},
                     next.update, train.accumulate - 1 - pending))
    return std::move(error);
  pending = next.updates ? 0 : pending + 1;
  updates += next.updates;
  auto last = settle(); // one loss is copied at a time
  if (!last)
    return last;
  if (llvm::Error error =
          beginLoss(*session, next.updates ? "step" : "accumulate")
              .moveInto(next.loss))
    return std::move(error);
  started = next;
  return last;
}

llvm::Expected<std::optional<StepResult>> StepRun::Impl::settle() {
  if (!started)
    return std::nullopt;
  StartedBatch last = *std::exchange(started, std::nullopt);
  if (last.loss < 0)
    return last.result;
  StepResult &result = last.result;
  if (llvm::Error error = endLoss(*session, last.loss).moveInto(result.loss))
    return std::move(error);
  result.updated = last.updates;
  pendingLoss += result.loss;
  if (!last.updates)
    if (llvm::Error error = checkFinite(result.loss, "loss", last.update))
      return std::move(error);
  if (last.updates)
    if (llvm::Error error =
            check(std::exchange(pendingLoss, 0) / double(train.accumulate),
                  last.update))
      return std::move(error);
  return result;
}

llvm::Expected<std::optional<StepResult>>
StepRun::stepLater(const TensorMap &batch,
                   llvm::ArrayRef<DeviceArray> onDevice) {
  return impl->stepLater({batch, onDevice});
}

bool StepRun::hasStarted() const { return impl->started.has_value(); }

llvm::Expected<std::optional<StepResult>> StepRun::settle() {
  return impl->settle();
}

llvm::Expected<BatchGradients>
StepRun::gradients(const TensorMap &batch,
                   llvm::ArrayRef<DeviceArray> onDevice) {
  if (llvm::Error error = impl->finish())
    return std::move(error);
  const StepOptions &given = impl->compiled.compilation().given().step;
  if (!given.optimizer.kind.empty())
    return usageError(
        "gradients are results of a step that was compiled with " +
        Setting("optimizer", "none"));
  if (llvm::Error error = impl->feedBatch({batch, onDevice}, Call::Gradients))
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
      values.set(impl->session->infoOf(index).name, std::move(*value));
    }
    if (llvm::Error error = checkGradients(values, given.precision))
      return std::move(error);
    result.gradients = std::move(values);
  }
  return std::move(result);
}
