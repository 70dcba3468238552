//===- Milp.cpp - programs with binary decisions --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: minimize a cost over binaries with covering rows (bytes to be freed)
// and a few logical ones. Method: branch and bound on linear programs; knapsack
// cover inequalities (Carr, Fleischer, Leung, Phillips, SODA 2000) at the root:
// for a row sum a_c x_c >= b and a set A of columns with a(A) < b, the others
// must cover r = b - a(A), each counting no more than r; branching by
// pseudo-costs that are first measured (reliability branching, Achterberg,
// Koch, Martin 2005); a dive first, then the node with the least bound; a
// rounding with repair at each node. Guarantee: `bound` holds (every node's
// bound is evaluated from prices); the same program and options give the same
// answer. Exponential, bounded by the number of tree nodes.
//
//===----------------------------------------------------------------------===//
#include "Math/Milp.h"

#include <algorithm>
#include <cmath>
#include <queue>

using namespace ckopt::planner;

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double fractional = 1e-6;
/// Rows are divided by their largest factor; a remainder below this after whole
/// factors were subtracted is rounding.
constexpr double whole = 1e-6;

class Tree {
public:
  Tree(const Milp &milp, const MilpOptions &options, Deadline &deadline)
      : milp(milp), options(options), deadline(deadline), lp(milp.cost),
        byColumn(milp.cost.size()), fixed(milp.cost.size(), -1),
        gain{std::vector<double>(milp.cost.size(), 0),
             std::vector<double>(milp.cost.size(), 0)},
        tries{std::vector<int>(milp.cost.size(), 0),
              std::vector<int>(milp.cost.size(), 0)} {
    for (size_t r = 0; r < milp.rows.size(); ++r)
      for (auto [c, factor] : milp.rows[r].terms)
        byColumn[c].push_back({int32_t(r), factor});
  }
  MilpResult run();

private:
  struct Node {
    double bound;
    int32_t number;
    std::vector<std::pair<int32_t, char>> fixings;
    bool operator<(const Node &o) const { // the least bound comes first
      return bound != o.bound ? bound > o.bound : number < o.number;
    }
  };
  /// Returns the bound from which nodes need not be explored.
  double limit() const {
    double best = std::min(options.cutoff, result.value);
    return best - std::max(options.step * (1 - 1e-6),
                           best * std::max(options.gap, 1e-10));
  }
  LinearProgram::Outcome solve(int32_t pivots) {
    LinearProgram::Outcome outcome = lp.solve(pivots);
    deadline.spend(outcome.work);
    return outcome;
  }
  void enter(const Node &node);
  void take(const std::vector<char> &x);
  void round();
  bool repair(std::vector<char> &x, std::vector<double> &slack);
  void strip(std::vector<char> &x, std::vector<double> &slack);
  void cutRoot();
  bool coverCut(const Milp::Row &row, std::vector<Milp::Row> &cuts) const;
  int32_t chooseColumn(double bound);
  double probe(int32_t column, int value, double bound);

  const Milp &milp;
  const MilpOptions &options;
  Deadline &deadline;
  LinearProgram lp;
  std::vector<std::vector<std::pair<int32_t, double>>> byColumn;
  std::vector<char> fixed;
  /// Pseudo-costs by value and by column.
  std::vector<double> gain[2];
  std::vector<int> tries[2];
  std::priority_queue<Node> open;
  int32_t numbers = 0;
  MilpResult result;
  double pruned = infinite; ///< least bound of nodes that were pruned
};

void Tree::take(const std::vector<char> &x) {
  double value = 0;
  for (size_t c = 0; c < x.size(); ++c)
    value += x[c] ? milp.cost[c] : 0;
  if (value >= std::min(result.value, options.cutoff))
    return;
  result.value = value;
  result.x = x;
}

/// Flips columns until all rows hold, those with the least cost for their
/// effect first.
bool Tree::repair(std::vector<char> &x, std::vector<double> &slack) {
  size_t flips = 0;
  for (size_t r = 0; r < milp.rows.size();) {
    if (slack[r] >= -1e-9) {
      ++r;
      continue;
    }
    int32_t best = -1;
    double bestRatio = infinite;
    for (auto [c, factor] : milp.rows[r].terms) {
      double by = x[c] ? -factor : factor;
      if (by <= 0 || fixed[c] == x[c])
        continue;
      double price = x[c] ? 1e-9 : milp.cost[c] * (1.01 - lp.x()[c]) + 1e-9;
      double ratio = price / std::min(by, -slack[r]);
      if (ratio < bestRatio) {
        bestRatio = ratio;
        best = c;
      }
    }
    if (best < 0 || ++flips > 4 * x.size())
      return false;
    double by = x[best] ? -1 : 1;
    x[best] = !x[best];
    for (auto [row, factor] : byColumn[best])
      slack[row] += by * factor;
    r = 0; // logical rows may need more
    deadline.spend(int64_t(milp.rows.size() / 8) + 1);
  }
  return true;
}

