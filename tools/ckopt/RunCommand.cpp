//===- RunCommand.cpp - ckopt run: a model's outputs ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs a model forward. Arrays that have exactly the shapes of the model's
// inputs are fed once, unchanged, so that any model runs, even without inputs.
// Other arrays hold samples along their first dimension, and run batch by
// batch.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Npz.h"
#include "ckopt/Train/Feeding.h"
#include "ckopt/Train/Outputs.h"
#include "llvm/Support/raw_ostream.h"

using namespace ckopt;
using runtime::TensorRole;

/// Returns the arrays of all inputs in the manifest's order if each exists and
/// has the input's own shape; else nothing.
static llvm::Expected<std::optional<std::vector<HostTensor>>>
readWhole(const Session &session, const DataOptions &options) {
  std::vector<HostTensor> arrays;
  std::vector<int64_t> inputs = session.tensors(TensorRole::Input);
  if (inputs.empty())
    return arrays;
  auto files = openFiles(options);
  if (!files)
    return files.takeError();
  if (files->size() != 1)
    return std::nullopt;
  const ArrayFile &file = files->front();
  auto mappings = inputMappings(options);
  if (!mappings)
    return mappings.takeError();
  for (int64_t index : inputs) {
    const runtime::TensorInfo &tensor = session.infoOf(index);
    std::string array = arrayOf(tensor.name, *mappings, tensor.name);
    if (!file.contains(array))
      return std::nullopt;
    auto value = file.read(array);
    if (!value)
      return value.takeError();
    if (value->shape != tensor.shape)
      return std::nullopt;
    arrays.push_back(value->tensor());
  }
  return arrays;
}

static llvm::Expected<TensorMap> runWhole(Session &session,
                                          std::vector<HostTensor> arrays) {
  std::vector<int64_t> inputs = session.tensors(TensorRole::Input);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (llvm::Error error = session.write(inputs[i], arrays[i]))
      return std::move(error);
  if (llvm::Error error = session.run("eval"))
    return std::move(error);
  TensorMap result;
  for (int64_t index : evaluationOutputs(session, /*losses=*/true)) {
    auto value = session.read(index);
    if (!value)
      return value.takeError();
    result.set(session.infoOf(index).name, std::move(*value));
  }
  return result;
}

static llvm::Expected<TensorMap>
runModel(Session &session, const StepData &data, const DriverOptions &options) {
  bool hasTargets = !session.tensors(TensorRole::Target).empty();
  if (hasTargets || !session.tensors(TensorRole::Input).empty())
    if (llvm::Error error = needData(options))
      return std::move(error);
  // Labels and indices are checked where data are read as samples.
  bool limited = llvm::any_of(
      session.manifest().tensors,
      [](const runtime::TensorInfo &info) { return info.limits.exist(); });
  bool checked = hasTargets || limited || !data.images.empty() ||
                 data.isStream() || !data.targets.empty();
  if (!checked) {
    auto whole = readWhole(session, data);
    if (!whole)
      return whole.takeError();
    if (*whole)
      return runWhole(session, std::move(**whole));
  }
  auto source = openSource(session, data, DatasetSource::Order::AsStored);
  if (!source)
    return source.takeError();
  return computeOutputs(session, **source, data,
                        evaluationOutputs(session, /*losses=*/true));
}

llvm::Error ckopt::runForward(DriverOptions &options) {
  options.compile.import.trainMode = !options.compile.step.asWritten;
  options.compile.step.loss.clear();
  options.compile.step.forwardOnly = true;
  auto planned = prepareStep(options);
  if (!planned)
    return planned.takeError();
  planned->compilation->releaseWeights();
  Session &session = *planned->session;
  if (llvm::Error error = setSeed(session, options.seed))
    return error;
  if (llvm::Error error = session.fill(TensorRole::Step, 1))
    return error;
  auto result = runModel(session, planned->data, options);
  if (!result)
    return result.takeError();
  if (!options.output.empty()) {
    if (llvm::Error error = writeNpz(options.output, *result))
      return error;
    tellWritten(options, options.output);
    return llvm::Error::success();
  }
  for (auto &[name, value] : *result)
    options.out() << name << ": " << value.typeString() << "\n";
  return llvm::Error::success();
}
