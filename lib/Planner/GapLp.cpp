//===- GapLp.cpp - best prices of bytes for the gap relaxation ------------===//
//
// The least cost of saving need_t bytes at each position t, each arc saving the
// same bytes over an interval. With one row a position and neighbouring rows
// subtracted, each column has one +1 and one -1: a min-cost flow along a path,
// which Clp's simplex solves. Its duals are the prices.
//
// Rows that others imply are left out first: a row t is implied by t' if what
// is resident at t' with everything dropped is at least that at t plus all
// arcs that cover t but not t', because even with the latter all saved, t'
// asks for no less of the common arcs. That leaves little more than one row for
// each local maximum.
//
//===----------------------------------------------------------------------===//
#include "GapLp.h"

#include "coin/Clp_C_Interface.h"

#include <algorithm>

using namespace ckopt::planner;

namespace {

class PathFlow {
public:
  explicit PathFlow(const SavingProblem &problem) : problem(problem) {}
  std::vector<double> run();

private:
  void chooseRows();
  void buildColumns();
  std::vector<double> solve();

  const SavingProblem &problem;
  std::vector<int32_t> rows; ///< positions that are kept, ascending
  std::vector<CoinBigIndex> starts{0};
  std::vector<int> indices;
  std::vector<double> elements, upper, cost;
  double byteUnit = 1, costUnit = 1;
};

void PathFlow::chooseRows() {
  int32_t n = int32_t(problem.need.size());
  // Sums of arcs by their first and last position.
  std::vector<double> opened(n + 2, 0), closed(n + 2, 0), cover(n + 2, 0);
  for (const SavingArc &arc : problem.arcs) {
    opened[arc.first + 1] += arc.bytes;
    closed[arc.last + 1] += arc.bytes;
  }
  for (int32_t p = 0; p <= n; ++p) {
    opened[p + 1] += opened[p];
    closed[p + 1] += closed[p];
  }
  // opened[p]: of arcs that start before p; closed[p]: that end before p.
  std::vector<double> rest(n);
  for (int32_t p = 0; p < n; ++p)
    rest[p] = double(problem.need[p]) - (opened[p + 1] - closed[p]);
  for (int32_t p = 0; p < n; ++p) {
    if (problem.need[p] <= 0)
      continue;
    bool implied = false;
    while (!rows.empty()) {
      int32_t q = rows.back();
      if (rest[p] >= rest[q] + (closed[p] - closed[q])) {
        rows.pop_back();
        continue;
      }
      implied = rest[q] >= rest[p] + (opened[p + 1] - opened[q + 1]);
      break;
    }
    if (!implied)
      rows.push_back(p);
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
  auto close = [&] { starts.push_back(CoinBigIndex(indices.size())); };
  auto entry = [&](int32_t row, double value) {
    if (row >= count)
      return; // The last difference is the sum of all others.
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
  for (const SavingArc &arc : problem.arcs) {
    int32_t low = int32_t(
        std::lower_bound(rows.begin(), rows.end(), arc.first) - rows.begin());
    int32_t high = int32_t(
        std::upper_bound(rows.begin(), rows.end(), arc.last) - rows.begin());
    if (low >= high)
      continue;
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
  Clp_deleteModel(model);
  return price;
}

std::vector<double> PathFlow::run() {
  chooseRows();
  if (rows.empty())
    return {};
  buildColumns();
  return solve();
}

} // namespace

std::vector<double> ckopt::planner::bestPrices(const SavingProblem &problem) {
  return PathFlow(problem).run();
}
