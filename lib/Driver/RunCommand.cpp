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
#include "Feeding.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Npz.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>

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
  std::vector<ArrayMapping> mappings;
  if (!options.inputs.empty()) {
    auto parsed = parseArrayMappings(options.inputs, "--inputs");
    if (!parsed)
      return parsed.takeError();
    mappings = std::move(*parsed);
  }
  for (int64_t index : inputs) {
    const runtime::TensorInfo &tensor = session.info_of(index);
    std::string array = tensor.name;
    for (const ArrayMapping &mapping : mappings)
      if (mapping.name == tensor.name)
        array = mapping.array;
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
  for (int32_t index : session.manifest().functions.front().outputs) {
    auto value = session.read(index);
    if (!value)
      return value.takeError();
    result.set(session.info_of(index).name, std::move(*value));
  }
  return result;
}

/// Appends the first `samples` of a batch's output along its first dimension.
static void append(std::vector<char> &to, const HostTensor &output,
                   int64_t samples) {
  const char *from = static_cast<const char *>(output.rawData());
  int64_t bytes = output.sizeInBytes() / output.dim(0) * samples;
  to.insert(to.end(), from, from + bytes);
}

/// Outputs of all batches, one after another along the first dimension.
static llvm::Expected<TensorMap>
runBatches(Session &session, BatchSource &source, const DataOptions &options) {
  int64_t batch = batchSize(session.manifest());
  const runtime::FunctionInfo &eval = session.manifest().functions.front();
  auto isBatched = [&](int32_t index) {
    const runtime::TensorInfo &info = session.info_of(index);
    return !info.shape.empty() && info.shape[0] == batch;
  };
  std::vector<std::vector<char>> outputs(eval.outputs.size());
  TensorMap result;
  auto feeder = Feeder::create(session, source, options);
  if (!feeder)
    return feeder.takeError();
  if (llvm::Error error = source.seek(/*seed=*/0, {}))
    return std::move(error);
  int64_t done = 0;
  for (int64_t number = 1, valid = batch; valid == batch; ++number) {
    auto given = feeder->load({0, done});
    if (!given)
      return given.takeError();
    valid = *given;
    // Inputs without a batch are one sample, which no count tells.
    bool isWhole = number == 1 && source.numSamples() == 0;
    if (!valid && !isWhole)
      break;
    if (llvm::Error error = feeder->write())
      return std::move(error);
    // Models that draw random numbers draw others for each batch.
    if (llvm::Error error = session.fill(TensorRole::Step, double(number)))
      return std::move(error);
    if (llvm::Error error = session.run("eval"))
      return std::move(error);
    for (size_t k = 0; k < eval.outputs.size(); ++k) {
      auto value = session.read(eval.outputs[k]);
      if (!value)
        return value.takeError();
      if (isBatched(eval.outputs[k]))
        append(outputs[k], *value, isWhole ? batch : valid);
      else
        result.insert(session.info_of(eval.outputs[k]).name, *value);
    }
    done += isWhole ? batch : valid;
  }
  TensorMap ordered;
  for (size_t k = 0; k < eval.outputs.size(); ++k) {
    const runtime::TensorInfo &info = session.info_of(eval.outputs[k]);
    if (!isBatched(eval.outputs[k])) {
      ordered.set(info.name, *result.find(info.name));
      continue;
    }
    std::vector<int64_t> shape = info.shape;
    shape[0] = done;
    HostTensor whole(info.dtype, shape);
    std::memcpy(whole.mutableRawData(), outputs[k].data(), outputs[k].size());
    ordered.set(info.name, std::move(whole));
  }
  return ordered;
}

static llvm::Expected<TensorMap> runModel(Session &session,
                                          const DriverOptions &options) {
  bool hasTargets = !session.tensors(TensorRole::Target).empty();
  if (hasTargets || !session.tensors(TensorRole::Input).empty())
    if (llvm::Error error = needData(options))
      return std::move(error);
  // Labels and indices are checked where data are read as samples.
  bool checked = hasTargets || !options.data.tableRows.empty() ||
                 !options.data.labels.empty() || !options.data.targets.empty();
  if (!checked) {
    auto whole = readWhole(session, options.data);
    if (!whole)
      return whole.takeError();
    if (*whole)
      return runWhole(session, std::move(**whole));
  }
  auto source =
      openSource(session, options.data, DatasetSource::Order::AsStored);
  if (!source)
    return source.takeError();
  return runBatches(session, **source, options.data);
}

llvm::Error ckopt::runForward(DriverOptions &options) {
  options.compile.import.trainMode = !options.compile.step.asWritten;
  options.compile.step.loss.clear();
  options.compile.step.forwardOnly = true;
  auto planned = prepareStep(options);
  if (!planned)
    return planned.takeError();
  Session &session = *planned->session;
  if (llvm::Error error = setSeed(session, options.seed))
    return error;
  if (llvm::Error error = session.fill(TensorRole::Step, 1))
    return error;
  auto result = runModel(session, options);
  if (!result)
    return result.takeError();
  if (!options.output.empty())
    return writeNpz(options.output, *result);
  for (auto &[name, value] : *result)
    options.out() << name << ": " << value.typeString() << "\n";
  return llvm::Error::success();
}
