//===- GapLp.h - best prices of bytes for the gap relaxation ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_BOUNDS_GAPLP_H
#define CKOPT_LIB_PLANNER_BOUNDS_GAPLP_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ckopt::planner {

/// `bytes` may be saved at all of [first, last] for `cost`, any part of it for
/// that part of the cost.
struct SavingArc {
  int32_t first, last;
  double bytes, cost;
};

/// A relaxation of what must be saved: by position, `need` (see
/// GapProblem::need) with all arcs kept.
struct SavingProblem {
  std::vector<int64_t> need;
  std::vector<SavingArc> arcs;
};

struct GapProblem;

/// Replays of replays are followed to this depth.
constexpr int maxClaimDepth = 32;

/// What is known of a gap.
enum class GapSide : char { Open, Kept, Dropped };

/// The relaxation of an order (GapArcs.cpp), of plans that drop and keep what
/// `sides` says of each gap (empty: nothing). The cost of what is dropped is
/// not part of it; `gapOf` (optional) receives the gap that an arc stands for.
SavingProblem savingProblem(const GapProblem &gaps, int64_t budget,
                            const std::vector<GapSide> &sides = {},
                            std::vector<size_t> *gapOf = nullptr);

/// Prices of a byte by position, not negative, that maximize
///   sum of price * need - sum over arcs of
///       max(0, bytes * (sum of prices from first to last) - cost)
/// up to rounding. Empty if no position needs anything. Any prices give a
/// valid bound, so nothing depends on how well the solver did. `saved`
/// (optional) receives how many bytes each arc saves in a solution.
std::vector<double> bestPrices(const SavingProblem &problem,
                               std::vector<double> *saved = nullptr);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_BOUNDS_GAPLP_H
