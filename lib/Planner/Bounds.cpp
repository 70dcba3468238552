//===- Bounds.cpp - proven lower bounds -----------------------------------===//
//
// Memory, any order: while a node runs, what it reads, makes and needs for
// scratch is resident, and so is every persistent value and every input that
// the node or something after it reads. Cost, any order: each node runs once.
// Cost, given order (the gap relaxation): between two neighbouring accesses of
// a storage by first runs it is either resident throughout or made again in
// between, and different gaps need different runs. For any prices p_t >= 0 of a
// byte at first run t,
//   sum_t p_t need_t - sum_gaps max(0, bytes * sum_{t in gap} p_t - cost)
// bounds the extra cost from below, where need_t is how far the load at t, with
// all gaps kept, passes the budget. Prices are found by subgradient steps; each
// step is linear in gaps and nodes.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/Bounds.h"
#include "Problem.h"

#include <algorithm>

using namespace ckopt::planner;

namespace {

struct Gap {
  int32_t from, to; ///< open interval of positions
  double bytes;
  double cost;
};

class GapRelaxation {
public:
  GapRelaxation(const Problem &problem, const std::vector<NodeId> &order,
                int64_t budget);
  double solve(std::vector<double> *prices);

private:
  void addFixed(int32_t from, int32_t to, int64_t bytes) {
    if (from <= to) {
      fixed[from] += bytes;
      fixed[to + 1] -= bytes;
    }
  }
  void addStorage(ValueId storage);
  double evaluate(const std::vector<double> &price,
                  std::vector<double> *subgradient) const;

  const Problem &problem;
  int32_t n;
  std::vector<int32_t> place;
  std::vector<std::vector<int32_t>> accesses;
  std::vector<int64_t> fixed; ///< differences; later sums
  std::vector<Gap> gaps;
  std::vector<double> need; ///< by position
};

GapRelaxation::GapRelaxation(const Problem &problem,
                             const std::vector<NodeId> &order, int64_t budget)
    : problem(problem), n(problem.numNodes), place(n),
      accesses(problem.numValues), fixed(n + 2, 0), need(n + 1, 0) {
  for (int32_t p = 0; p < n; ++p) {
    place[order[p]] = p;
    for (ValueId v : problem.reads[order[p]])
      accesses[problem.root[v]].push_back(p);
    for (ValueId v : problem.outputs[order[p]])
      accesses[problem.root[v]].push_back(p);
    // Bytes taken over count once; which pair is taken is left open.
    int64_t taken = 0;
    std::vector<ValueId> seen;
    for (auto [i, o] : problem.pairs[order[p]])
      if (std::find(seen.begin(), seen.end(), o) == seen.end()) {
        seen.push_back(o);
        taken += problem.bytes[o];
      }
    addFixed(p, p, problem.workspace[order[p]] - taken);
  }
  for (ValueId v = 0; v < problem.numValues; ++v)
    if (problem.root[v] == v)
      addStorage(v);
  std::vector<double> covered(n + 2, 0);
  for (const Gap &gap : gaps) {
    covered[gap.from + 1] += gap.bytes;
    covered[gap.to] -= gap.bytes;
  }
  int64_t base = 0;
  double sum = 0;
  for (int32_t p = 0; p <= n; ++p) {
    base += fixed[p];
    sum += covered[p];
    need[p] = double(base) + sum - double(budget);
  }
}

void GapRelaxation::addStorage(ValueId storage) {
  std::vector<int32_t> &list = accesses[storage];
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  int64_t bytes = problem.bytes[storage];
  if (bytes == 0)
    return;
  if (problem.initial[storage]) {
    bool toEnd = problem.endLive[storage];
    if (toEnd || !list.empty())
      addFixed(0, toEnd ? n : list.back(), bytes);
    return;
  }
  NodeId node = problem.producer[storage];
  if (node < 0)
    return;
  // A node with several results makes all of them at once: its cost is shared
  // among them by size.
  double total = 0;
  for (ValueId v : problem.outputs[node])
    total += double(problem.bytes[v]);
  double cost = problem.cost[node] * double(bytes) / total;
  // Of an output only the last copy must be there at the end; a view may be
  // one too, and then the storage is.
  for (int32_t p : list)
    addFixed(p, p, bytes);
  bool canRerun = problem.recompute[node];
  auto gap = [&](int32_t from, int32_t to) {
    if (to - from <= 1)
      return;
    if (canRerun)
      gaps.push_back({from, to, double(bytes), cost});
    else
      addFixed(from + 1, to - 1, bytes);
  };
  for (size_t i = 0; i + 1 < list.size(); ++i)
    gap(list[i], list[i + 1]);
  if (problem.endLive[storage]) {
    gap(list.back(), n);
    addFixed(n, n, bytes);
  }
}

double GapRelaxation::evaluate(const std::vector<double> &price,
                               std::vector<double> *subgradient) const {
  std::vector<double> prefix(n + 2, 0);
  double value = 0;
  for (int32_t p = 0; p <= n; ++p) {
    prefix[p + 1] = prefix[p] + price[p];
    value += price[p] * need[p];
  }
  std::vector<double> freed(n + 2, 0);
  for (const Gap &gap : gaps) {
    double saving = gap.bytes * (prefix[gap.to] - prefix[gap.from + 1]);
    if (saving > gap.cost) {
      value -= saving - gap.cost;
      freed[gap.from + 1] += gap.bytes;
      freed[gap.to] -= gap.bytes;
    }
  }
  if (subgradient) {
    double sum = 0;
    for (int32_t p = 0; p <= n; ++p) {
      sum += freed[p];
      (*subgradient)[p] = need[p] - sum;
    }
  }
  return value;
}

double GapRelaxation::solve(std::vector<double> *prices) {
  std::vector<double> price(n + 1, 0), bestPrice = price, slope(n + 1);
  double best = 0;
  int32_t worst =
      int32_t(std::max_element(need.begin(), need.end()) - need.begin());
  if (need[worst] > 0) {
    // Start: the best price at the worst position alone, a fractional
    // knapsack over the gaps that cover it.
    std::vector<double> ratios;
    for (const Gap &gap : gaps)
      if (gap.from < worst && worst < gap.to)
        ratios.push_back(gap.cost / gap.bytes);
    std::sort(ratios.begin(), ratios.end());
    size_t low = 0, high = ratios.size();
    auto at = [&](size_t k) {
      std::vector<double> single(n + 1, 0);
      single[worst] = ratios[k];
      return evaluate(single, nullptr);
    };
    while (low + 1 < high) { // Concave in the price.
      size_t mid = (low + high - 1) / 2;
      if (at(mid) < at(mid + 1))
        low = mid + 1;
      else
        high = mid + 1;
    }
    if (!ratios.empty()) {
      price[worst] = ratios[std::min(low, ratios.size() - 1)];
      best = std::max(0.0, evaluate(price, nullptr));
      bestPrice = price;
    }
    int rounds = std::clamp(int(2e7 / (double(gaps.size()) + n + 1)), 60, 400);
    double factor = 1;
    int stale = 0;
    for (int round = 0; round < rounds; ++round) {
      double value = evaluate(price, &slope);
      if (value > best * (1 + 1e-6) + 1e-300) {
        best = value;
        bestPrice = price;
        stale = 0;
      } else if (++stale >= 8) {
        price = bestPrice;
        factor *= 0.6;
        stale = 0;
        evaluate(price, &slope);
      }
      double norm = 0;
      for (int32_t p = 0; p <= n; ++p) {
        if (price[p] <= 0 && slope[p] < 0)
          slope[p] = 0;
        norm += slope[p] * slope[p];
      }
      if (norm == 0 || best == 0)
        break;
      double step = factor * 0.1 * best / norm; // Polyak, to a near target.
      for (int32_t p = 0; p <= n; ++p)
        price[p] = std::max(0.0, price[p] + step * slope[p]);
    }
  }
  if (prices)
    *prices = bestPrice;
  return best;
}

} // namespace

