//===- CaseTree.cpp - an optimum that a search proved, in cases -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a search (ExactOrder.cpp) says that no plan of the program order is
// cheaper; anyone should be able to check that without it. Method: a tree of
// its own over gaps, kept or dropped, whose leaves have best prices of the gap
// relaxation (GapArcs.cpp) under these decisions; since the optimum is known,
// each leaf has only to reach it. The gap to branch on is that whose two sides
// raise the bound most, of a few that the relaxation drops in part (strong
// branching). Guarantee: what is returned was derived again by the checker
// (Certificate.cpp). Gives up: beyond a number of cases. Complexity:
// exponential within it.
//
//===----------------------------------------------------------------------===//
#include "Bounds/Gaps.h"
#include "ExactOrder/ExactOrder.h"
#include "Model/Order.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

using namespace ckopt::planner;

namespace {

constexpr double unbounded = std::numeric_limits<double>::infinity();
/// The most gaps whose two cases are tried before branching on one.
constexpr size_t mostTries = 6;

class Builder {
public:
  Builder(const Problem &problem, int64_t budget, double bound,
          const CaseTreeOptions &options)
      : problem(problem), gaps(problem, programOrder(problem)), budget(budget),
        target(bound - problem.baseCost), options(options),
        sides(gaps.gaps.size(), GapSide::Open) {
    int64_t divisor = 0;
    for (double cost : problem.cost) {
      if (cost != std::floor(cost) || cost > 1e15)
        return;
      divisor = std::gcd(divisor, int64_t(cost));
    }
    unit = double(divisor);
  }
  Certificate run();

private:
  struct Leaf {
    double extra = 0; ///< lower bound of the extra cost of plans of the case
    std::vector<double> prices;
    std::vector<std::pair<double, size_t>> partly; ///< (how evenly, gap)
  };
  Leaf relax();
  bool shows(const Leaf &leaf) const;
  double tried(size_t gap, GapSide side);
  size_t choose(Leaf &leaf);
  bool grow(Leaf leaf, int depth);

  const Problem &problem;
  const GapProblem gaps;
  int64_t budget, work = 0;
  double target;
  const CaseTreeOptions &options;
  std::vector<GapSide> sides;
  double unit = 0; ///< all costs are multiples of it; 0 if unknown
  int cases = 0;
  Certificate result;
};

Builder::Leaf Builder::relax() {
  std::vector<size_t> gapOf;
  SavingProblem saving = savingProblem(gaps, budget, sides, &gapOf);
  // Bytes that no gap can save get a very high price, so that prices exist and
  // prove that nothing fits.
  int64_t most = 1;
  for (int64_t need : saving.need)
    most = std::max(most, need);
  size_t real = saving.arcs.size();
  saving.arcs.push_back({0, gaps.numPositions - 1, double(most),
                         4 * target + 4 * problem.baseCost + 1});
  std::vector<double> saved;
  Leaf leaf;
  leaf.prices = bestPrices(saving, &saved);
  leaf.prices.resize(gaps.numPositions, 0);
  work += int64_t(saving.arcs.size()) * 40 + gaps.numPositions * 8;
  for (size_t g = 0; g < sides.size(); ++g)
    if (sides[g] == GapSide::Dropped)
      leaf.extra += gaps.gaps[g].cost;
  std::vector<double> sums(1, 0);
  for (int32_t p = 0; p < gaps.numPositions; ++p) {
    sums.push_back(sums.back() + leaf.prices[p]);
    leaf.extra += leaf.prices[p] * double(saving.need[p]);
  }
  std::vector<double> part(sides.size(), 0), all(sides.size(), 0);
  for (size_t a = 0; a < real; ++a) {
    const SavingArc &arc = saving.arcs[a];
    double gain = arc.bytes * (sums[arc.last + 1] - sums[arc.first]);
    leaf.extra -= std::max(0.0, gain - arc.cost);
    part[gapOf[a]] += saved[a];
    all[gapOf[a]] += arc.bytes;
  }
  for (size_t g = 0; g < sides.size(); ++g) {
    double share = all[g] > 0 ? part[g] / all[g] : 0;
    double even = std::min(share, 1 - share);
    if (sides[g] == GapSide::Open && even > 1e-7)
      leaf.partly.push_back({-even * gaps.gaps[g].cost, g});
  }
  return leaf;
}

/// Extra costs are multiples of the unit.
bool Builder::shows(const Leaf &leaf) const {
  double slack = 1e-9 * (std::abs(leaf.extra) + std::abs(target));
  double extra = leaf.extra;
  if (unit > 0)
    extra = std::ceil(extra / unit - 1e-6) * unit;
  return extra >= target - slack;
}

double Builder::tried(size_t gap, GapSide side) {
  sides[gap] = side;
  double extra = std::min(relax().extra, target);
  sides[gap] = GapSide::Open;
  return extra;
}

size_t Builder::choose(Leaf &leaf) {
  std::sort(leaf.partly.begin(), leaf.partly.end());
  size_t best = leaf.partly[0].second;
  double bestScore = -unbounded;
  for (size_t k = 0; k < std::min(mostTries, leaf.partly.size()); ++k) {
    size_t gap = leaf.partly[k].second;
    double kept = tried(gap, GapSide::Kept) - leaf.extra;
    double dropped = tried(gap, GapSide::Dropped) - leaf.extra;
    double floor = 1e-4 * target;
    double score = std::max(kept, floor) * std::max(dropped, floor);
    if (score > bestScore) {
      bestScore = score;
      best = gap;
    }
  }
  return best;
}

bool Builder::grow(Leaf leaf, int depth) {
  if (shows(leaf)) {
    result.tree.push_back({-1, -1, integerPrices(leaf.prices, result)});
    return ++cases <= options.mostCases;
  }
  if (leaf.partly.empty() || cases + depth >= options.mostCases ||
      work > options.work)
    return false;
  size_t gap = choose(leaf);
  result.tree.push_back(
      {gaps.gaps[gap].storage, gaps.order[gaps.gaps[gap].from], {}});
  for (GapSide side : {GapSide::Kept, GapSide::Dropped}) {
    sides[gap] = side;
    if (!grow(relax(), depth + 1))
      return false;
  }
  sides[gap] = GapSide::Open;
  return true;
}

Certificate Builder::run() {
  result.budget = budget;
  result.claims = certificateClaims(gaps);
  // Cases without any plan have high prices.
  result.scaleBits = certificateScale(8 * (target + problem.baseCost));
  if (!grow(relax(), 0))
    return {};
  std::string error;
  auto shown = checkCertificate(problem.graph, result, error);
  double bound = target + problem.baseCost;
  return shown && *shown >= bound * (1 - 1e-9) ? result : Certificate();
}

} // namespace

Certificate ckopt::planner::caseTree(const Problem &problem, int64_t budget,
                                     double bound,
                                     const CaseTreeOptions &options) {
  return Builder(problem, budget, bound, options).run();
}
