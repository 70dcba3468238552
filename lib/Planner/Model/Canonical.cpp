//===- Canonical.cpp - a graph in units of its own ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: the unit of costs or bytes must not affect which plan is found, but
// sums of doubles round differently in another unit, searches stop at other
// bytes, and randomized searches amplify the difference of a last bit. Method:
// bytes are divided by their greatest common divisor. Costs are divided by the
// largest unit of which all are whole multiples; where there is none, the
// largest cost is a power of two and the others are rounded to a few bits.
// Guarantee: the same plans fit, and a plan's cost differs by less than 2e-10
// of itself. The forms of two graphs whose costs differ by a factor are equal
// unless rounding that factor changes how one of the costs is rounded, which
// happens for one cost in a million. O(n log n).
//
//===----------------------------------------------------------------------===//
#include "Model/Canonical.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

using namespace ckopt::planner;

/// Significant bits of a cost that is no whole multiple: few enough to hide how
/// a product was rounded, more than any clock gives.
static constexpr int canonicalBits = 32;
/// The largest multiple of a unit. Quotients of whole numbers up to here differ
/// by 1.4e-14 at least, far more than they are rounded by.
static constexpr int64_t mostUnits = int64_t(1) << 23;
/// The relative error that a quotient of two costs may have from rounding.
static constexpr double quotientRounding = 1e-15;
/// What the largest cost becomes where there is no unit.
static constexpr double largestCost = 1 << 20;

static double roundToBits(double x) {
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, canonicalBits)),
                    exponent - canonicalBits);
}

/// The smallest q such that x in [0, 1] is a quotient p / q as far as rounding
/// shows, by continued fractions; 0 if it is larger than mostUnits.
static int64_t denominatorOf(double x) {
  int64_t high = int64_t(std::ldexp(x, 53)), low = int64_t(1) << 53;
  int64_t p = 1, q = 0, lastP = 0, lastQ = 1;
  while (low > 0) {
    int64_t whole = high / low;
    if (q > 0 && whole > mostUnits / q)
      return 0;
    lastP = std::exchange(p, whole * p + lastP);
    lastQ = std::exchange(q, whole * q + lastQ);
    if (q > mostUnits)
      return 0;
    if (std::abs(x - double(p) / double(q)) <= quotientRounding * x)
      return q;
    high = std::exchange(low, high % low);
  }
  return q;
}

/// How many units the largest cost has, if all costs are whole multiples of
/// one; 0 if they are not.
static int64_t unitsOfLargest(const std::vector<Node> &nodes, double largest) {
  int64_t units = 1;
  for (const Node &node : nodes) {
    int64_t denominator = denominatorOf(node.cost / largest);
    if (denominator == 0)
      return 0;
    units = std::lcm(units, denominator); // both are at most 2^23
    if (units > mostUnits)
      return 0;
  }
  return units;
}

double ckopt::planner::startCost(const Graph &graph) {
  double least = graph.nodes.empty() ? 0 : graph.nodes.front().cost;
  for (const Node &node : graph.nodes)
    least = std::min(least, node.cost);
  return least;
}

CanonicalGraph::CanonicalGraph(const Graph &given, bool startless)
    : graph(given) {
  double start = startless ? startCost(given) : 0;
  for (Node &node : graph.nodes) {
    node.name.clear();
    node.cost -= start;
  }
  for (Value &value : graph.values)
    value.name.clear();
  divideBytes();
  divideCosts();
}

void CanonicalGraph::divideBytes() {
  int64_t divisor = 0;
  for (const Value &value : graph.values)
    if (value.aliasOf < 0)
      divisor = std::gcd(divisor, value.bytes);
  for (const Node &node : graph.nodes)
    divisor = std::gcd(divisor, node.workspace);
  if (divisor == 0)
    return;
  // An alignment that divides all sizes has no effect.
  if (divisor % graph.alignment == 0)
    graph.alignment = 1;
  else
    divisor = std::gcd(divisor, graph.alignment);
  byteUnit = divisor;
  graph.alignment = std::max<int64_t>(1, graph.alignment / divisor);
  for (Value &value : graph.values)
    value.bytes /= divisor;
  for (Node &node : graph.nodes)
    node.workspace /= divisor;
}

void CanonicalGraph::divideCosts() {
  double largest = 0;
  for (const Node &node : graph.nodes)
    largest = std::max(largest, node.cost);
  if (!(largest > 0))
    return;
  int64_t units = unitsOfLargest(graph.nodes, largest);
  costUnit = largest / (units > 0 ? double(units) : largestCost);
  double dearer = 0; // largest relative excess of a cost here
  for (Node &node : graph.nodes) {
    double cost = node.cost / costUnit;
    cost = units > 0 ? std::nearbyint(cost) : roundToBits(cost);
    if (cost * costUnit > node.cost)
      dearer = std::max(dearer, 1 - node.cost / (cost * costUnit));
    node.cost = cost;
  }
  boundUnit = costUnit * (1 - dearer);
}

int64_t CanonicalGraph::fromBytes(int64_t budget) const {
  return budget == 0 ? 0 : std::max<int64_t>(1, budget / byteUnit);
}

/// Applies `change` to all sizes and offsets of a plan.
template <typename Change> static void changeBytes(Plan &plan, Change change) {
  change(plan.peak);
  change(plan.arena);
  change(plan.packing.load);
  change(plan.packing.lowerBound);
  for (std::vector<int64_t> &step : plan.offsets)
    for (int64_t &offset : step)
      change(offset);
  for (auto &[value, offset] : plan.initial)
    change(offset);
}

void CanonicalGraph::toBytes(Plan &plan) const {
  changeBytes(plan, [&](int64_t &bytes) { bytes *= byteUnit; });
}

bool CanonicalGraph::fromBytes(Plan &plan) const {
  bool whole = true;
  changeBytes(plan, [&](int64_t &bytes) {
    whole &= bytes % byteUnit == 0;
    bytes /= byteUnit;
  });
  return whole;
}
