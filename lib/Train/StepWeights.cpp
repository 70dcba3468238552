//===- StepWeights.cpp - what a loaded step has learned -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads, sets and writes the weights of a step, and its checkpoints. Tensors
// that ranks share are whole wherever a caller sees them.
//
//===----------------------------------------------------------------------===//
#include "StepRunImpl.h"

#include "ckopt/Compiler/LossChoice.h"
#include "ckopt/Compiler/Together.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Train/Outputs.h"

using namespace ckopt;
using runtime::TensorRole;

/// Returns whether the step has averages, if these are asked for.
llvm::Error StepRun::Impl::checkAveraged(bool averaged) const {
  if (averaged && compiled.compilation().given().step.optimizer.ema <= 0)
    return usageError("there are no averaged weights: compile with " +
                      Setting("ema", "D"));
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
      const runtime::TensorInfo &info = impl->session->infoOf(index);
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
      const runtime::TensorInfo &info = impl->session->infoOf(*index);
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
                                  WrittenWeights which) const {
  const Ranks &ranks = impl->session->ranks();
  if (!ranks.isMain() && !impl->isSharded())
    return llvm::Error::success();
  if (llvm::Error error = impl->meetSharing(
          {Call::Save, which.averaged + 2u * which.trainedOnly, kOtherWeights},
          impl->checkAveraged(which.averaged)))
    return error;
  llvm::Error own = checkState(*impl->session, impl->updates);
  if (impl->isSharded())
    own = ranks.agreeOnError(std::move(own));
  if (own)
    return own;
  which.averaged &= impl->updates > 0;
  llvm::Error error =
      ckopt::writeWeights(impl->compiled.compilation(), *impl->session, path,
                          which, weightsMetadata(impl->classes));
  return impl->isSharded() ? ranks.agreeOnError(std::move(error))
                           : std::move(error);
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
  if (llvm::Error error = impl->session->ranks().shareMainPath(shared))
    return error;
  return saveRun(shared, *impl->session,
                 {impl->updates, {}, impl->train.seed, impl->identity(), {}});
}

/// Begins the counts of a run that goes on after so many updates.
llvm::Error StepRun::Impl::goOn(int64_t from) {
  isSet = true;
  updates = from;
  epochs = 0;
  pending = 0;
  pendingLoss = 0;
  watch = DivergenceWatch();
  return skips.begin(*session);
}

llvm::Error StepRun::resume(const std::string &path) {
  if (llvm::Error error = impl->finish())
    return error;
  auto checkpoint = openCheckpoint(path);
  if (llvm::Error error = impl->meetSharing(
          {Call::Resume},
          checkpoint ? llvm::Error::success() : checkpoint.takeError()))
    return error;
  auto warn = [&](MessageText text) {
    impl->compiled.compilation().say(Message::Severity::Warning,
                                     std::move(text));
  };
  if (llvm::Error error =
          restoreRun(path, *impl->session, *checkpoint, impl->identity(),
                     impl->train.schedule, warn))
    return error;
  if (impl->isSharded()) // what all ranks hold is compared by itself
    if (llvm::Error error = addHash(impl->given, checkpoint->tensors))
      return error;
  return impl->goOn(checkpoint->state.step);
}

/// Refuses a step that differs from this one in more than its shapes.
llvm::Error StepRun::Impl::checkLike(const Impl &other) const {
  StringMetadata own = identity(), given = other.identity();
  for (const char *shape : {"batch", "dims"}) {
    own.erase(shape);
    given.erase(shape);
  }
  llvm::Error errors = llvm::Error::success();
  for (const OptionDifference &option : compareOptions(given, own))
    errors = llvm::joinErrors(
        std::move(errors),
        inputError("the other step is not this one for other batches: its " +
                   option.name + " is " + option.was + ", here it is " +
                   option.is));
  return errors;
}

llvm::Error StepRun::resume(const StepRun &other) {
  for (Impl *one : {impl.get(), other.impl.get()})
    if (llvm::Error error = one->finish())
      return error;
  if (llvm::Error error = impl->checkLike(*other.impl))
    return error;
  if (impl->place == other.impl->place)
    return llvm::Error::success();
  if (other.impl->pending)
    return usageError("the other step is within an update: " +
                      llvm::Twine(other.impl->pending) +
                      " of its batches are in");
  if (llvm::Error failed =
          impl->session->restore(*other.impl->session, "the other step"))
    return failed;
  impl->given = impl->given * 31 + other.impl->given;
  return impl->goOn(other.impl->updates);
}
