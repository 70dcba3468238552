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

/// A timed kernel: the work of one call, and the time of the calls.
struct TimedKernel {
  KernelWork work;
  int64_t calls = 1;
  double seconds = 0; ///< of all calls together
};

/// One rate, and the kernels that it was fitted to.
struct FittedRate {
  NamedRate rate;
  double value = 0;    ///< 0: no kernel shows it
  int64_t kernels = 0; ///< number of kernels that it limits
  double seconds = 0;  ///< of their calls
};

/// Fits the rates to the kernels' times; see RateFit.cpp. `start` gives the
/// rate that first counts as each kernel's limit. The result is in the order of
/// kNamedRates.
std::vector<FittedRate> fitRates(llvm::ArrayRef<TimedKernel> kernels,
                                 const MachineRates &start);

/// Replaces the fitted ones of `rates`.
MachineRates withFitted(MachineRates rates, llvm::ArrayRef<FittedRate> fitted);

} // namespace ckopt

#endif // CKOPT_ANALYSIS_RATEFIT_H
