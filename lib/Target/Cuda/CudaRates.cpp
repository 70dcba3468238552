//===- CudaRates.cpp - speeds of GPUs -------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An H200's rates are measured (docs/benchmarks/gpu.md), from times of the
// kernels of ResNet-50, GPT-2 and ViT: the rate that fits most of a kind's
// time. An H100 has the same chip and 3.35 TB/s of memory in place of 4.8: its
// bandwidth is the H200's by that ratio, all else the same. A100 and L4 are
// estimates: for memory the share of the data sheet that the H200 reaches; for
// matmuls the bounds of DeviceTiles.cpp; for attention the ratio of vector
// operations; those of RTX 3090, 4090 and 5090 are an L4's by the ratio of data
// sheets (their tensor cores add in f32 at half rate). Libraries' matmuls and
// convolutions have rates of their own. annotate-kernels adds the costs of
// tiles, waves, loads from the cache and loads in flight. Files of `ckopt bench
// --calibrate` or `ckopt-run
// --kernel-times` replace them.
//
//===----------------------------------------------------------------------===//
#include "CudaRates.h"

#include "ckopt/Analysis/CostProfile.h"
#include "ckopt/Support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>

using namespace ckopt;

namespace {

/// Rates of one device. Those of matmuls are for tiles of 128 x 128 and full
/// waves of blocks, by the type to which f32 operands are rounded (f32, tf32),
/// and for 16-bit tensors in memory; `tiles` is the rate at which all blocks
/// load from the L2 cache. Attention likewise, without passes over scores.
struct GpuRates {
  llvm::StringLiteral name;
  double bandwidth, cacheBandwidth, cacheBytes, vector, multiprocessors;
  double matmul[2], halves, tiles;
  /// The same of cuBLASLt; 0: no table has it, and ours count.
  double library[2], libraryHalves;
  double attention[2], attentionHalves;
};

constexpr double kMiB = 1 << 20;

/// After a change of the matmul kernels, only set `matmul`, `halves` and
/// `tiles`. `bench --calibrate` prints measured rates.
constexpr GpuRates kHopper = {.name = "h200",
                              .bandwidth = 4.25e12,
                              .cacheBandwidth = 7e12,
                              .cacheBytes = 56 * kMiB,
                              .vector = 16.5e12,
                              .multiprocessors = 132,
                              .matmul = {46e12, 107e12},
                              .halves = 212e12,
                              .tiles = 5.5e12,
                              .library = {46e12, 325e12},
                              .libraryHalves = 620e12,
                              .attention = {13e12, 28e12},
                              .attentionHalves = 61e12};

constexpr GpuRates hopperWith(llvm::StringLiteral name, double bandwidth) {
  GpuRates rates = kHopper;
  rates.name = name;
  rates.bandwidth = bandwidth;
  return rates;
}

constexpr GpuRates kGpus[] = {{.name = "a100",
                               .bandwidth = 1.8e12,
                               .cacheBandwidth = 4e12,
                               .cacheBytes = 40 * kMiB,
                               .vector = 6e12,
                               .multiprocessors = 108,
                               .matmul = {14.5e12, 105e12},
                               .halves = 210e12,
                               .tiles = 4e12,
                               .library = {16e12, 125e12},
                               .libraryHalves = 250e12,
                               .attention = {4.7e12, 9.5e12},
                               .attentionHalves = 21e12},
                              hopperWith("h100", 2.97e12),
                              kHopper,
                              {.name = "l4",
                               .bandwidth = 0.265e12,
                               .cacheBandwidth = 1e12,
                               .cacheBytes = 48 * kMiB,
                               .vector = 7e12,
                               .multiprocessors = 58,
                               .matmul = {15.5e12, 31e12},
                               .halves = 62e12,
                               .tiles = 1e12,
                               .library = {15.5e12, 45e12},
                               .libraryHalves = 90e12,
                               .attention = {5.5e12, 11e12},
                               .attentionHalves = 24e12},
                              {.name = "rtx3090",
                               .bandwidth = 0.83e12,
                               .cacheBandwidth = 2.2e12,
                               .cacheBytes = 6 * kMiB,
                               .vector = 8.2e12,
                               .multiprocessors = 82,
                               .matmul = {18e12, 18e12},
                               .halves = 36e12,
                               .tiles = 1.4e12,
                               .library = {18e12, 27e12},
                               .libraryHalves = 53e12,
                               .attention = {6.4e12, 9e12},
                               .attentionHalves = 18e12},
                              {.name = "rtx4090",
                               .bandwidth = 0.89e12,
                               .cacheBandwidth = 3.7e12,
                               .cacheBytes = 72 * kMiB,
                               .vector = 19e12,
                               .multiprocessors = 128,
                               .matmul = {42e12, 42e12},
                               .halves = 84e12,
                               .tiles = 2.5e12,
                               .library = {42e12, 62e12},
                               .libraryHalves = 124e12,
                               .attention = {15e12, 20e12},
                               .attentionHalves = 48e12},
                              {.name = "rtx5090",
                               .bandwidth = 1.58e12,
                               .cacheBandwidth = 5e12,
                               .cacheBytes = 96 * kMiB,
                               .vector = 24e12,
                               .multiprocessors = 170,
                               .matmul = {53e12, 53e12},
                               .halves = 107e12,
                               .tiles = 3.3e12,
                               .library = {53e12, 79e12},
                               .libraryHalves = 157e12,
                               .attention = {19e12, 28e12},
                               .attentionHalves = 60e12}};

} // namespace

