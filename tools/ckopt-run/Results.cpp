//===- Results.cpp - data for a step, and what it made --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A machine with a GPU may lack Python and numpy, so the tool itself tells
// whether two steps gave the same bits, and makes data for measurements.
//
//===----------------------------------------------------------------------===//
#include "Results.h"

#include "ckopt/Base/ExitCodes.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace ckopt;
using namespace ckopt::run;
using runtime::FunctionInfo;
using runtime::TensorInfo;
using runtime::TensorRole;

static const FunctionInfo *functionOf(const Loaded &loaded,
                                      const Options &options) {
  for (const FunctionInfo &f : loaded.manifest().functions)
    if (f.name == options.function)
      return &f;
  return nullptr;
}

int ckopt::run::readTensor(Loaded &loaded, int64_t tensor, HostArray &array) {
  const TensorInfo &info =
      loaded.manifest().tensors[static_cast<size_t>(tensor)];
  array.dtype = info.dtype == DType::BF16 ? DType::F32 : info.dtype;
  array.shape = info.shape;
  array.data.resize(
      static_cast<size_t>(array.elements() * dtypeSize(array.dtype)));
  ckrt_status status =
      ckrt_tensor_read(loaded.session, tensor, array.data.data(),
                       static_cast<ckrt_dtype>(array.dtype), array.elements());
  return status == CKRT_OK ? gatherShards(loaded, info, array)
                           : complain(status);
}

//===----------------------------------------------------------------------===//
// --hash
//===----------------------------------------------------------------------===//

int ckopt::run::printHash(Loaded &loaded, const Options &options) {
  const FunctionInfo *function = functionOf(loaded, options);
  const auto &tensors = loaded.manifest().tensors;
  std::vector<bool> wanted(tensors.size());
  for (int32_t index : function->outputs)
    wanted[static_cast<size_t>(index)] = true;
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].role == TensorRole::Parameter ||
        tensors[i].role == TensorRole::State ||
        tensors[i].role == TensorRole::OptimizerState)
      wanted[i] = true;
  // Hash tensors in the order of their names, because the order in the table
  // may differ between artifacts.
  std::vector<size_t> order;
  for (size_t i = 0; i < tensors.size(); ++i)
    if (wanted[i])
      order.push_back(i);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return tensors[a].name != tensors[b].name
               ? tensors[a].name < tensors[b].name
               : a < b;
  });
  Hash hash;
  for (size_t i : order) {
    HostArray array;
    if (int code = readTensor(loaded, static_cast<int64_t>(i), array))
      return code;
    hash.add(tensors[i].name.c_str(), tensors[i].name.size() + 1);
    hash.add(array.data.data(), array.data.size());
  }
  std::printf("hash of %zu tensors %016llx\n", order.size(),
              static_cast<unsigned long long>(hash.value));
  return ExitOk;
}

//===----------------------------------------------------------------------===//
// --random
//===----------------------------------------------------------------------===//

/// Returns number `index` of stream `seed` (splitmix64).
static uint64_t drawAt(uint64_t seed, uint64_t index) {
  uint64_t z =
      (seed + 1) * 0xD1342543DE82EF95ull + (index + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

int ckopt::run::drawInputs(Loaded &loaded, const Options &options) {
  for (const RandomInput &input : options.random) {
    int64_t tensor = ckrt_tensor_find_in(
        loaded.session, options.function.c_str(), input.name.c_str());
    if (tensor < 0)
      return complain(ExitInputError, options.function + " has no input '" +
                                          input.name + "' (--list shows them)");
    const TensorInfo &info =
        loaded.manifest().tensors[static_cast<size_t>(tensor)];
    bool real = info.dtype == DType::F64 || info.dtype == DType::F32 ||
                info.dtype == DType::F16 || info.dtype == DType::BF16;
    int64_t count = 1;
    for (int64_t extent : info.shape)
      count *= extent;
    // The numbers of the whole batch go on where the rank before ends.
    uint64_t first = partsOf(loaded, info) > 1
                         ? static_cast<uint64_t>(loaded.rank * count)
                         : 0;
    if (!real && std::max(std::abs(input.low), std::abs(input.high)) > 0x1p53)
      return complain(ExitInputError,
                      "--random=" + input.name + ": no range for integers");
    // Use a type that the runtime converts to the tensor's: it refuses to
    // convert floating-point numbers to integers.
    std::vector<double> values(real ? static_cast<size_t>(count) : 0);
    std::vector<int64_t> whole(real ? 0 : static_cast<size_t>(count));
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      double unit =
          static_cast<double>(drawAt(options.seed, first + i) >> 11) * 0x1p-53;
      double value = input.low + unit * (input.high - input.low);
      if (real)
        values[i] = value;
      else
        whole[i] = static_cast<int64_t>(std::floor(value));
    }
    ckrt_status status = real
                             ? ckrt_tensor_write(loaded.session, tensor,
                                                 values.data(), CKRT_F64, count)
                             : ckrt_tensor_write(loaded.session, tensor,
                                                 whole.data(), CKRT_I64, count);
    if (status != CKRT_OK)
      return complain(status);
  }
  return ExitOk;
}
