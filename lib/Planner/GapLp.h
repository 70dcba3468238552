//===- GapLp.h - best prices of bytes for the gap relaxation ----*- C++ -*-===//
#ifndef CKOPT_LIB_PLANNER_GAPLP_H
#define CKOPT_LIB_PLANNER_GAPLP_H

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

/// The relaxation of an order (GapArcs.cpp).
SavingProblem savingProblem(const GapProblem &gaps, int64_t budget);

/// Prices of a byte by position, not negative, that maximize
///   sum of price * need - sum over arcs of
///       max(0, bytes * (sum of prices from first to last) - cost)
/// up to rounding. Empty if no position needs anything. Any prices give a
/// valid bound, so nothing depends on how well the solver did.
std::vector<double> bestPrices(const SavingProblem &problem);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_GAPLP_H
