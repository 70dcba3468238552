//===- CompileEmit.cpp - from a planned step to code ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes machine code of the plan, or adopts that of another rank, and embeds
// weights.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Compiler/Compile.h"
#include "ckopt/Compiler/LossChoice.h"
#include "ckopt/Ranks/Shards.h"
#include "ckopt/Target/TargetRegistry.h"

#include <cstring>

using namespace mlir;
using namespace ckopt;

/// Copies row-major elements to where the tensor's own order has them.
static void copyToOrder(const HostTensor &value,
                        const runtime::TensorInfo &tensor, char *to) {
  int64_t size = dtypeSize(tensor.dtype), offset = 0;
  auto *from = static_cast<const char *>(value.rawData());
  SmallVector<int64_t> index(tensor.shape.size());
  for (int64_t i = 0, count = value.numElements(); i < count; ++i) {
    std::memcpy(to + offset * size, from + i * size, size_t(size));
    for (size_t d = index.size(); d-- > 0;) {
      offset += tensor.strides[d];
      if (++index[d] < tensor.shape[d])
        break;
      offset -= tensor.strides[d] * tensor.shape[d];
      index[d] = 0;
    }
  }
}

/// Appends the known values of tensors, so that the artifact carries them:
/// constants always, which steps of one arena write again after each other.
llvm::Error Compilation::embedWeights(runtime::Manifest &manifest,
                                      std::vector<char> &data) const {
  for (runtime::TensorInfo &tensor : manifest.tensors) {
    if (!opts.embedWeights && tensor.role != runtime::TensorRole::Constant)
      continue;
    auto found = imported.weights.find(tensor.name);
    if (found == imported.weights.end())
      continue;
    auto value = found->second.convertTo(tensor.dtype);
    if (!value)
      return value.takeError();
    tensor.dataOffset = int64_t(data.size());
    data.resize((data.size() + size_t(tensor.dataBytes()) + 63) / 64 * 64);
    for (int64_t rank = 0; rank < tensor.shards; ++rank)
      copyToOrder(tensor.shards > 1 ? shardOf(tensor, *value, rank) : *value,
                  tensor, data.data() + tensor.dataOffsetOf(rank));
  }
  return llvm::Error::success();
}

llvm::Error Compilation::checkEmit() const {
  if (stage != Stage::Planned || stepCode)
    return usageError("emit() follows plan(), once, and needs its success");
  return checkAllPhases(opts.phases);
}

llvm::Expected<bool> Compilation::adoptCode(llvm::StringRef packed) {
  if (llvm::Error error = checkEmit())
    return std::move(error);
  auto code = targetInfo->unpack(packed);
  if (!code)
    return code.takeError();
  stepCode = std::move(*code);
  return stepCode != nullptr;
}

llvm::Error Compilation::emit() {
  if (llvm::Error error = checkEmit())
    return error;
  EmitOptions options;
  options.kernels = opts.step;
  options.cpu = opts.target;
  options.device = opts.device;
  options.instrument = opts.instrument;
  options.keepDenormals = opts.keepDenormals;
  options.verbose = opts.phases.verbose;
  options.producer = std::string("ckopt ") + CKOPT_VERSION;
  options.addData = [this](runtime::Manifest &manifest,
                           std::vector<char> &data) {
    return embedWeights(manifest, data);
  };
  auto emitUpTo = [&](ModuleOp planned, int64_t high,
                      std::unique_ptr<StepCode> &into) -> llvm::Error {
    std::optional<PlannedSizes> sizes;
    if (opts.sizes) {
      if (llvm::Error error = planSizes(planned, high).moveInto(sizes))
        return error;
      options.sizes = &*sizes;
    }
    return targetInfo->emit(planned, options).moveInto(into);
  };
  if (llvm::Error error =
          emitUpTo(module(), opts.sizes ? opts.sizes->high : 0, stepCode))
    return error;
  for (Schedule &schedule : smaller)
    if (llvm::Error error =
            emitUpTo(*schedule.planned, schedule.high, schedule.code))
      return error;
  unplannedAt.clear(); // large, and made into code
  for (Schedule &schedule : smaller)
    schedule.planned = nullptr;
  return llvm::Error::success();
}

const StepCode &Compilation::codeAt(int64_t size) const {
  const StepCode *code = stepCode.get();
  for (const Schedule &schedule : smaller)
    if (size && size <= schedule.high)
      code = schedule.code.get();
  return *code;
}

const runtime::Manifest &Compilation::manifest() const {
  static const runtime::Manifest none;
  return stepCode ? stepCode->manifest : none;
}
