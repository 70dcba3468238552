//===- GapArcs.cpp - what dropping a gap saves and costs ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objective: what a gap of v costs at least, replays of replays included, as
// arcs of the saving problem. Method: making v again at some time s inside its
// gap (a, b) takes every input of its maker at that time. Let u be an input
// that v claims, whose last first-run access is at a or before. Then the copy
// of u that is read was made inside (a, s), which no gap of u pays for, or it
// is resident from a to s. With prices whose sum over (a, b) is L, the cost of
// the gap is therefore at least
//   phi_v(L) = min(L bytes_v, cost_v + sum of phi_u(L) over claimed inputs u)
// where phi_u(L) = L bytes_u if u cannot be made again. Proof: if v is not made
// again, it is resident throughout. Otherwise let s be the first time it is;
// with L1, L2 the sums of prices before and after s, the cost is at least
// cost_v + sum phi_u(L1) + L2 bytes_v (v or a later copy of it is resident from
// s to b, or phi counts less), which is concave in L1, so it is least at L1 = 0
// or L1 = L; both are at least phi_v(L). Each run and each byte is counted
// once: gaps of one storage are disjoint, a storage is claimed by one other
// only, and claims on u start after the last gap of u.
//
// phi is concave and piecewise linear, so it is a sum of terms min(L bytes_k,
// cost_k): arcs of the saving problem. Gives up: beyond a depth and number of
// claims, which only weakens the bound. Complexity: linear in gaps times the
// size of the claimed trees.
//
//===----------------------------------------------------------------------===//
#include "Bounds/GapLp.h"
#include "Bounds/GapProblem.h"

#include <algorithm>

using namespace ckopt::planner;

namespace {

/// The function min(L bytes, cost) of L; lists ascend by cost per byte.
struct Term {
  double bytes, cost;
};

class Replays {
public:
  explicit Replays(const GapProblem &gaps) : gaps(gaps) {}
  std::vector<Term> terms(ValueId storage, int32_t from, int depth);

private:
  const GapProblem &gaps;
};

std::vector<Term> Replays::terms(ValueId storage, int32_t from, int depth) {
  const Problem &problem = gaps.problem;
  double bytes = double(problem.bytes[storage]);
  NodeId maker = problem.producer[storage];
  if (maker < 0 || !problem.recompute[maker])
    return {}; // it never has to be saved
  double fixed = problem.cost[maker] * gaps.share[storage], keptSlope = 0;
  std::vector<Term> rest;
  for (ValueId input : gaps.claims[storage]) {
    if (gaps.claimFrom[input] > from || depth >= maxClaimDepth)
      continue;
    std::vector<Term> list = terms(input, from, depth + 1);
    double saved = 0;
    for (const Term &term : list)
      saved += term.bytes;
    keptSlope += std::max(0.0, double(problem.bytes[input]) - saved);
    rest.insert(rest.end(), list.begin(), list.end());
  }
  std::sort(rest.begin(), rest.end(), [](const Term &a, const Term &b) {
    return a.cost * b.bytes < b.cost * a.bytes;
  });
  // Drop the terms whose bend comes before L bytes meets the rest.
  double slope = keptSlope;
  for (const Term &term : rest)
    slope += term.bytes;
  size_t k = 0;
  double sum = fixed;
  while (true) {
    if (slope < bytes) {
      double meet = sum / (bytes - slope);
      if (k == rest.size() || meet * rest[k].bytes <= rest[k].cost) {
        std::vector<Term> result{{bytes - slope, sum}};
        result.insert(result.end(), rest.begin() + k, rest.end());
        return result;
      }
    }
    if (k == rest.size())
      return {}; // keeping it is never more expensive
    sum += rest[k].cost;
    slope -= rest[k++].bytes;
  }
}

} // namespace

SavingProblem ckopt::planner::savingProblem(const GapProblem &gaps,
                                            int64_t budget,
                                            const std::vector<GapSide> &sides,
                                            std::vector<size_t> *gapOf) {
  SavingProblem result;
  result.need = gaps.need(budget);
  Replays replays(gaps);
  auto add = [&](size_t g, int32_t first, ValueId storage, int depth) {
    const Gap &gap = gaps.gaps[g];
    for (const Term &term : replays.terms(storage, gap.from, depth)) {
      result.arcs.push_back({first, gap.last, term.bytes, term.cost});
      if (gapOf)
        gapOf->push_back(g);
    }
  };
  auto load = [&](int32_t first, int32_t last, int64_t bytes) {
    for (int32_t p = first; p <= last; ++p)
      result.need[p] += bytes;
  };
  for (size_t g = 0; g < gaps.gaps.size(); ++g) {
    const Gap &gap = gaps.gaps[g];
    GapSide side = sides.empty() ? GapSide::Open : sides[g];
    if (side == GapSide::Open)
      add(g, gap.first, gap.storage, 0);
    if (side != GapSide::Dropped)
      continue;
    // The gap's bytes are freed; the storages that it claims are kept or made
    // again.
    load(gap.first, gap.last, -gap.bytes);
    for (ValueId input : gaps.claims[gap.storage])
      if (gaps.claimFrom[input] <= gap.from) {
        load(gap.after, gap.last, gaps.problem.bytes[input]);
        add(g, gap.after, input, 1);
      }
  }
  return result;
}
