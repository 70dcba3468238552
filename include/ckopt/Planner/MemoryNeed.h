//===- MemoryNeed.h - why a budget is too small -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PLANNER_MEMORYNEED_H
#define CKOPT_PLANNER_MEMORYNEED_H

#include "ckopt/Planner/Plan.h"

namespace ckopt::planner {

/// The bytes that are resident while one node first runs, under every plan.
struct MemoryNeed {
  NodeId node = -1; ///< -1 if the graph has no nodes
  /// Sum of these bytes (aligned): no plan has a smaller load. memoryBound()
  /// may prove more.
  int64_t bytes = 0;
  /// The part that is resident from the first step to the last.
  int64_t persistentBytes = 0;
  /// The rest by name, largest first: values that the node reads and makes, its
  /// scratch, and values that wait for a later reader and cannot be made again.
  std::vector<PeakEntry> values;
};

/// Returns the need of the node that needs most. Linear time.
MemoryNeed memoryNeed(const Graph &graph);

} // namespace ckopt::planner

#endif // CKOPT_PLANNER_MEMORYNEED_H
