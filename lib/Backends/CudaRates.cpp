//===- CudaRates.cpp - how fast GPUs run our kernels ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Estimates, since nothing has run on hardware yet: of memory 78 % of what data
// sheets say; of products what full waves of blocks with tiles of 128 x 128
// reach, by the tightest of three bounds that DeviceTiles.cpp computes for a
// tile (tensor cores by mma.sync, shared memory, the L2 cache), of which 82 %
// are counted. For operands of f32 in memory the cache is tightest, so TF32 and
// rounding to halves are equally fast. Convolutions have a tenth more
// instructions (scripts/kernel-counts), and their operands come from more rows.
// annotate-kernels adds what tiles, waves and loads from the cache cost. Files
// of `ckopt bench --calibrate` or `ckopt-run --kernel-times` replace them.
//
//===----------------------------------------------------------------------===//
#include "CudaRates.h"

#include "ckopt/Analysis/CostProfile.h"
#include "ckopt/Support/Error.h"

#include <algorithm>

using namespace ckopt;

namespace {

/// Rates of one device; of products in tiles of 128 x 128 and full waves, by
/// what operands of f32 are rounded to (f32, tf32, bf16 or f16), of halves in
/// memory, and of attention by TF32, which loads through registers.
struct GpuRates {
  llvm::StringLiteral name;
  double bandwidth, cacheBandwidth, cacheBytes, vector, multiprocessors;
  double matmul[3], halves, attention;
};

constexpr double kMiB = 1 << 20;
constexpr GpuRates kGpus[] = {{"a100",
                               1.6e12,
                               4e12,
                               20 * kMiB,
                               6e12,
                               108,
                               {14.5e12, 105e12, 105e12},
                               210e12,
                               59e12},
                              {"h100",
                               2.6e12,
                               5.5e12,
                               25 * kMiB,
                               15e12,
                               132,
                               {46e12, 143e12, 143e12},
                               285e12,
                               112e12},
                              {"h200",
                               3.7e12,
                               5.5e12,
                               25 * kMiB,
                               15e12,
                               132,
                               {46e12, 143e12, 143e12},
                               285e12,
                               112e12},
                              {"l4",
                               0.23e12,
                               1e12,
                               24 * kMiB,
                               7e12,
                               58,
                               {15.5e12, 31e12, 31e12},
                               62e12,
                               25e12}};

} // namespace

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
  rates.conv = 0.9 * gpu.matmul[column];
  rates.depthwiseConv = gpu.vector / 3;
  rates.halves = rates.convHalves = gpu.halves / gpu.matmul[column];
  rates.vector = gpu.vector;
  rates.overhead = kLaunchSeconds;
  rates.cacheBandwidth = gpu.cacheBandwidth;
  rates.cacheBytes = gpu.cacheBytes;
  rates.multiprocessors = gpu.multiprocessors;
  rates.reductionStarts = 2; // chunks, then what they add up to
  // Two kernels make the scores; products in slower blocks.
  rates.attentionGradient =
      7.0 / 5 * std::max(1.0, gpu.matmul[column] / gpu.attention);
  return rates;
}

int32_t ckopt::cudaMultiprocessors(llvm::StringRef name) {
  return int32_t(findGpu(name)->multiprocessors);
}

static llvm::Expected<CostProfile> readRates(llvm::StringRef path) {
  auto profile = CostProfile::read(path);
  if (!profile)
    return withContext(profile.takeError(),
                       "--device-rates is neither a100, h100, h200 nor l4");
  if (!profile->device().empty() && !findGpu(profile->device()))
    return usageError("--device-rates=" + path + ": its 'device' is '" +
                      profile->device() +
                      "', which is neither a100, h100, h200 nor l4");
  if (!profile->hasRates())
    return usageError("--device-rates=" + path +
                      ": there are no rates in it; `ckopt bench --calibrate` "
                      "writes them, and times of kernels are for "
                      "--cost-model=profile=" +
                      path);
  return profile;
}

/// Splits NAME, FILE or NAME,FILE; files may have commas in their names.
static std::pair<const GpuRates *, llvm::StringRef>
splitRates(llvm::StringRef given) {
  if (const GpuRates *gpu = findGpu(given))
    return {gpu, ""};
  auto [name, file] = given.split(',');
  const GpuRates *gpu = findGpu(name);
  return {gpu, gpu ? file : given};
}

llvm::Expected<std::string> ckopt::settleCudaRates(llvm::StringRef given,
                                                   llvm::StringRef usual) {
  if (given.empty())
    return usual.str();
  auto [gpu, file] = splitRates(given);
  if (gpu && file.empty())
    return gpu->name.str();
  auto profile = readRates(file);
  if (!profile)
    return profile.takeError();
  if (!gpu)
    gpu = findGpu(profile->device());
  return ((gpu ? llvm::StringRef(gpu->name) : usual) + "," + file).str();
}

llvm::Expected<MachineRates>
ckopt::cudaRates(llvm::StringRef given, runtime::ProductPrecision precision) {
  auto [gpu, file] = splitRates(given);
  if (gpu && file.empty())
    return ratesAt(*gpu, precision);
  auto profile = readRates(file);
  if (!profile)
    return profile.takeError();
  if (!gpu && !(gpu = findGpu(profile->device())))
    gpu = findGpu("h100");
  llvm::StringRef own = runtime::productPrecisionName(precision);
  if (profile->hasProductRates() && !profile->precision().empty() &&
      profile->precision() != own)
    return usageError("--device-rates=" + file +
                      ": its rates of products are "
                      "by " +
                      profile->precision() + ", those of this step by " + own +
                      ": calibrate with that precision, or take 'matmul' and "
                      "'conv' out of the file");
  return profile->ratesOver(ratesAt(*gpu, precision));
}