int64_t ckopt::planner::memoryBound(const Graph &graph) {
  Problem problem(graph);
  int32_t n = problem.numNodes;
  int64_t always = problem.persistentBytes, atStart = 0, atEnd = 0;
  for (ValueId v = 0; v < problem.numValues; ++v) {
    if (problem.root[v] != v)
      continue;
    if (problem.initial[v] && !problem.endLive[v] &&
        !problem.readers[v].empty())
      atStart += problem.bytes[v];
    if (problem.endLive[v] && !problem.initial[v])
      atEnd += problem.bytes[v];
  }
  int64_t bound = always + std::max(atStart, atEnd);
  for (NodeId node = 0; node < n; ++node) {
    int64_t sum = always + problem.ownBytes(node);
    ValueId previous = -1;
    std::vector<ValueId> roots;
    for (ValueId v : problem.reads[node])
      roots.push_back(problem.root[v]);
    std::sort(roots.begin(), roots.end());
    for (ValueId r : roots) {
      bool persistent = problem.initial[r] && problem.endLive[r];
      if (r != previous && !persistent)
        sum += problem.bytes[r];
      previous = r;
    }
    bound = std::max(bound, sum);
  }
  return bound;
}

double ckopt::planner::costBound(const Graph &graph, int64_t budget) {
  return baseCost(graph);
}

double ckopt::planner::orderBound(const Graph &graph,
                                  const std::vector<NodeId> &order,
                                  int64_t budget, std::vector<double> *prices) {
  Problem problem(graph);
  double extra = GapRelaxation(problem, order, budget).solve(prices);
  // Rounding of the sums above never turns the bound into a lie.
  return problem.baseCost + std::max(0.0, extra * (1 - 1e-9));
}
