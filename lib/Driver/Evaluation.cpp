//===- Evaluation.cpp - metrics on held-out samples -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the "eval" function batch by batch. Where the loss is an attached one
// the host computes it from the output, so that padding of the last batch does
// not count; a loss of the model's own is read, from whole batches alone.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Driver/Training.h"

using namespace ckopt;
using runtime::TensorRole;

/// The evaluation function, or null.
static const runtime::FunctionInfo *findEval(const Session &session) {
  for (const runtime::FunctionInfo &function : session.manifest().functions)
    if (function.name == "eval")
      return &function;
  return nullptr;
}

/// Which of the dataset's fields is the target of the attached loss; none:
/// numFields().
static llvm::Expected<size_t> findTargetField(const Session &session,
                                              const Dataset &data,
                                              const DataOptions &options) {
  for (size_t field = 0; field < data.numFields(); ++field) {
    const std::string &name = data.spec(field).name;
    auto index = session.find(name);
    if (!index)
      return index.takeError();
    if (session.info_of(*index).role == TensorRole::Target &&
        (options.targetOutputs.empty() || options.targetOutputs.count(name)))
      return field;
  }
  return data.numFields();
}

/// The evaluation's output of this role, and, if given, this name; or -1.
static int32_t findOutput(const Session &session,
                          const runtime::FunctionInfo &eval, TensorRole role,
                          llvm::StringRef name = "") {
  for (int32_t index : eval.outputs) {
    const runtime::TensorInfo &info = session.info_of(index);
    if (info.role == role && (name.empty() || info.name == name))
      return index;
  }
  return -1;
}

/// The host's metrics of one batch: loss and accuracy, or the squared error.
static llvm::Expected<MetricSums> hostMetrics(Session &session, int32_t scores,
                                              const HostTensor &target,
                                              const FieldSpec &spec,
                                              const DataOptions &options,
                                              llvm::ArrayRef<uint8_t> mask) {
  auto output = session.read(scores);
  if (!output)
    return output.takeError();
  if (options.loss == "mse" || !isInteger(target.dtype()))
    return squaredErrorMetrics(*output, target, mask);
  auto axis = options.classAxis;
  if (axis && *axis < 0)
    *axis += output->rank();
  return crossEntropyMetrics(*output, target, spec.ignoreIndex, mask, axis);
}

llvm::Expected<MetricSums> ckopt::evaluate(Session &session,
                                           const Dataset &data,
                                           const DataOptions &dataOptions,
                                           llvm::ArrayRef<int64_t> samples) {
  MetricSums sums;
  const runtime::FunctionInfo *eval = findEval(session);
  auto targetField = findTargetField(session, data, dataOptions);
  if (!targetField)
    return targetField.takeError();
  if (!eval)
    return sums;
  int32_t scores =
      findOutput(session, *eval, TensorRole::Output, dataOptions.scores);
  int32_t loss = findOutput(session, *eval, TensorRole::Loss);
  // What the step's own loss is cannot leave padded samples out.
  bool byHost = !dataOptions.loss.empty();
  bool classify = byHost || dataOptions.classify;
  if (byHost ? scores < 0 || *targetField == data.numFields() : loss < 0)
    return sums;
  int64_t number = 0;
  for (const EvalBatch &batch :
       evaluationBatches(samples, batchSize(session.manifest()))) {
    // Models that draw random numbers draw others for each batch, the same in
    // every evaluation.
    if (llvm::Error error = session.fill(TensorRole::Step, double(++number)))
      return std::move(error);
    if (!byHost && batch.valid != int64_t(batch.indices.size()))
      continue;
    if (llvm::Error error = feed(session, data, batch.indices))
      return std::move(error);
    if (llvm::Error error = session.run("eval"))
      return std::move(error);
    MetricSums metrics;
    metrics.count = batch.valid;
    if (classify && scores >= 0 && *targetField < data.numFields()) {
      auto host =
          hostMetrics(session, scores, data.batch(*targetField, batch.indices),
                      data.spec(*targetField), dataOptions, batch.mask);
      if (!host)
        return host.takeError();
      metrics = *host;
    }
    if (!byHost) {
      auto value = session.read(loss);
      if (!value)
        return value.takeError();
      metrics.loss = value->getDouble(0) * double(metrics.count);
    }
    sums += metrics;
  }
  return sums;
}
