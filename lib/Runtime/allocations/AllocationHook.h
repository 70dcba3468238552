//===- AllocationHook.h - who allocates during a step -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The interface between the runtime and libckopt_allocations, which is opened
// when a session is to count allocations and stays loaded from then on. One
// table of functions is its only symbol. Not for use from several threads.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_ALLOCATIONS_ALLOCATIONHOOK_H
#define CKOPT_LIB_RUNTIME_ALLOCATIONS_ALLOCATIONHOOK_H

#include "ckopt/Runtime/ckrt.h"

namespace ckopt::runtime {

struct AllocationHook {
  /// From here to stop(), allocation calls of all loaded objects pass through
  /// counters; starts nest. Null, or why they cannot (nothing is changed then).
  const char *(*start)();
  void (*stop)();
  /// Counting is on between these two: during a step.
  void (*begin)();
  void (*end)();
  /// Sums over all steps so far.
  void (*read)(ckrt_allocation_stats &stats);
};

inline constexpr const char *kAllocationLibrary = "libckopt_allocations.so.1";
inline constexpr const char *kAllocationSymbol = "ckopt_allocation_hook";

} // namespace ckopt::runtime

extern "C" CKRT_EXPORT const ckopt::runtime::AllocationHook
    ckopt_allocation_hook;

#endif // CKOPT_LIB_RUNTIME_ALLOCATIONS_ALLOCATIONHOOK_H