/// Measured on an H200: seconds to start a kernel of a replayed graph; seconds
/// until a load from memory returns; extra time of row kernels in addition to
/// their bytes; and the factor of the matmuls of attention's gradient, of which
/// two kernels compute scores twice.
static constexpr double kLaunchSeconds = 1.7e-6, kMemoryLatency = 0.9e-6,
                        kRowWait = 1.5e-6, kAttentionGradient = 1.35;

/// By published times on an H100 (causal, 64 columns, 4,096 rows): 363 TFLOP/s
/// of cuDNN's attention, and 200 of its deterministic gradient, where its
/// matmuls of bf16 have 620.
static constexpr double kLibraryAttention = 1.7, kLibraryGradient = 3.1;

static const GpuRates *findGpu(llvm::StringRef name) {
  for (const GpuRates &gpu : kGpus)
    if (gpu.name.equals_insensitive(name))
      return &gpu;
  return nullptr;
}

static std::string namesOfGpus() {
  return llvm::join(
      llvm::map_range(kGpus, [](const GpuRates &gpu) { return gpu.name; }),
      ", ");
}

static MachineRates ratesAt(const GpuRates &gpu,
                            runtime::ProductPrecision precision) {
  size_t column = precision == runtime::ProductPrecision::F32 ? 0 : 1;
  MachineRates rates;
  rates.bandwidth = gpu.bandwidth;
  rates.matmul = gpu.matmul[column];
  rates.conv = 0.9 * gpu.matmul[column];
  rates.depthwiseConv = gpu.vector / 3;
  rates.halves = rates.convHalves = gpu.halves / gpu.matmul[column];
  rates.libraryMatmul = gpu.library[column];
  rates.libraryHalves = gpu.libraryHalves;
  rates.libraryAttention = kLibraryAttention;
  rates.libraryAttentionGradient = kLibraryGradient;
  rates.vector = gpu.vector;
  rates.overhead = kLaunchSeconds;
  rates.cacheBandwidth = gpu.cacheBandwidth;
  rates.cacheBytes = gpu.cacheBytes;
  rates.multiprocessors = gpu.multiprocessors;
  rates.reductionStarts = 2; // chunks, then their combination
  rates.tileBandwidth = gpu.tiles;
  rates.memoryLatency = kMemoryLatency;
  rates.rowWait = kRowWait;
  // Relative to rates of matmuls, so that these can be set without attention.
  rates.attention = gpu.matmul[column] / gpu.attention[column];
  rates.attentionHalves = gpu.halves / gpu.attentionHalves;
  rates.attentionGradient = kAttentionGradient;
  return rates;
}

llvm::StringRef ckopt::cudaDeviceNamed(llvm::StringRef name,
                                       llvm::StringRef usual) {
  // "NVIDIA GeForce RTX 4090", "NVIDIA H100 80GB HBM3", "NVIDIA L4": a name of
  // ours is a word of it, or two.
  std::string words = " ";
  for (char c : name.lower())
    words += llvm::isAlnum(c) ? c : ' ';
  size_t at = words.find("rtx ");
  if (at != std::string::npos)
    words.erase(at + 3, 1);
  words += ' ';
  for (const GpuRates &gpu : kGpus)
    if (words.find((" " + gpu.name + " ").str()) != std::string::npos)
      return gpu.name;
  return usual;
}

int32_t ckopt::cudaMultiprocessors(llvm::StringRef name) {
  return int32_t(findGpu(name)->multiprocessors);
}

static llvm::Expected<CostProfile> readRates(llvm::StringRef path) {
  auto profile = CostProfile::read(path);
  if (!profile)
    return withContext(profile.takeError(), Setting("device-rates") +
                                                " is no device of its table (" +
                                                namesOfGpus() + ")");
  if (!profile->device().empty() && !findGpu(profile->device()))
    return usageError(Setting("device-rates", path) + ": its 'device' is '" +
                      profile->device() + "', which is none of " +
                      namesOfGpus());
  if (!profile->hasRates())
    return usageError(Setting("device-rates", path) +
                      ": there are no rates in it; `ckopt bench " +
                      foreignFlag("calibrate") +
                      "` writes them, and times of kernels are for " +
                      Setting("cost-model", ("profile=" + path).str()));
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

llvm::StringRef ckopt::cudaRatesFile(llvm::StringRef given) {
  return splitRates(given).second;
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
    return usageError(Setting("device-rates", file) +
                      ": its rates of products are "
                      "by " +
                      profile->precision() + ", those of this step by " + own +
                      ": calibrate with that precision, or take 'matmul' and "
                      "'conv' out of the file");
  return profile->ratesOver(ratesAt(*gpu, precision));
}
