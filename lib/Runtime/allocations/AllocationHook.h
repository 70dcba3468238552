//===- AllocationHook.h - who allocates during a step -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The interface between the runtime and libckopt_allocations, which is opened
// when a session is to count allocations and stays loaded from then on. One
// table of functions is its only symbol. The interface must not be used from
// several threads.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_ALLOCATIONS_ALLOCATIONHOOK_H
#define CKOPT_LIB_RUNTIME_ALLOCATIONS_ALLOCATIONHOOK_H

#include "ckopt/Runtime/ckrt.h"

namespace ckopt::runtime {

struct AllocationHook {
  /// Redirects the allocation calls of all loaded objects through counters
  /// until stop(); starts nest. Returns null, or why it is impossible (nothing
  /// is changed then).
  const char *(*start)();
  void (*stop)();
  /// Counting is on between begin() and end(), that is, during a step.
  void (*begin)();
  void (*end)();
  /// Reads the sums over all steps so far.
  void (*read)(ckrt_allocation_stats &stats);
  /// Says from how many bytes on an allocation is large (64 KiB).
  void (*setLarge)(int64_t bytes);
};

inline constexpr const char *kAllocationLibrary = "libckopt_allocations.so.1";
inline constexpr const char *kAllocationSymbol = "ckopt_allocation_hook";

} // namespace ckopt::runtime

extern "C" CKRT_EXPORT const ckopt::runtime::AllocationHook
    ckopt_allocation_hook;

#endif // CKOPT_LIB_RUNTIME_ALLOCATIONS_ALLOCATIONHOOK_H
