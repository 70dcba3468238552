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

/// `bytes` may be saved at all positions of [first, last] for `cost`, or any
/// part of them for that part of the cost.
struct SavingArc {
  int32_t first, last;
  double bytes, cost;
};

/// A relaxation of the bytes to be saved: by position, `need` (see
/// GapProblem::need) with all arcs kept.
struct SavingProblem {
  std::vector<int64_t> need;
  std::vector<SavingArc> arcs;
};

struct GapProblem;

/// The depth to which replays of replays are followed.
constexpr int maxClaimDepth = 32;

/// What is decided about a gap.
enum class GapSide : char { Open, Kept, Dropped };

/// Builds the relaxation of an order (GapArcs.cpp) over plans that keep and
/// drop gaps as `sides` says (empty: undecided). The cost of dropped gaps is
/// not part of it; `gapOf` (optional) receives the gap of each arc.
SavingProblem savingProblem(const GapProblem &gaps, int64_t budget,
                            const std::vector<GapSide> &sides = {},
                            std::vector<size_t> *gapOf = nullptr);

/// Prices of a byte by position, not negative, that maximize
///   sum of price * need - sum over arcs of
///       max(0, bytes * (sum of prices from first to last) - cost)
/// up to rounding. Empty if no position needs anything. Any prices give a
/// valid bound, so nothing depends on how well the solver did. `saved`
/// (optional) receives the bytes that each arc saves in a solution.
std::vector<double> bestPrices(const SavingProblem &problem,
                               std::vector<double> *saved = nullptr);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_BOUNDS_GAPLP_H
