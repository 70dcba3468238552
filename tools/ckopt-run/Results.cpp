//===- Results.cpp - comparing what a step made ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A machine with a GPU may lack Python and numpy, so the tool itself compares
// gradients with references, tells whether two steps gave the same bits, and
// makes data for measurements.
//
//===----------------------------------------------------------------------===//
#include "Results.h"

#include "ckopt/Base/ExitCodes.h"
#include "ckopt/Base/PrintableText.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

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

static int readAs(Loaded &loaded, int64_t tensor, DType dtype,
                  HostArray &array) {
  array.dtype = dtype;
  array.shape = loaded.manifest().tensors[static_cast<size_t>(tensor)].shape;
  array.data.resize(static_cast<size_t>(array.elements() * dtypeSize(dtype)));
  ckrt_status status =
      ckrt_tensor_read(loaded.session, tensor, array.data.data(),
                       static_cast<ckrt_dtype>(dtype), array.elements());
  if (status != CKRT_OK)
    return complain(status);
  return gatherShards(
      loaded, loaded.manifest().tensors[static_cast<size_t>(tensor)], array);
}

int ckopt::run::readTensor(Loaded &loaded, int64_t tensor, HostArray &array) {
  DType dtype = loaded.manifest().tensors[static_cast<size_t>(tensor)].dtype;
  return readAs(loaded, tensor, dtype == DType::BF16 ? DType::F32 : dtype,
                array);
}

//===----------------------------------------------------------------------===//
// --expect
//===----------------------------------------------------------------------===//

namespace {

/// A reference and the step's result, both in f64.
struct Pair {
  std::string name;
  std::vector<double> wanted, made;

  static double norm(const std::vector<double> &values) {
    double sum = 0;
    for (double value : values)
      sum += value * value;
    return std::sqrt(sum);
  }
  double distance() const {
    double sum = 0;
    for (size_t i = 0; i < wanted.size(); ++i)
      sum += (wanted[i] - made[i]) * (wanted[i] - made[i]);
    return std::sqrt(sum);
  }
};

bool toDoubles(const HostArray &array, std::vector<double> &values) {
  auto count = static_cast<size_t>(array.elements());
  values.resize(count);
  if (array.dtype != DType::F64 && array.dtype != DType::F32)
    return false;
  if (count == 0) // memcpy must not get null pointers
    return true;
  if (array.dtype == DType::F64) {
    std::memcpy(values.data(), array.data.data(), count * sizeof(double));
    return true;
  }
  std::vector<float> narrow(count);
  std::memcpy(narrow.data(), array.data.data(), count * sizeof(float));
  std::copy(narrow.begin(), narrow.end(), values.begin());
  return true;
}

int takePair(Loaded &loaded, const Options &options, const NamedArray &wanted,
             Pair &pair) {
  int64_t tensor = -1;
  for (int32_t index : functionOf(loaded, options)->outputs)
    if (loaded.manifest().tensors[static_cast<size_t>(index)].name ==
        wanted.name)
      tensor = index;
  if (tensor < 0)
    return complain(ExitInputError, options.function + " does not make '" +
                                        wanted.name + "' of " + options.expect +
                                        " (--list shows what it makes)");
  HostArray made;
  if (int code = readAs(loaded, tensor, DType::F64, made))
    return code;
  if (made.shape != wanted.array.shape)
    return complain(
        ExitInputError,
        "'" + wanted.name + "' is " +
            shapeText(made.shape.data(),
                      static_cast<int64_t>(made.shape.size())) +
            ", in " + options.expect + " " +
            shapeText(wanted.array.shape.data(),
                      static_cast<int64_t>(wanted.array.shape.size())));
  pair.name = wanted.name;
  if (!toDoubles(wanted.array, pair.wanted) || !toDoubles(made, pair.made))
    return complain(ExitInputError, options.expect + ": '" + wanted.name +
                                        "' is neither f32 nor f64");
  return ExitOk;
}

} // namespace

/// The error of one tensor is the norm of the difference over the norm of the
/// reference; if that norm is zero by construction (a bias before a batch
/// norm), over a tenth of the average norm. The error of all gradients together
/// is a single number that no small tensor dominates.
int ckopt::run::compareOutputs(Loaded &loaded, const Options &options) {
  std::vector<char> bytes;
  std::vector<NamedArray> references;
  std::string error;
  if (!readFile(options.expect, bytes, error))
    return complain(ExitInputError, error);
  if (!parseSafetensors(bytes, references, error))
    return complain(ExitInputError, options.expect + ": " + error);
  if (references.empty())
    return complain(ExitInputError, options.expect + ": it holds no tensor");
  std::vector<Pair> pairs(references.size());
  double squares = 0, count = 0, distances = 0;
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (int code = takePair(loaded, options, references[i], pairs[i]))
      return code;
    if (pairs[i].name.compare(0, 5, "grad/") != 0)
      continue;
    squares += std::pow(Pair::norm(pairs[i].wanted), 2);
    count += static_cast<double>(pairs[i].wanted.size());
    distances += std::pow(pairs[i].distance(), 2);
  }
  double typical = count > 0 ? std::sqrt(squares / count) : 0;
  const Pair *worst = &pairs.front();
  double largest = -1;
  for (const Pair &pair : pairs) {
    double size = std::sqrt(static_cast<double>(pair.wanted.size()));
    bool gradient = pair.name.compare(0, 5, "grad/") == 0;
    double scale = std::max(Pair::norm(pair.wanted),
                            gradient ? 0.1 * typical * size : 0.0);
    double relative = pair.distance();
    if (relative > 0)
      relative = scale > 0 ? relative / scale : INFINITY;
    // Written so that NaN fails.
    if (!(relative <= largest))
      largest = std::isnan(relative) ? INFINITY : relative, worst = &pair;
  }
  std::printf("largest error of %zu tensors %.3g ('%s')\n", pairs.size(),
              largest, printable(worst->name).c_str());
  if (squares > 0)
    std::printf("error of all gradients together %.3g\n",
                std::isnan(distances) ? INFINITY
                                      : std::sqrt(distances / squares));
  if (largest <= options.tolerance || loaded.rank > 0)
    return ExitOk;
  char limit[32];
  std::snprintf(limit, sizeof(limit), "%g", options.tolerance);
  return complain(ExitInternal, "'" + worst->name + "' differs from " +
                                    options.expect + " by more than " + limit);
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
