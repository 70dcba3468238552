//===- Simulator.h - residency of a sequence of steps -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Computes which copies of which values are resident at each step, by the rules
// of ckopt-plan/1. Solvers and packing use it; the verifier does not.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PLANNER_SIMULATOR_H
#define CKOPT_PLANNER_SIMULATOR_H

#include "ckopt/Planner/Plan.h"

namespace ckopt::planner {

/// One copy of a value. It is resident over the steps [first, last]; a copy
/// that takes its input's bytes shares them during the step that makes it, and
/// is counted from the next step on.
struct Copy {
  ValueId value;
  int32_t made; ///< step that makes it; -1: before the first step
  /// Last step that needs it; the number of steps if it stays to the end.
  int32_t last;
  int32_t base = -1;  ///< of a view: the copy whose bytes it shares
  int32_t taken = -1; ///< the copy whose bytes it takes
};

struct Simulation {
  std::vector<Copy> copies;   ///< ordered by `made`, initial copies first
  std::vector<int64_t> usage; ///< resident bytes by step, then at the end
  int64_t peak = 0;
  int32_t peakStep = 0;
  double cost = 0;
};

/// Simulates valid steps (every read has a copy). With `aligned`, sizes are
/// rounded up to the graph's alignment. O(steps and their operands).
Simulation simulate(const Graph &graph, const std::vector<NodeId> &steps,
                    bool aligned = false);

/// Returns the values resident at a step by decreasing size (aligned), then the
/// workspace. Values without a name are called "value 3 of conv1" (by their
/// maker), "value 3" or "node 12".
std::vector<PeakEntry> aliveAt(const Graph &graph,
                               const std::vector<NodeId> &steps,
                               const Simulation &simulation, int32_t step);

} // namespace ckopt::planner

#endif // CKOPT_PLANNER_SIMULATOR_H
