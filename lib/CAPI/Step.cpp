//===- Step.cpp - compiled steps, in C ------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "StepHandle.h"

#include "ckopt/Compiler/Compile.h"
#include "ckopt/Settings/JoinRanks.h"

using namespace ckopt;
using namespace ckopt::capi;
using runtime::TensorRole;

//===----------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------===//

static llvm::Expected<CompiledStep> compileRequest(Request &request) {
  auto compiled = compile(std::move(request.settings.compile),
                          std::move(request.settings.data));
  if (!compiled)
    return request.messages->explain(compiled.takeError());
  return compiled;
}

ckopt_status ckopt_compile(const ckopt_model *model,
                           const ckopt_options *options, ckopt_step **step) {
  return guarded([&]() -> llvm::Error {
    if (!step)
      return misuse("the result is NULL");
    *step = nullptr;
    auto request = readRequest(model, options);
    if (!request)
      return request.takeError();
    if (llvm::Error error = joinRanks(request->settings))
      return request->messages->explain(std::move(error));
    auto compiled = compileRequest(*request);
    if (!compiled)
      return compiled.takeError();
    auto made = std::make_unique<ckopt_step>();
    made->file = request->file;
    made->messages = request->messages;
    made->seed = request->settings.train.seed;
    made->accumulate =
        compiled->compilation().given().step.optimizer.accumulate;
    auto run = StepRun::create(std::move(*compiled), request->settings.train,
                               request->settings.load);
    if (!run)
      return request->messages->explain(run.takeError());
    made->run = std::move(*run);
    *step = made.release();
    return llvm::Error::success();
  });
}

ckopt_status ckopt_compile_to_file(const ckopt_model *model,
                                   const ckopt_options *options,
                                   const char *path) {
  return guarded([&]() -> llvm::Error {
    if (!path)
      return misuse("the path is NULL");
    auto request = readRequest(model, options);
    if (!request)
      return request.takeError();
    auto compiled = compileRequest(*request);
    if (!compiled)
      return compiled.takeError();
    return request->messages->explain(compiled->write(path));
  });
}

void ckopt_step_destroy(ckopt_step *step) {
  if (!step)
    return;
  {
    std::lock_guard lock(step->mutex);
    if (step->working || step->training)
      return; // a callback: what it came from still needs the step
  }
  delete step;
}

//===----------------------------------------------------------------------===//
// Figures
//===----------------------------------------------------------------------===//

ckopt_status ckopt_step_get_info(ckopt_step *step, ckopt_step_info *info) {
  return onStep(step, Use::Reads, [&](StepRun &run) -> llvm::Error {
    ckopt_step_info value = {};
    value.batch = run.batch();
    value.accumulate = step->accumulate;
    value.updates = run.updates();
    value.learning_rate = run.learningRate();
    value.fields = run.fields().size();
    if (const auto &scale = run.lossScale()) {
      value.loss_scale = scale->scale;
      value.skipped = scale->skipped;
    }
    value.rank = run.session().ranks().number();
    value.ranks = run.session().ranks().size();
    return writeSized(value, info);
  });
}

ckopt_status ckopt_step_get_field(ckopt_step *step, size_t index,
                                  ckopt_field *field) {
  return onStep(step, Use::Reads, [&](StepRun &run) -> llvm::Error {
    if (!field)
      return misuse("the result is NULL");
    if (index >= run.fields().size())
      return statusError(
          CKOPT_NOT_FOUND,
          "a batch has " + llvm::Twine(uint64_t(run.fields().size())) +
              " fields, and none of number " + llvm::Twine(uint64_t(index)));
    const FieldSpec &spec = run.fields()[index];
    field->name = spec.array.c_str();
    field->dtype = ckopt_dtype(spec.dtype);
    field->rank = spec.shape ? int32_t(spec.shape->size()) : 0;
    field->shape = field->rank ? spec.shape->data() : nullptr;
    field->batched = spec.batched;
    return llvm::Error::success();
  });
}

ckopt_status ckopt_step_get_memory(ckopt_step *step, ckopt_memory *memory) {
  return onStep(step, Use::Reads, [&](StepRun &run) -> llvm::Error {
    auto measured = run.session().measuredPeak();
    if (!measured)
      return measured.takeError();
    const PlanSummary &plan = run.compiled().plan();
    ckopt_memory value = {};
    value.planned_peak = plan.figures.arena;
    value.measured_peak = *measured;
    value.budget = plan.figures.budget;
    value.parameters = plan.parameterBytes;
    value.optimizer = plan.optimizerBytes;
    value.state = plan.stateBytes;
    value.data = plan.dataBytes;
    return writeSized(value, memory);
  });
}

ckopt_status ckopt_step_get_plan(ckopt_step *step, ckopt_plan **plan) {
  return onStep(step, Use::Reads, [&](StepRun &run) -> llvm::Error {
    if (!plan)
      return misuse("the result is NULL");
    *plan = nullptr;
    *plan = describePlan(run.compiled().compilation()).release();
    return llvm::Error::success();
  });
}

//===----------------------------------------------------------------------===//
// Batches
//===----------------------------------------------------------------------===//

/// Puts tensors into a handle for the caller.
static llvm::Error give(llvm::Expected<TensorMap> tensors, ckopt_tensors **to) {
  if (!tensors)
    return tensors.takeError();
  *to = ownTensors(std::move(*tensors)).release();
  return llvm::Error::success();
}

ckopt_status ckopt_step_run(ckopt_step *step, const ckopt_tensor *batch,
                            size_t count, double *loss, int32_t *updated) {
  return onStep(step, Use::Steps, [&](StepRun &run) -> llvm::Error {
    auto views = viewTensors(batch, count);
    if (!views)
      return views.takeError();
    auto result = run.step(*views);
    if (!result)
      return result.takeError();
    if (loss)
      *loss = result->loss;
    step->pending = !result->updated;
    if (updated)
      *updated = result->updated;
    return llvm::Error::success();
  });
}

