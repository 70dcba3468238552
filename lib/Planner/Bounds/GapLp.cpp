//===- GapLp.cpp - best prices of bytes for the gap relaxation ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objective: the least cost of saving need_t bytes at each position t, each arc
// saving the same bytes over an interval. Method: with one row a position and
// neighbouring rows subtracted, each column has one +1 and one -1: a min-cost
// flow along a path, which Clp's simplex solves. Its duals are the prices.
//
// Rows that others imply are left out first: a row t is implied by t' if what
// is resident at t' with everything dropped is at least that at t plus all arcs
// that cover t but not t', because even with the latter all saved, t' asks for
// no less of the common arcs. Of the rest, rows come into the model where a
// solution misses them; mostly a few dozen do, and fewer have prices. Gives up:
// after a number of pivots; any prices give a bound. Complexity: the simplex
// method's, on those rows.
//
//===----------------------------------------------------------------------===//
#include "Bounds/GapLp.h"

#include "coin/Clp_C_Interface.h"

#include <algorithm>

using namespace ckopt::planner;

/// Few rows are binding, so a few rounds find them.
static constexpr int maxLpRounds = 40;

namespace {

class PathFlow {
public:
  explicit PathFlow(const SavingProblem &problem) : problem(problem) {}
  std::vector<double> run();
  /// By arc: bytes in the last solution.
  std::vector<double> saved;

private:
  void chooseCandidates();
  void buildColumns();
  std::vector<double> solve();
  bool addViolated();

