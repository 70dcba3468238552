//===- Packing.h - offsets in one arena -------------------------*- C++ -*-===//
#ifndef CKOPT_PLANNER_PACKING_H
#define CKOPT_PLANNER_PACKING_H

#include "ckopt/Planner/Plan.h"

namespace ckopt::planner {

/// A box to place: `bytes` over the steps [first, last]. Where `inPlaceOf` is
/// not negative the box either starts at that box's offset, and then shares its
/// last step (which is this one's first), or overlaps it nowhere.
struct Box {
  int32_t first, last;
  int64_t bytes;
  int32_t inPlaceOf = -1;
};

/// Offsets of the boxes, multiples of `alignment`; returns the arena's size.
/// Best of several orders of best fit, then local search while above the load,
/// for about `effort` seconds at most (counted in steps, not by the clock).
int64_t packBoxes(const std::vector<Box> &boxes, int64_t alignment,
                  std::vector<int64_t> &offsets, double effort = 1);

/// Fills offsets, initial and arena of a plan from its steps. Inputs and
/// persistent values lie in the arena if `holdsAll`.
void packPlan(const Graph &graph, Plan &plan, bool holdsAll, double effort = 1);

} // namespace ckopt::planner

#endif // CKOPT_PLANNER_PACKING_H
