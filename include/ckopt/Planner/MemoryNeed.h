//===- MemoryNeed.h - what makes a budget too small -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PLANNER_MEMORYNEED_H
#define CKOPT_PLANNER_MEMORYNEED_H

#include "ckopt/Planner/Plan.h"

namespace ckopt::planner {

/// What is resident while one node first runs, whatever the plan is.
struct MemoryNeed {
  NodeId node = -1; ///< -1: the graph has no nodes
  /// Sum of all of it (aligned bytes): no plan has a smaller load.
  /// memoryBound() may prove more.
  int64_t bytes = 0;
  /// Of it what is there from the first step to the last.
  int64_t persistentBytes = 0;
  /// The rest by name, largest first: what the node reads, makes and needs for
  /// scratch, and what waits for a later reader and cannot be made again.
  std::vector<PeakEntry> values;
};

/// The node that needs most. Linear time.
MemoryNeed memoryNeed(const Graph &graph);

} // namespace ckopt::planner

#endif // CKOPT_PLANNER_MEMORYNEED_H
