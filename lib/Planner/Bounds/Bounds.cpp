//===- Bounds.cpp - proven lower bounds on cost ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: how much must every plan within a budget cost? Method: the gap
// relaxation (GapProblem.h): between two neighbouring accesses a storage is
// kept or made again; dropping it saves its bytes over the gap. With what
// replays need in turn (GapArcs.cpp) this is a linear program over one interval
// of rows a term, a min-cost flow along a path (GapLp.cpp). Its prices of bytes
// are rounded to integers, and the bound is what the checker derives from them
// (Certificate.cpp), so no rounding and no defect here can make it a lie. In
// any order the rows are a longest path of the dependence graph, on which
// training graphs have nearly all their gaps; it is weak for graphs that are
// much wider than long. Gives up: never, any prices give a bound. Complexity:
// building is linear, the simplex method takes the time (10,000 nodes: tens of
// milliseconds).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/Bounds.h"
#include "Bounds/GapLp.h"
#include "Bounds/GapPrices.h"
#include "Bounds/GapProblem.h"

#include <algorithm>
#include <cmath>

using namespace ckopt::planner;

namespace {

Certificate makeCertificate(const GapProblem &gaps, int64_t budget,
                            const std::vector<double> &prices) {
  Certificate result;
  result.budget = budget;
  double total = 0;
  for (double price : prices)
    total += price;
  double largest = std::max(total, gaps.problem.baseCost);
  if (!(largest > 0) || !std::isfinite(largest))
    return result;
  result.scaleBits = certificateScale(largest);
  result.prices = integerPrices(prices, result);
  result.claims = certificateClaims(gaps);
  return result;
}

/// Returns the bound that the checker derives; a certificate that it rejects is
/// cleared.
double derive(const Problem &problem, Certificate &certificate) {
  std::string error;
  if (auto bound = checkCertificate(problem.graph, certificate, error))
    return *bound;
  certificate = {};
  return problem.baseCost;
}

} // namespace

int32_t ckopt::planner::certificateScale(double largest) {
  return std::clamp(60 - int(std::ceil(std::log2(largest))), -900, 900);
}

/// Rounds sums of prices rather than prices, so that the error of a gap's sum
/// is one unit, however many rows it spans.
Certificate::Prices
ckopt::planner::integerPrices(const std::vector<double> &prices,
                              const Certificate &certificate) {
  Certificate::Prices result;
  double sum = 0;
  int64_t before = 0;
  for (size_t row = 0; row < prices.size(); ++row) {
    sum += prices[row];
    double scaled = std::ldexp(sum, certificate.scaleBits);
    int64_t now = int64_t(std::min(scaled, 4e18)); // Below 2^62.
    if (now > before)
      result.push_back({int32_t(row), now - before});
    before = std::max(before, now);
  }
  return result;
}

std::vector<std::pair<ValueId, ValueId>>
ckopt::planner::certificateClaims(const GapProblem &gaps) {
  std::vector<std::pair<ValueId, ValueId>> result;
  for (ValueId v = 0; v < gaps.problem.numValues; ++v)
    if (gaps.claimedBy[v] >= 0 && gaps.claimFrom[v] < gaps.numPositions)
      result.push_back({v, gaps.claimedBy[v]});
  return result;
}

double ckopt::planner::costBound(const Graph &graph, int64_t budget,
                                 Certificate *certificate) {
  Problem problem(graph, Rules::Format);
  GapProblem gaps = GapProblem::anyOrder(problem);
  std::vector<double> prices;
  if (budget > 0)
    prices = bestPrices(savingProblem(gaps, budget));
  Certificate proof = makeCertificate(gaps, budget, prices);
  proof.anyOrder = true;
  proof.rows = gaps.order;
  double bound = derive(problem, proof);
  if (certificate)
    *certificate = std::move(proof);
  return bound;
}

/// Derives the bound of an order from prices, with its certificate.
static double boundAt(const GapProblem &gaps, const std::vector<NodeId> &order,
                      int64_t budget, const std::vector<double> &prices,
                      Certificate *certificate) {
  Certificate proof = makeCertificate(gaps, budget, prices);
  if (!std::is_sorted(order.begin(), order.end()))
    proof.rows = order;
  double bound = derive(gaps.problem, proof);
  if (certificate)
    *certificate = std::move(proof);
  return bound;
}

double ckopt::planner::orderBound(const Graph &graph,
                                  const std::vector<NodeId> &order,
                                  int64_t budget, std::vector<double> *prices,
                                  Certificate *certificate) {
  Problem problem(graph, Rules::Format);
  GapProblem gaps(problem, order);
  std::vector<double> best;
  if (budget > 0)
    best = bestPrices(savingProblem(gaps, budget));
  best.resize(gaps.numPositions, 0);
  double bound = boundAt(gaps, order, budget, best, certificate);
  if (prices)
    *prices = std::move(best);
  return bound;
}

double ckopt::planner::orderBoundAt(const Graph &graph,
                                    const std::vector<NodeId> &order,
                                    int64_t budget, std::vector<double> prices,
                                    Certificate *certificate) {
  Problem problem(graph, Rules::Format);
  GapProblem gaps(problem, order);
  prices.resize(gaps.numPositions, 0);
  return boundAt(gaps, order, budget, prices, certificate);
}