ckopt_status ckopt_step_gradients(ckopt_step *step, const ckopt_tensor *batch,
                                  size_t count, double *loss,
                                  ckopt_tensors **gradients) {
  return onStep(step, Use::Steps, [&](StepRun &run) -> llvm::Error {
    if (!gradients)
      return misuse("the result is NULL");
    *gradients = nullptr;
    auto views = viewTensors(batch, count);
    if (!views)
      return views.takeError();
    auto result = run.gradients(*views);
    if (!result)
      return result.takeError();
    if (loss)
      *loss = result->loss;
    return give(std::move(result->gradients), gradients);
  });
}

ckopt_status ckopt_step_evaluate(ckopt_step *step, const ckopt_tensor *samples,
                                 size_t count, ckopt_metrics *metrics) {
  return onStep(step, Use::Reads, [&](StepRun &run) -> llvm::Error {
    auto views = viewTensors(samples, count);
    if (!views)
      return views.takeError();
    auto sums = run.evaluate(*views);
    if (!sums)
      return sums.takeError();
    ckopt_metrics value = {};
    value.loss = sums->meanLoss();
    value.count = sums->count;
    value.correct = sums->correct;
    value.classified = classifies(run.compiled().data());
    return writeSized(value, metrics);
  });
}

ckopt_status ckopt_step_predict(ckopt_step *step, const ckopt_tensor *samples,
                                size_t count, ckopt_tensors **outputs) {
  return onStep(step, Use::Reads, [&](StepRun &run) -> llvm::Error {
    if (!outputs)
      return misuse("the result is NULL");
    *outputs = nullptr;
    auto views = viewTensors(samples, count);
    if (!views)
      return views.takeError();
    return give(run.predict(*views), outputs);
  });
}

ckopt_status ckopt_step_profile(ckopt_step *step, const ckopt_tensor *batch,
                                size_t count, int64_t updates,
                                void (*call)(void *, const ckopt_call_time *),
                                void *user) {
  return onStep(step, Use::Steps, [&](StepRun &run) -> llvm::Error {
    if (!call)
      return misuse("the callback is NULL");
    auto views = viewTensors(batch, count);
    if (!views)
      return views.takeError();
    auto times = run.profile(*views, updates);
    if (!times)
      return times.takeError();
    for (const CallTime &time : *times) {
      ckopt_call_time row = {sizeof(row),         time.kernel.c_str(),
                             time.source.c_str(), time.primitive.c_str(),
                             time.recomputed,     time.seconds};
      call(user, &row);
    }
    return llvm::Error::success();
  });
}

//===----------------------------------------------------------------------===//
// Weights and files
//===----------------------------------------------------------------------===//

static llvm::Expected<TensorMap>
readWeights(StepRun &run, const char *const *names, size_t count) {
  if (!names)
    return run.weights();
  std::vector<std::string> wanted;
  Session &session = run.session();
  for (size_t i = 0; i < count; ++i) {
    if (!names[i])
      return misuse("a name is NULL");
    auto index = session.find(names[i]);
    TensorRole role = TensorRole::Input;
    if (index)
      role = session.infoOf(*index).role;
    else
      llvm::consumeError(index.takeError());
    if (role != TensorRole::Parameter && role != TensorRole::Frozen &&
        role != TensorRole::State)
      return statusError(CKOPT_NOT_FOUND, "'" + llvm::Twine(names[i]) +
                                              "' is no weight of the model");
    wanted.push_back(names[i]);
  }
  return run.read(wanted);
}

ckopt_status ckopt_step_get_weights(ckopt_step *step, const char *const *names,
                                    size_t count, ckopt_tensors **weights) {
  return onStep(step, Use::Reads, [&](StepRun &run) -> llvm::Error {
    if (!weights)
      return misuse("the result is NULL");
    *weights = nullptr;
    return give(readWeights(run, names, count), weights);
  });
}

ckopt_status ckopt_step_get_averages(ckopt_step *step,
                                     ckopt_tensors **weights) {
  return onStep(step, Use::Reads, [&](StepRun &run) -> llvm::Error {
    if (!weights)
      return misuse("the result is NULL");
    *weights = nullptr;
    return give(run.weights(/*averaged=*/true), weights);
  });
}

ckopt_status ckopt_step_set_weights(ckopt_step *step,
                                    const ckopt_tensor *weights, size_t count) {
  return onStep(step, Use::Reads, [&](StepRun &run) -> llvm::Error {
    auto views = viewTensors(weights, count);
    if (!views)
      return views.takeError();
    return run.setWeights(*views);
  });
}

ckopt_status ckopt_step_save(ckopt_step *step, const char *path,
                             int32_t averaged) {
  return onStep(step, Use::Reads, [&](StepRun &run) -> llvm::Error {
    if (!path)
      return misuse("the path is NULL");
    return run.writeWeights(path, {.averaged = averaged != 0});
  });
}

ckopt_status ckopt_step_checkpoint(ckopt_step *step, const char *path) {
  return onStep(step, Use::Reads, [&](StepRun &run) -> llvm::Error {
    if (!path)
      return misuse("the path is NULL");
    return run.writeCheckpoint(path);
  });
}

ckopt_status ckopt_step_resume(ckopt_step *step, const char *path,
                               int64_t *updates) {
  return onStep(step, Use::Steps, [&](StepRun &run) -> llvm::Error {
    if (!path)
      return misuse("the path is NULL");
    if (llvm::Error error = run.resume(path))
      return error;
    step->pending = false;
    if (updates)
      *updates = run.updates();
    return llvm::Error::success();
  });
}
