//===- Outputs.cpp - a model's outputs, batch by batch --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Train/Outputs.h"
#include "ckopt/Train/Feeding.h"

#include <cstring>

using namespace ckopt;
using runtime::TensorRole;

std::vector<int64_t> ckopt::evaluationOutputs(const Session &session,
                                              bool losses) {
  std::vector<int64_t> result;
  for (const runtime::FunctionInfo &function : session.manifest().functions)
    if (function.name == "eval")
      for (int32_t index : function.outputs)
        if (losses || session.infoOf(index).role != TensorRole::Loss)
          result.push_back(index);
  return result;
}

namespace {
/// One output of all batches so far.
struct Gathered {
  int64_t tensor;
  bool batched;
  std::vector<char> bytes; ///< of batched ones
  std::optional<HostTensor> first;
};
} // namespace

/// Adds the first `samples` of what the function has computed.
static llvm::Error gather(const Session &session, Gathered &output,
                          int64_t samples) {
  auto value = session.read(output.tensor);
  if (!value)
    return value.takeError();
  if (!output.batched) {
    if (!output.first)
      output.first = std::move(*value);
    return llvm::Error::success();
  }
  const char *from = static_cast<const char *>(value->rawData());
  output.bytes.insert(output.bytes.end(), from,
                      from + value->sizeInBytes() / value->dim(0) * samples);
  return llvm::Error::success();
}

llvm::Expected<TensorMap>
ckopt::computeOutputs(Session &session, BatchSource &source,
                      const StepData &data, llvm::ArrayRef<int64_t> outputs) {
  int64_t batch = batchSize(session.manifest());
  std::vector<Gathered> gathered;
  for (int64_t index : outputs) {
    const auto &shape = session.infoOf(index).shape;
    gathered.push_back(
        {index, !shape.empty() && shape[0] == batch, {}, std::nullopt});
  }
  auto feeder = Feeder::create(session, source, data, /*needTargets=*/false);
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
    int64_t counted = isWhole ? batch : valid;
    if (llvm::Error error = feeder->write())
      return std::move(error);
    // Models that draw random numbers draw others for each batch.
    if (llvm::Error error = session.fill(TensorRole::Step, double(number)))
      return std::move(error);
    if (llvm::Error error = session.run("eval"))
      return std::move(error);
    for (Gathered &output : gathered)
      if (llvm::Error error = gather(session, output, counted))
        return std::move(error);
    done += counted;
  }
  TensorMap result;
  for (Gathered &output : gathered) {
    const runtime::TensorInfo &info = session.infoOf(output.tensor);
    std::vector<int64_t> shape = info.shape;
    if (output.batched)
      shape[0] = done;
    HostTensor value =
        output.first ? std::move(*output.first) : HostTensor(info.dtype, shape);
    if (!output.bytes.empty())
      std::memcpy(value.mutableRawData(), output.bytes.data(),
                  output.bytes.size());
    result.set(info.name, std::move(value));
  }
  return std::move(result);
}
