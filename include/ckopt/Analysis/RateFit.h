//===- RateFit.h - rates of a machine from timed kernels --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_ANALYSIS_RATEFIT_H
#define CKOPT_ANALYSIS_RATEFIT_H

#include "ckopt/Analysis/CostModel.h"
#include "ckopt/Target/MachineRates.h"
#include "llvm/ADT/ArrayRef.h"

namespace ckopt {

/// One kernel: what one call of it does, and how long the calls took.
struct TimedKernel {
  KernelWork work;
  int64_t calls = 1;
  double seconds = 0; ///< of all calls together
};

/// One rate, and what it was taken from.
struct FittedRate {
  NamedRate rate;
  double value = 0;    ///< 0: no kernel shows it
  int64_t kernels = 0; ///< that it limits
  double seconds = 0;  ///< of their calls
};

/// Fits the rates to the kernels' times; see RateFit.cpp. `start` says which
/// rate limits which kernel to begin with. In the order of kNamedRates.
std::vector<FittedRate> fitRates(llvm::ArrayRef<TimedKernel> kernels,
                                 const MachineRates &start);

/// Replaces those of `rates` that were fitted.
MachineRates withFitted(MachineRates rates, llvm::ArrayRef<FittedRate> fitted);

} // namespace ckopt

#endif // CKOPT_ANALYSIS_RATEFIT_H
