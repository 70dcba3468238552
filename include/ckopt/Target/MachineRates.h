//===- MachineRates.h - how fast a machine computes -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TARGET_MACHINERATES_H
#define CKOPT_TARGET_MACHINERATES_H

namespace ckopt {

/// Rates of a machine, by which plans weigh kernels against each other. The
/// defaults were measured on two AVX-512 cores (see the table in
/// lib/Analysis/CostModel.cpp).
struct MachineRates {
  double bandwidth = 14e9;     ///< bytes a second, from and to memory
  double matmul = 280e9;       ///< flops a second, large f32 products
  double conv = 230e9;         ///< channels-last f32, dense
  double depthwiseConv = 40e9; ///< groups = channels
  double halves = 1;           ///< times matmul, for bf16 and f16 matmuls
  double convHalves = 1;       ///< times conv
  /// Flops a second of matmuls and convolutions that a library runs in place of
  /// our own kernels, by the precision of `matmul`, and of bf16 and f16; 0: as
  /// fast as ours.
  double libraryMatmul = 0, libraryHalves = 0;
  /// By how much the products of attention and of its gradient in a library are
  /// slower than `libraryHalves`.
  double libraryAttention = 1, libraryAttentionGradient = 1;
  double vector = 60e9; ///< simple vector operations
  /// 1: the device approximates functions, which then take fewer operations
  /// (KernelOpInterface::getApproximatedShare).
  double approximates = 0;
  double overhead = 2e-6; ///< seconds to start a kernel
  /// Bytes a second of a kernel that touches no more than `cacheBytes`, which
  /// earlier kernels left in a cache; 0 bytes: no such cache.
  double cacheBandwidth = 0, cacheBytes = 0;
  /// Bytes a second that blocks of a matmul load from the cache for their
  /// tiles.
  double tileBandwidth = 0;
  /// Seconds until a load from memory returns; a load from the cache takes half
  /// of that. A kernel with few loads in flight (attrs::kBytesInFlight) waits
  /// for them; 0: not counted.
  double memoryLatency = 0;
  /// Seconds that a row kernel waits for the sums of its rows, in addition to
  /// moving bytes.
  double rowWait = 0;
  double reductionStarts = 1; ///< number of kernels for a reduction
  /// Time of attention's matmuls over that of other matmuls; the same for bf16
  /// and f16 in memory; and the factor for its gradient.
  double attention = 1, attentionHalves = 1, attentionGradient = 1;
  /// Multiprocessors of a device, among which the blocks of a kernel are
  /// distributed; 0: unknown.
  double multiprocessors = 0;
  double linkBandwidth = 4e9; ///< bytes a second, between two ranks
  double linkLatency = 2e-6;  ///< seconds of a message between two ranks
};

/// The work of one call of a kernel, by rate: bytes of memory, and flops of
/// each kind, increased if the form of a matmul keeps it from its full rate.
struct KernelWork {
  double bytes = 0;
  double matmul = 0, conv = 0, depthwiseConv = 0, vector = 0;
};

/// A rate that profiles name, and the work that it applies to (null: none).
struct NamedRate {
  const char *name = "";
  double MachineRates::*rate = nullptr;
  double KernelWork::*work = nullptr;
};
inline constexpr NamedRate kNamedRates[] = {
    {"bandwidth", &MachineRates::bandwidth, &KernelWork::bytes},
    {"matmul", &MachineRates::matmul, &KernelWork::matmul},
    {"conv", &MachineRates::conv, &KernelWork::conv},
    {"depthwise_conv", &MachineRates::depthwiseConv,
     &KernelWork::depthwiseConv},
    {"vector", &MachineRates::vector, &KernelWork::vector},
    {"overhead", &MachineRates::overhead, nullptr}};

} // namespace ckopt

#endif // CKOPT_TARGET_MACHINERATES_H