  const SavingProblem &problem;
  /// Positions whose rows may be binding, ascending.
  std::vector<int32_t> candidates;
  std::vector<int32_t> rows; ///< candidates in the model, ascending
  std::vector<CoinBigIndex> starts;
  std::vector<int> indices;
  std::vector<double> elements, upper, cost;
  std::vector<int32_t> arcOf; ///< column -> arc, from rows.size() on
  double byteUnit = 1, costUnit = 1;
};

void PathFlow::chooseCandidates() {
  int32_t n = int32_t(problem.need.size());
  // Sums over arcs, by their first and last position.
  std::vector<double> opened(n + 2, 0), closed(n + 2, 0), cover(n + 2, 0);
  for (const SavingArc &arc : problem.arcs) {
    opened[arc.first + 1] += arc.bytes;
    closed[arc.last + 1] += arc.bytes;
  }
  for (int32_t p = 0; p <= n; ++p) {
    opened[p + 1] += opened[p];
    closed[p + 1] += closed[p];
  }
  // opened[p] sums arcs that start before p, closed[p] those that end before p.
  std::vector<double> rest(n);
  for (int32_t p = 0; p < n; ++p)
    rest[p] = double(problem.need[p]) - (opened[p + 1] - closed[p]);
  for (int32_t p = 0; p < n; ++p) {
    if (problem.need[p] <= 0)
      continue;
    bool implied = false;
    while (!candidates.empty()) {
      int32_t q = candidates.back();
      if (rest[p] >= rest[q] + (closed[p] - closed[q])) {
        candidates.pop_back();
        continue;
      }
      implied = rest[q] >= rest[p] + (opened[p + 1] - opened[q + 1]);
      break;
    }
    if (!implied)
      candidates.push_back(p);
  }
}

void PathFlow::buildColumns() {
  int32_t count = int32_t(rows.size());
  double most = 1;
  double dearest = 0;
  for (const SavingArc &arc : problem.arcs) {
    most = std::max(most, arc.bytes);
    dearest = std::max(dearest, arc.cost);
  }
  byteUnit = most;
  costUnit = dearest > 0 ? dearest : 1;
  starts.assign(1, 0);
  indices.clear();
  elements.clear();
  upper.clear();
  cost.clear();
  arcOf.clear();
  auto close = [&] { starts.push_back(CoinBigIndex(indices.size())); };
  auto entry = [&](int32_t row, double value) {
    if (row >= count)
      return; // the last difference is the sum of all others
    indices.push_back(row);
    elements.push_back(value);
  };
  for (int32_t r = 0; r < count; ++r) {
    entry(r, -1);
    entry(r + 1, 1);
    close();
    upper.push_back(1e30);
    cost.push_back(0);
  }
  for (size_t a = 0; a < problem.arcs.size(); ++a) {
    const SavingArc &arc = problem.arcs[a];
    int32_t low = int32_t(
        std::lower_bound(rows.begin(), rows.end(), arc.first) - rows.begin());
    int32_t high = int32_t(
        std::upper_bound(rows.begin(), rows.end(), arc.last) - rows.begin());
    if (low >= high)
      continue;
    arcOf.push_back(int32_t(a));
    entry(low, 1);
    entry(high, -1);
    close();
    upper.push_back(arc.bytes / byteUnit);
    cost.push_back(arc.cost / arc.bytes * byteUnit / costUnit);
  }
}

std::vector<double> PathFlow::solve() {
  int count = int(rows.size()), columns = int(upper.size());
  std::vector<double> lower(columns, 0), right(count);
  for (int r = 0; r < count; ++r)
    right[r] = double(problem.need[rows[r]] -
                      (r > 0 ? problem.need[rows[r - 1]] : 0)) /
               byteUnit;
  Clp_Simplex *model = Clp_newModel();
  Clp_setLogLevel(model, 0);
  Clp_loadProblem(model, columns, count, starts.data(), indices.data(),
                  elements.data(), lower.data(), upper.data(), cost.data(),
                  right.data(), right.data());
  Clp_initialSolve(model);
  const double *dual = Clp_dualRowSolution(model);
  std::vector<double> price(problem.need.size(), 0);
  for (int r = 0; r < count; ++r)
    price[rows[r]] =
        std::max(0.0, dual[r] - (r + 1 < count ? dual[r + 1] : 0)) * costUnit /
        byteUnit;
  const double *flow = Clp_primalColumnSolution(model);
  saved.assign(problem.arcs.size(), 0);
  for (size_t k = 0; k < arcOf.size(); ++k)
    saved[arcOf[k]] = std::max(0.0, flow[rows.size() + k]) * byteUnit;
  Clp_deleteModel(model);
  return price;
}

/// Adds to the model, between any two rows, the candidate that the last
/// solution violates most. Returns false if none is violated.
bool PathFlow::addViolated() {
  std::vector<double> change(problem.need.size() + 1, 0);
  for (size_t a = 0; a < saved.size(); ++a) {
    change[problem.arcs[a].first] += saved[a];
    change[problem.arcs[a].last + 1] -= saved[a];
  }
  double sum = 0, worst = 0;
  int32_t position = 0, found = -1;
  std::vector<int32_t> added;
  size_t next = 0;
  for (int32_t candidate : candidates) {
    for (; position <= candidate; ++position)
      sum += change[position];
    double missing = double(problem.need[candidate]) - sum;
    if (next < rows.size() && rows[next] <= candidate) {
      if (found >= 0)
        added.push_back(found);
      worst = 0;
      found = -1;
      next += rows[next] == candidate;
      continue;
    }
    if (missing > std::max(worst, 1e-7 * byteUnit)) {
      worst = missing;
      found = candidate;
    }
  }
  if (found >= 0)
    added.push_back(found);
  rows.insert(rows.end(), added.begin(), added.end());
  std::sort(rows.begin(), rows.end());
  return !added.empty();
}

std::vector<double> PathFlow::run() {
  chooseCandidates();
  if (candidates.empty())
    return {};
  int32_t highest = candidates.front();
  for (int32_t p : candidates)
    if (problem.need[p] > problem.need[highest])
      highest = p;
  rows = {highest};
  std::vector<double> prices;
  for (int round = 0; round < maxLpRounds; ++round) {
    buildColumns();
    prices = solve();
    if (!addViolated())
      break;
  }
  return prices;
}

} // namespace

std::vector<double> ckopt::planner::bestPrices(const SavingProblem &problem,
                                               std::vector<double> *saved) {
  PathFlow flow(problem);
  std::vector<double> prices = flow.run();
  if (saved) {
    flow.saved.resize(problem.arcs.size(), 0);
    *saved = std::move(flow.saved);
  }
  return prices;
}
