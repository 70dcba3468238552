//===- Init.cpp - first values of parameters ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Element i (row-major, logical) of tensor T gets a number that depends on
// (seed, name of T, i) alone: the same in any layout, order, budget, and in
// files that hold other tensors too. Philox4x32-10 with key = seed (low, high),
// counter = (i/4 low, i/4 high, hash of the name low, high), word i%4; the hash
// is FNV-1a 64. Rules, with u = (word + 1/2) / 2^32:
//   kaiming  uniform in +-sqrt(6 / fanIn)           (He et al. 2015)
//   xavier   uniform in +-sqrt(6 / (fanIn + fanOut)) (Glorot, Bengio 2010)
//   normal   0.02 * Gauss, by Box and Muller from words 2j and 2j + 1
//   zeros, ones, or a number
//
//===----------------------------------------------------------------------===//
#include "InitRule.h"
#include "Session.h"
#include "ckopt/Base/Philox.h"

#include <algorithm>
#include <cmath>

using namespace ckopt;
using namespace ckopt::runtime;

namespace {

class Generator {
public:
  Generator(const TensorInfo &t, uint64_t seed) : seed(seed) {
    for (unsigned char c : t.name)
      hash = (hash ^ c) * 1099511628211ull;
  }

  double uniform(int64_t element) {
    return (words(element / 4)[element % 4] + 0.5) * 0x1p-32;
  }
  double gauss(int64_t element) {
    int64_t even = element & ~int64_t(1);
    double radius = std::sqrt(-2.0 * std::log(uniform(even)));
    double angle = 6.283185307179586 * uniform(even + 1);
    return radius * (element == even ? std::cos(angle) : std::sin(angle));
  }

private:
  const PhiloxCounter &words(int64_t block) {
    if (block != lastBlock) {
      last = philox4x32({uint32_t(block), uint32_t(uint64_t(block) >> 32),
                         uint32_t(hash), uint32_t(hash >> 32)},
                        {uint32_t(seed), uint32_t(seed >> 32)});
      lastBlock = block;
    }
    return last;
  }

  uint64_t seed, hash = 14695981039346656037ull;
  int64_t lastBlock = -1;
  PhiloxCounter last{};
};

/// Computes the fans where the manifest has none: from a weight [out, in,
/// kernel...], else from the element count.
void fans(const TensorInfo &t, double &in, double &out) {
  double points = 1;
  const std::vector<int64_t> &shape = t.fullShape();
  for (size_t d = 2; d < shape.size(); ++d)
    points *= static_cast<double>(shape[d]);
  bool matrix = shape.size() >= 2;
  double single = shape.empty() ? 1 : static_cast<double>(shape[0]);
  in = t.fanIn ? static_cast<double>(t.fanIn)
               : (matrix ? static_cast<double>(shape[1]) * points : single);
  out = t.fanOut ? static_cast<double>(t.fanOut)
                 : (matrix ? single * points : single);
  in = std::max(in, 1.0);
  out = std::max(out, 1.0);
}

/// A shard gets the numbers of its elements in the whole tensor.
void fillRandom(const TensorInfo &t, char *base, uint64_t seed, int64_t rank) {
  Shards shards = t.sharing();
  int64_t first = t.shards > 1 ? shards.begin(shards.shardOf(rank)) : 0;
  double in, out;
  fans(t, in, out);
  double bound =
      t.init == "kaiming" ? std::sqrt(6.0 / in) : std::sqrt(6.0 / (in + out));
  bool normal = t.init == "normal";
  int64_t size = dtypeSize(t.dtype);
  Generator generator(t, seed);
  forEachRun(t, [&](int64_t logical, int64_t offset, int64_t count,
                    int64_t step) {
    for (int64_t i = 0; i < count; ++i) {
      double value =
          normal ? 0.02 * generator.gauss(first + logical + i)
                 : (2.0 * generator.uniform(first + logical + i) - 1.0) * bound;
      storeElement(t.dtype, base + (offset + i * step) * size, value);
    }
  });
}

} // namespace

ckrt_status ckrt_init_parameters(ckrt_session *session, uint64_t seed) {
  if (!session)
    return fail(CKRT_INVALID_ARGUMENT, "ckrt_init_parameters: no session");
  const auto &tensors = session->manifest().tensors;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorInfo &t = tensors[i];
    bool state =
        t.role == TensorRole::State || t.role == TensorRole::OptimizerState;
    bool weight =
        t.role == TensorRole::Parameter || t.role == TensorRole::Frozen;
    if (t.dataOffset >= 0 || !(state || (weight && !t.init.empty())))
      continue;
    auto index = static_cast<int64_t>(i);
    if (auto number = initialNumber(t.init)) {
      ckrt_status status = ckrt_tensor_fill(session, index, *number);
      if (status != CKRT_OK)
        return status;
      continue;
    }
    OpenTensor open(*session, t, accessToWrite(t));
    if (open.status != CKRT_OK)
      return open.status;
    fillRandom(t, open.bytes, seed, session->backend->rank());
    if (ckrt_status status = open.close())
      return status;
  }
  return CKRT_OK;
}
