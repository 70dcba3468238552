//===- Train.cpp - training from a source of the caller, in C -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loop asks the caller's function for one batch after another and gives
// each to the step, which checks it. A batch's place follows from the number of
// batches before it, so that a step that was resumed goes on where the samples
// of an unbroken run would be.
//
//===----------------------------------------------------------------------===//
#include "StepHandle.h"

#include "ckopt/Train/Data/Permutation.h"

#include <algorithm>

using namespace ckopt;
using namespace ckopt::capi;

namespace {

class SourceLoop {
public:
  SourceLoop(ckopt_step &step, const ckopt_source &source,
             const ckopt_train_options &options)
      : step(step), run(*step.run), source(source), options(options),
        batch(run.batch()) {}

  llvm::Error train();
  ckopt_train_result result = {};

private:
  llvm::Error addField(const ckopt_field &field);
  llvm::Error makeBuffers();
  llvm::Error findStart();
  /// Fills the buffers; false where the run is at its end.
  llvm::Expected<bool> nextBatch();
  llvm::Expected<int64_t> ask();
  /// Makes one update; false where the run is at its end.
  llvm::Expected<bool> update();
  llvm::Error ofBatch(llvm::Error error) const;
  bool stops(double loss, double rate);
  std::string name() const { return source.name ? source.name : "source"; }
  bool counted() const { return source.num_samples >= 0; }

  ckopt_step &step;
  StepRun &run;
  const ckopt_source &source;
  const ckopt_train_options &options;
  const int64_t batch;
  int64_t perEpoch = 0; ///< whole batches, where they are known
  int64_t epochs = 1;
  int64_t epoch = 0, position = 0; ///< of the next batch
  TensorMap buffers;
};

} // namespace

llvm::Error SourceLoop::addField(const ckopt_field &field) {
  if (!field.name)
    return misuse("a field has no name");
  if (!isDType(DType(field.dtype)) || field.rank < 0 || field.rank > 64 ||
      (field.rank && !field.shape))
    return misuse("field '" + llvm::Twine(field.name) +
                  "' has no valid type or shape");
  std::vector<int64_t> shape(field.shape, field.shape + field.rank);
  if (field.batched)
    shape.insert(shape.begin(), batch);
  auto elements = checkedNumElements(shape, dtypeSize(DType(field.dtype)));
  if (!elements)
    return withContext(elements.takeError(), field.name);
  if (!llvm::any_of(run.fields(), [&](const FieldSpec &known) {
        return known.array == field.name;
      }))
    return inputError("the step takes no '" + llvm::Twine(field.name) + "'");
  if (!buffers.insert(field.name,
                      HostTensor(DType(field.dtype), std::move(shape))))
    return misuse("field '" + llvm::Twine(field.name) + "' is given twice");
  return llvm::Error::success();
}

llvm::Error SourceLoop::makeBuffers() {
  if (source.num_fields && !source.fields)
    return misuse("the source's fields are NULL");
  for (size_t i = 0; i < source.num_fields; ++i)
    if (llvm::Error error = addField(source.fields[i]))
      return error;
  for (const FieldSpec &spec : run.fields()) {
    if (source.fields && !buffers.contains(spec.array))
      return inputError(name() + ": the step also takes '" + spec.array + "'");
    if (source.fields)
      continue;
    std::vector<int64_t> shape = spec.shape.value_or(std::vector<int64_t>());
    if (spec.batched)
      shape.insert(shape.begin(), batch);
    buffers.set(spec.array, HostTensor(spec.dtype, std::move(shape)));
  }
  return llvm::Error::success();
}

llvm::Error SourceLoop::findStart() {
  if (options.epochs < 0 || options.max_updates < 0)
    return misuse("numbers of epochs and updates must not be negative");
  if (step.pending)
    return usageError("training begins between whole updates, and some of the "
                      "batches of the next one are in");
  epochs = options.epochs ? options.epochs : 1;
  int64_t accumulate = step.accumulate;
  if (!counted()) {
    if (accumulate > 1)
      return usageError(name() + ": a source that cannot say how many samples "
                                 "it has trains without accumulation");
    if (run.updates())
      return usageError(name() + ": the step has made updates, and where to go "
                                 "on is not known without a number of samples");
    return llvm::Error::success();
  }
  perEpoch = source.num_samples / batch;
  if (perEpoch == 0)
    return inputError(name() + ": " + llvm::Twine(source.num_samples) +
                      " samples do not fill one batch of " +
                      llvm::Twine(batch));
  int64_t before = 0;
  if (__builtin_mul_overflow(run.updates(), accumulate, &before))
    return usageError("the step has made too many updates");
  epoch = before / perEpoch;
  position = before % perEpoch * batch;
  if (before && !source.can_seek)
    return usageError(name() + ": the step has made updates, and the source "
                               "cannot seek to where they end");
  return llvm::Error::success();
}

