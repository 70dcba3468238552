//===- RateFit.cpp - rates of a machine from timed kernels ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: plans weigh kernels by the rates of a machine, and machines differ.
// Method: each kernel belongs to the rate that takes most of its predicted
// time; a rate is the work of its kernels over their time, less the time to
// start them. New rates may move kernels to other ones, so this repeats until
// none moves (at most ten times). Large kernels count most, as they do in
// plans. Guarantee: where times follow the model, and each kernel is limited
// by one rate, the rates of the model come out. Complexity: O(kernels).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Analysis/RateFit.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace ckopt;

/// Returns what limits a kernel.
static double MachineRates::*limitOf(const KernelWork &work,
                                     const MachineRates &rates) {
  double MachineRates::*kind = &MachineRates::vector;
  double memory = work.bytes / rates.bandwidth, arithmetic = 0, most = 0;
  for (const NamedRate &named : kNamedRates) {
    if (!named.work || named.work == &KernelWork::bytes)
      continue;
    double seconds = work.*named.work / (rates.*named.rate);
    arithmetic += seconds;
    if (seconds > most) {
      most = seconds;
      kind = named.rate;
    }
  }
  if (std::max(memory, arithmetic) < rates.overhead)
    return &MachineRates::overhead;
  return memory >= arithmetic ? &MachineRates::bandwidth : kind;
}

/// The median time of a call of small kernels.
static double medianCall(std::vector<double> seconds) {
  std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2,
                   seconds.end());
  return seconds[seconds.size() / 2];
}

static std::vector<FittedRate>
fitOnce(llvm::ArrayRef<TimedKernel> kernels,
        llvm::ArrayRef<double MachineRates::*> limits, double overhead) {
  std::vector<FittedRate> fitted;
  for (const NamedRate &named : kNamedRates) {
    FittedRate &entry = fitted.emplace_back();
    entry.rate = named;
    double work = 0, running = 0;
    std::vector<double> calls;
    for (auto [kernel, limit] : llvm::zip(kernels, limits)) {
      if (limit != named.rate)
        continue;
      ++entry.kernels;
      entry.seconds += kernel.seconds;
      calls.push_back(kernel.seconds / double(kernel.calls));
      if (named.work)
        work += kernel.work.*named.work * double(kernel.calls);
      running += kernel.seconds - overhead * double(kernel.calls);
    }
    if (named.rate == &MachineRates::overhead && !calls.empty())
      entry.value = medianCall(std::move(calls));
    else if (work > 0 && running > 0)
      entry.value = work / running;
  }
  return fitted;
}

MachineRates ckopt::withFitted(MachineRates rates,
                               llvm::ArrayRef<FittedRate> fitted) {
  for (const FittedRate &entry : fitted)
    if (entry.value > 0)
      rates.*entry.rate.rate = entry.value;
  return rates;
}

std::vector<FittedRate> ckopt::fitRates(llvm::ArrayRef<TimedKernel> kernels,
                                        const MachineRates &start) {
  MachineRates rates = start;
  std::vector<FittedRate> fitted;
  std::vector<double MachineRates::*> limits, before;
  for (int round = 0; round < 10; ++round) {
    limits.clear();
    for (const TimedKernel &kernel : kernels)
      limits.push_back(limitOf(kernel.work, rates));
    if (limits == before)
      break;
    before = limits;
    fitted = fitOnce(kernels, limits, rates.overhead);
    rates = withFitted(start, fitted);
  }
  return fitted;
}