/// Removes columns that are not needed, the most expensive first.
void Tree::strip(std::vector<char> &x, std::vector<double> &slack) {
  std::vector<int32_t> columns;
  for (size_t c = 0; c < x.size(); ++c)
    if (x[c] && milp.cost[c] > 0)
      columns.push_back(int32_t(c));
  std::sort(columns.begin(), columns.end(), [&](int32_t a, int32_t b) {
    return milp.cost[a] != milp.cost[b] ? milp.cost[a] > milp.cost[b] : a < b;
  });
  for (int32_t c : columns) {
    bool needed = false;
    for (auto [row, factor] : byColumn[c])
      needed |= slack[row] - factor < -1e-9 && factor > 0;
    if (needed)
      continue;
    x[c] = 0;
    for (auto [row, factor] : byColumn[c])
      slack[row] -= factor;
  }
}

void Tree::round() {
  for (double threshold : {0.5, 0.05}) {
    std::vector<char> x(milp.cost.size());
    std::vector<double> slack;
    for (size_t c = 0; c < x.size(); ++c)
      x[c] = lp.x()[c] > threshold;
    for (const Milp::Row &row : milp.rows) {
      double sum = -row.least;
      for (auto [c, factor] : row.terms)
        sum += x[c] ? factor : 0;
      slack.push_back(sum);
    }
    if (!repair(x, slack))
      continue;
    strip(x, slack);
    take(x);
  }
}

/// Returns a violated knapsack cover inequality of a row, with columns of
/// negative factors complemented.
bool Tree::coverCut(const Milp::Row &row, std::vector<Milp::Row> &cuts) const {
  double rest = row.least;
  for (auto [c, factor] : row.terms)
    rest += factor < 0 ? -factor : 0;
  if (rest <= whole)
    return false;
  std::vector<std::pair<double, size_t>> order;
  for (size_t k = 0; k < row.terms.size(); ++k) {
    auto [c, factor] = row.terms[k];
    order.push_back({factor < 0 ? lp.x()[c] : 1 - lp.x()[c], k});
  }
  std::sort(order.begin(), order.end());
  std::vector<char> inside(row.terms.size(), 0);
  double best = 1e-3;
  Milp::Row cut;
  for (size_t prefix = 0; prefix <= order.size() && rest > whole; ++prefix) {
    // Columns with equal LP value are added to the cover as a group.
    if (prefix == 0 || prefix == order.size() ||
        order[prefix].first > order[prefix - 1].first + 1e-6) {
      double sum = 0;
      for (size_t k = 0; k < row.terms.size(); ++k) {
        auto [c, factor] = row.terms[k];
        if (!inside[k])
          sum += std::min(std::abs(factor), rest) *
                 (factor < 0 ? 1 - lp.x()[c] : lp.x()[c]);
      }
      if ((rest - sum) / rest > best) {
        best = (rest - sum) / rest;
        cut = {{}, 1};
        for (size_t k = 0; k < row.terms.size(); ++k) {
          auto [c, factor] = row.terms[k];
          double share = std::min(std::abs(factor), rest) / rest;
          if (inside[k] || share < 1e-9)
            continue; // dropping tiny factors only weakens the row ...
          cut.terms.push_back({c, factor < 0 ? -share : share});
          cut.least -= factor < 0 ? share : 0;
        }
        for (size_t k = 0; k < row.terms.size(); ++k)
          if (!inside[k] &&
              std::min(std::abs(row.terms[k].second), rest) / rest < 1e-9)
            cut.least -= 1e-9; // ... if they are subtracted here
      }
    }
    if (prefix < order.size()) {
      inside[order[prefix].second] = 1;
      rest -= std::abs(row.terms[order[prefix].second].second);
    }
  }
  if (cut.terms.empty())
    return false;
  cut.least -= 1e-9;
  cuts.push_back(std::move(cut));
  return true;
}

void Tree::cutRoot() {
  double before = -infinite;
  int stalled = 0;
  for (int rounds = 0; rounds < 30 && stalled < 3 && !deadline.passed();
       ++rounds) {
    LinearProgram::Outcome outcome = solve(20000);
    if (!outcome.solved)
      return;
    stalled =
        outcome.bound <= before + 1e-4 * std::abs(before) ? stalled + 1 : 0;
    before = outcome.bound;
    std::vector<Milp::Row> cuts;
    for (const Milp::Row &row : milp.rows)
      if (row.terms.size() > 2) {
        coverCut(row, cuts);
        deadline.spend(int64_t(row.terms.size()));
      }
    if (cuts.empty())
      return;
    lp.addRows(std::move(cuts));
  }
}

void Tree::enter(const Node &node) {
  for (size_t c = 0; c < fixed.size(); ++c)
    if (fixed[c] >= 0) {
      fixed[c] = -1;
      lp.fix(int32_t(c), -1);
    }
  for (auto [c, value] : node.fixings) {
    fixed[c] = value;
    lp.fix(c, value);
  }
}

/// Estimates by a few pivots how much fixing a column raises the bound.
double Tree::probe(int32_t column, int value, double bound) {
  lp.fix(column, value);
  LinearProgram::Outcome outcome = solve(60);
  lp.fix(column, -1);
  return std::clamp(outcome.bound - bound, 0.0, 1e300);
}

