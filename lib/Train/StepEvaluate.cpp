//===- StepEvaluate.cpp - a loaded step on samples ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Losses, metrics and outputs of any number of samples, by a step's weights as
// they are. Ranks that share weights come together for it.
//
//===----------------------------------------------------------------------===//
#include "StepRunImpl.h"

#include "ckopt/Compiler/Compile.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Train/Feeding.h"
#include "ckopt/Train/Outputs.h"

using namespace ckopt;
using runtime::TensorRole;

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
  StepData data = impl->data;
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
    return inputError(
        "nothing was evaluated: all labels are the one that is ignored (" +
        Setting("ignore-index") + ")");
  if (result->samples == 0)
    return inputError(
        "nothing was evaluated: the step computes its loss itself, from whole "
        "batches of " +
        llvm::Twine(batchSize(impl->session->manifest())) + " samples");
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
  if (llvm::Error error = checkEvaluates(*impl->session))
    return std::move(error);
  std::vector<FieldSpec> inputs;
  for (const FieldSpec &field : impl->fields) {
    auto index = impl->session->find(field.name);
    if (!index)
      return index.takeError();
    if (impl->session->infoOf(*index).role == TensorRole::Input)
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
