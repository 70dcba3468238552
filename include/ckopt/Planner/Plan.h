//===- Plan.h - the solution of a planning problem --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A plan says in which order nodes run, which run again, and at which offset
// each copy of each value lies. It is the in-memory form of ckopt-plan/1.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PLANNER_PLAN_H
#define CKOPT_PLANNER_PLAN_H

#include "ckopt/Planner/Answer.h"

namespace ckopt::planner {

/// How it is proven that no packing is smaller.
enum class PackProof : uint8_t {
  None,   ///< not proven: a smaller one may exist
  Load,   ///< the arena is as large as the largest sum of live bytes
  Search, ///< an exhaustive search found none
};

/// Bounds on the arena for given steps, in bytes. All of them assume that
/// in-place results take over bytes wherever the steps allow it.
struct PackingFacts {
  int64_t load = 0;       ///< largest sum of live bytes in the arena, aligned
  int64_t lowerBound = 0; ///< no arena is smaller; 0 if not known
  /// Set if a search proved lowerBound, which then exceeds the load.
  bool searched = false;

  PackProof proof(int64_t arena) const {
    if (lowerBound == 0 || arena > lowerBound)
      return PackProof::None;
    return searched ? PackProof::Search : PackProof::Load;
  }
};

/// One value that is resident at the peak.
struct PeakEntry {
  ValueId value = -1; ///< -1 for the workspace of the node that runs there
  int64_t bytes = 0;
  std::string name;
  NodeId node = -1; ///< whose workspace it is
};

/// Steps and offsets, with their proofs.
struct Plan : Answer {
  /// Node ids in execution order; a node that appears again is recomputed. Each
  /// use reads the latest copy.
  std::vector<NodeId> steps;
  /// Sum of the costs of all steps, in the graph's unit.
  double cost = 0;
  /// Load: the largest sum of resident bytes over all steps, before alignment.
  int64_t peak = 0;
  /// Size of the arena in bytes; 0 if the plan is not packed.
  int64_t arena = 0;
  /// Offsets of each step: one for each of the node's outputs, then one for its
  /// workspace if it has any. Empty if the plan is not packed. A view has the
  /// offset of its base.
  std::vector<std::vector<int64_t>> offsets;
  /// Offsets of inputs and persistent values that lie in the arena.
  std::vector<std::pair<ValueId, int64_t>> initial;
  /// Bounds on other packings of these steps.
  PackingFacts packing;
};

} // namespace ckopt::planner

#endif // CKOPT_PLANNER_PLAN_H
