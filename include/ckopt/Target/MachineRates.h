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
  double halves = 1;           ///< times the above, products of bf16 and f16
  double vector = 60e9;        ///< simple vector operations
  double overhead = 2e-6;      ///< seconds to start a kernel
};

} // namespace ckopt

#endif // CKOPT_TARGET_MACHINERATES_H
