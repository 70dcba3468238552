//===- AllocationHook.h - who allocates during a step -----------*- C++ -*-===//
#ifndef CKOPT_LIB_RUNTIME_ALLOCATIONHOOK_H
#define CKOPT_LIB_RUNTIME_ALLOCATIONHOOK_H

#include "ckopt/Runtime/ckrt.h"

namespace ckopt::runtime {

/// While at least one lives, allocation calls of all loaded objects pass
/// through counters. Not for use from several threads at once.
class AllocationHook {
public:
  AllocationHook();
  ~AllocationHook();
  AllocationHook(const AllocationHook &) = delete;
  AllocationHook &operator=(const AllocationHook &) = delete;

  /// Counting is on between begin() and end(): during a step.
  void begin();
  void end();
  /// Sums over all steps so far.
  void read(ckrt_allocation_stats &stats) const;
};

} // namespace ckopt::runtime

#endif // CKOPT_LIB_RUNTIME_ALLOCATIONHOOK_H
