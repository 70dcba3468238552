//===- CudaRates.cpp - how fast GPUs run our kernels ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Estimates, since nothing has run on hardware yet: of memory 78 % of what data
// sheets say; of products what full waves of blocks with tiles of 128 reach, as
// read from SASS of kernels with operands of f32 in memory. With what
// annotate-kernels adds for tiles, waves and loads from the cache they predict
// the steps of GPT-2 small, ResNet-50 and ViT-B/16 that were estimated from
// that SASS, of kernels with square tiles, within 30 % on an H100. Files of `ckopt bench --calibrate` or
// `ckopt-run --kernel-times` replace them.
//
//===----------------------------------------------------------------------===//
#include "CudaRates.h"

#include "ckopt/Analysis/CostProfile.h"
#include "ckopt/Support/Error.h"

using namespace ckopt;

namespace {

/// Rates of one device; of products and convolutions, in tiles of 128 and full
/// waves, by what operands of f32 are rounded to: f32, tf32, bf16 or f16.
struct GpuRates {
  llvm::StringLiteral name;
  double bandwidth, cacheBandwidth, cacheBytes, vector, multiprocessors;
  double matmul[3], conv[3];
};

constexpr double kMiB = 1 << 20;
constexpr GpuRates kGpus[] = {{"a100",
                               1.6e12,
                               4e12,
                               20 * kMiB,
                               6e12,
                               108,
                               {14.5e12, 59e12, 77e12},
                               {13.5e12, 41e12, 50e12}},
                              {"h100",
                               2.6e12,
                               5.5e12,
                               25 * kMiB,
                               15e12,
                               132,
                               {46e12, 112e12, 128e12},
                               {43e12, 78e12, 88e12}},
                              {"h200",
                               3.7e12,
                               5.5e12,
                               25 * kMiB,
                               15e12,
                               132,
                               {46e12, 112e12, 128e12},
                               {43e12, 78e12, 88e12}},
                              {"l4",
                               0.23e12,
                               1e12,
                               24 * kMiB,
                               7e12,
                               58,
                               {15.5e12, 31e12, 38e12},
                               {13.5e12, 22e12, 25e12}}};

} // namespace

/// Times the rate of operands of f32 that are rounded to halves, that of
/// operands which are halves in memory: what tiles load from the cache limits
/// both, and is half as much. On an H100, 352 TFLOP/s of tiles of 128 x 128,
/// of which 73 % are reached as by the loops over f32; tensor cores by mma.sync
/// (610) and shared memory (470) do not limit.
static constexpr double kStoredHalves = 2;

/// Seconds to start a kernel of a replayed graph.
static constexpr double kLaunchSeconds = 2.5e-6;

static const GpuRates *findGpu(llvm::StringRef name) {
  for (const GpuRates &gpu : kGpus)
    if (gpu.name.equals_insensitive(name))
      return &gpu;
  return nullptr;
}

static MachineRates ratesAt(const GpuRates &gpu,
                            runtime::ProductPrecision precision) {
  size_t column = precision == runtime::ProductPrecision::F32    ? 0
                  : precision == runtime::ProductPrecision::TF32 ? 1
                                                                 : 2;
  MachineRates rates;
  rates.bandwidth = gpu.bandwidth;
  rates.matmul = gpu.matmul[column];
  rates.conv = gpu.conv[column];
  rates.depthwiseConv = gpu.vector / 3;
  rates.halves = kStoredHalves * gpu.matmul[2] / gpu.matmul[column];
  rates.convHalves = kStoredHalves * gpu.conv[2] / gpu.conv[column];
  rates.vector = gpu.vector;
  rates.overhead = kLaunchSeconds;
  rates.cacheBandwidth = gpu.cacheBandwidth;
  rates.cacheBytes = gpu.cacheBytes;
  rates.multiprocessors = gpu.multiprocessors;
  rates.reductionStarts = 2;         // chunks, then what they add up to
  rates.attentionGradient = 7.0 / 5; // two kernels make the scores
  return rates;
}

int32_t ckopt::cudaMultiprocessors(llvm::StringRef name) {
  return int32_t(findGpu(name)->multiprocessors);
}

llvm::Expected<MachineRates>
ckopt::cudaRates(llvm::StringRef given, runtime::ProductPrecision precision) {
  if (const GpuRates *gpu = findGpu(given))
    return ratesAt(*gpu, precision);
  auto profile = CostProfile::read(given);
  if (!profile)
    return withContext(profile.takeError(),
                       "--device-rates is neither a100, h100, h200 nor l4");
  return profile->ratesOver(ratesAt(*findGpu("h100"), precision));
}