llvm::Expected<int64_t> SourceLoop::ask() {
  std::vector<void *> pointers;
  for (auto &entry : buffers)
    pointers.push_back(entry.second.mutableRawData());
  ckopt_batch_request request = {};
  request.size = sizeof(request);
  request.seed = step.seed;
  request.epoch = epoch;
  request.position = position;
  request.count = batch;
  request.num_buffers = pointers.size();
  request.buffers = pointers.data();
  int64_t given = source.next(source.user, &request);
  if (given < 0)
    return statusError(
        CKOPT_STOPPED,
        name() + ": " +
            (request.error ? request.error : "the callback asked to stop"));
  if (given > batch)
    return inputError(name() + ": the callback says that it wrote " +
                      llvm::Twine(given) + " samples of " + llvm::Twine(batch));
  return given;
}

llvm::Expected<bool> SourceLoop::nextBatch() {
  if (counted() && position >= perEpoch * batch) {
    ++epoch;
    position = 0;
  }
  if (epoch >= epochs)
    return false;
  auto given = ask();
  if (!given)
    return given.takeError();
  if (*given < batch) { // what fills no batch is left out
    if (counted() || position == 0)
      return inputError(name() + ": epoch " + llvm::Twine(epoch) + " ended " +
                        "after " + llvm::Twine(position + *given) + " samples" +
                        (counted()
                             ? " of " + std::to_string(source.num_samples)
                             : ", and a batch has " + std::to_string(batch)));
    ++epoch;
    position = 0;
    return nextBatch();
  }
  position += batch;
  return true;
}

/// Names the samples that the step refused.
llvm::Error SourceLoop::ofBatch(llvm::Error error) const {
  ErrorText text = takeErrorText(std::move(error));
  if (text.code != ExitInputError)
    return makeError(text.code, text.message);
  return inputError(name() + ": samples " + llvm::Twine(position - batch) +
                    " to " + llvm::Twine(position - 1) + " of epoch " +
                    llvm::Twine(epoch) + ": " + text.message);
}

bool SourceLoop::stops(double loss, double rate) {
  if (!options.progress)
    return false;
  ckopt_progress progress = {};
  progress.size = sizeof(progress);
  progress.update = run.updates();
  progress.epoch = epoch;
  progress.position = position;
  progress.loss = loss;
  progress.learning_rate = rate;
  return options.progress(options.user, &progress) != 0;
}

llvm::Expected<bool> SourceLoop::update() {
  double sum = 0, rate = run.learningRate();
  for (bool updated = false; !updated;) {
    auto filled = nextBatch();
    if (!filled || !*filled)
      return filled;
    Within working(step.working);
    auto one = run.step(buffers);
    if (!one)
      return ofBatch(one.takeError());
    sum += one->loss;
    updated = one->updated;
    step.pending = !updated;
  }
  double loss = sum / double(step.accumulate);
  if (result.updates++ == 0)
    result.first_loss = loss;
  result.final_loss = loss;
  result.stopped = stops(loss, rate);
  return true;
}

llvm::Error SourceLoop::train() {
  if (!source.next)
    return misuse("the source's function `next` is NULL");
  if (llvm::Error error = findStart())
    return error;
  if (llvm::Error error = makeBuffers())
    return error;
  // Whole updates that the epochs have.
  int64_t end = INT64_MAX;
  if (counted() && !__builtin_mul_overflow(epochs, perEpoch, &end))
    end /= step.accumulate;
  else
    end = INT64_MAX;
  if (options.max_updates)
    end = std::min(end, options.max_updates);
  while (run.updates() < end && !result.stopped) {
    auto going = update();
    if (!going)
      return going.takeError();
    if (!*going)
      break;
  }
  result.epoch = epoch;
  result.position = position;
  if (counted() && position >= perEpoch * batch) {
    ++result.epoch;
    result.position = 0;
  }
  return llvm::Error::success();
}

ckopt_status ckopt_step_train(ckopt_step *step, const ckopt_source *source,
                              const ckopt_train_options *options,
                              ckopt_train_result *result) {
  return guarded([&]() -> llvm::Error {
    if (!step || !source)
      return misuse("the step or the source are NULL");
    auto from = readSized(source);
    if (!from)
      return from.takeError();
    auto how = readSized(options);
    if (!how)
      return how.takeError();
    if (result && result->size < sizeof(size_t))
      return misuse("a struct's member `size` is not set");
    std::lock_guard lock(step->mutex);
    if (llvm::Error error = checkFree(*step, Use::Steps))
      return error;
    Within training(step->training);
    SourceLoop loop(*step, *from, *how);
    if (llvm::Error error = step->messages->explain(loop.train()))
      return error;
    return result ? writeSized(loop.result, result) : llvm::Error::success();
  });
}

ckopt_status ckopt_epoch_order(int64_t samples, uint64_t seed, int64_t epoch,
                               int64_t *order) {
  return guarded([&]() -> llvm::Error {
    if (samples < 0 || epoch < 0 || (samples && !order))
      return misuse("the number of samples or the epoch is negative, or the "
                    "result NULL");
    std::vector<int64_t> drawn = epochPermutation(samples, seed, epoch);
    std::copy(drawn.begin(), drawn.end(), order);
    return llvm::Error::success();
  });
}