int32_t Tree::chooseColumn(double bound) {
  const std::vector<double> x = lp.x();
  struct Choice {
    double score;
    int32_t column;
  };
  std::vector<Choice> choices;
  double mean[2] = {0, 0};
  int known[2] = {0, 0};
  for (int value : {0, 1})
    for (size_t c = 0; c < x.size(); ++c)
      if (tries[value][c]) {
        mean[value] += gain[value][c] / tries[value][c];
        ++known[value];
      }
  for (int value : {0, 1})
    mean[value] = known[value] ? mean[value] / known[value] : 1;
  auto score = [&](double down, double up) {
    return std::max(down, 1e-9) * std::max(up, 1e-9);
  };
  for (size_t c = 0; c < x.size(); ++c) {
    if (x[c] < fractional || x[c] > 1 - fractional || fixed[c] >= 0)
      continue;
    double unit[2];
    for (int value : {0, 1})
      unit[value] =
          tries[value][c] ? gain[value][c] / tries[value][c] : mean[value];
    choices.push_back(
        {score(unit[0] * x[c], unit[1] * (1 - x[c])), int32_t(c)});
  }
  std::sort(
      choices.begin(), choices.end(), [](const Choice &a, const Choice &b) {
        return a.score != b.score ? a.score > b.score : a.column < b.column;
      });
  int32_t best = choices.empty() ? -1 : choices[0].column;
  double bestScore = -1;
  int probes = 0;
  for (size_t k = 0; k < choices.size() && probes < 8; ++k) {
    int32_t c = choices[k].column;
    double value = choices[k].score;
    if (tries[0][c] + tries[1][c] < 4) {
      ++probes;
      double down = probe(c, 0, bound), up = probe(c, 1, bound);
      value = score(std::min(down, 1e30), std::min(up, 1e30));
      gain[0][c] += std::min(down, bound + 1) / x[c];
      gain[1][c] += std::min(up, bound + 1) / (1 - x[c]);
      ++tries[0][c];
      ++tries[1][c];
    }
    if (value > bestScore) {
      bestScore = value;
      best = c;
    }
  }
  return best;
}

MilpResult Tree::run() {
  lp.addRows(milp.rows);
  if (milp.cost.empty()) {
    result.kind = MilpResult::Optimal;
    for (const Milp::Row &row : milp.rows)
      if (row.least > 0)
        result.kind = MilpResult::Infeasible;
    return result;
  }
  result.value = infinite;
  if (!options.start.empty())
    take(options.start);
  cutRoot();
  open.push({-infinite, 0, {}});
  bool dive = false;
  Node current;
  double left = infinite; ///< least bound of unexplored nodes at a limit
  while (dive || !open.empty()) {
    if (!dive) {
      current = open.top();
      open.pop();
    }
    dive = false;
    if (current.bound >= limit()) {
      pruned = std::min(pruned, current.bound);
      continue;
    }
    if (result.treeNodes >= options.treeNodes || deadline.passed()) {
      left = std::min(left, current.bound);
      while (!open.empty()) {
        left = std::min(left, open.top().bound);
        open.pop();
      }
      break;
    }
    ++result.treeNodes;
    enter(current);
    LinearProgram::Outcome outcome = solve(20000);
    double bound = std::max(current.bound, outcome.bound);
    if (bound >= limit()) {
      pruned = std::min(pruned, bound);
      continue;
    }
    round();
    const std::vector<double> x = lp.x();
    int32_t column = chooseColumn(bound);
    if (column < 0) {
      // All columns are integral. If rounding did not accept the solution, fix
      // a free column all the same.
      if (result.value <= bound + 1e-9 * std::abs(bound) + 1e-12) {
        pruned = std::min(pruned, bound);
        continue;
      }
      for (size_t c = 0; c < x.size() && column < 0; ++c)
        if (fixed[c] < 0)
          column = int32_t(c);
      // Nothing is free: either rows fail, or the solution is accepted.
      if (column < 0) {
        pruned = std::min(pruned, std::max(bound, 0.0));
        continue;
      }
    }
    Node one{bound, ++numbers, current.fixings},
        zero{bound, ++numbers, current.fixings};
    one.fixings.push_back({column, 1});
    zero.fixings.push_back({column, 0});
    bool up = x[column] >= 0.5;
    open.push(up ? std::move(zero) : std::move(one));
    current = up ? std::move(one) : std::move(zero);
    dive = true;
  }
  double best = std::min(result.value, options.cutoff);
  result.bound = std::max(0.0, std::min({left, pruned, best}));
  if (left < infinite)
    result.kind = MilpResult::Limited;
  else if (!result.x.empty())
    result.kind = MilpResult::Optimal;
  else
    result.kind =
        options.cutoff < 1e300 ? MilpResult::CutOff : MilpResult::Infeasible;
  if (result.x.empty())
    result.value = 0;
  return result;
}

} // namespace

MilpResult ckopt::planner::solveMilp(const Milp &milp,
                                     const MilpOptions &options,
                                     Deadline &deadline) {
  if (!haveLinearPrograms())
    return {}; // without bounds a search would only use the work up
  return Tree(milp, options, deadline).run();
}
