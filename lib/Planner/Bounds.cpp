//===- Bounds.cpp - proven lower bounds -----------------------------------===//
//
// Memory, any order: while a node runs, what it reads, makes and needs for
// scratch is resident, and so is every persistent value, every input that the
// node or something after it reads, and every result that cannot be made again
// and waits for something after it. Cost, any order: each node runs once.
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
#include "GapProblem.h"

#include <algorithm>

using namespace ckopt::planner;

namespace {

class GapRelaxation {
public:
  GapRelaxation(const GapProblem &gaps, int64_t budget)
      : n(gaps.numPositions - 1), gaps(gaps.gaps) {
    for (int64_t bytes : gaps.need(budget))
      need.push_back(double(bytes));
  }
  double solve(std::vector<double> *prices);

private:
  double evaluate(const std::vector<double> &price,
                  std::vector<double> *subgradient) const;

  int32_t n;
  const std::vector<Gap> &gaps;
  std::vector<double> need; ///< by position
};

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
    double saving =
        double(gap.bytes) * (prefix[gap.last + 1] - prefix[gap.first]);
    if (saving > gap.cost) {
      value -= saving - gap.cost;
      freed[gap.first] += double(gap.bytes);
      freed[gap.last + 1] -= double(gap.bytes);
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
      if (gap.first <= worst && worst <= gap.last)
        ratios.push_back(gap.cost / double(gap.bytes));
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

namespace {

/// For each node, bytes beyond its own operands that are resident while it
/// first runs, in any order: inputs, and results of nodes that run only once
/// and before it, which a node after it reads. Linear in the graph for each
/// such value; left out where there are too many.
class Waiting {
public:
  explicit Waiting(const Problem &problem)
      : problem(problem), bytes(problem.numNodes, 0),
        mark(problem.numNodes, 0) {}
  std::vector<int64_t> run();

private:
  void add(ValueId storage, const std::vector<NodeId> &readers);
  void spread(std::vector<NodeId> stack, const Csr &edges, char bit);

  const Problem &problem;
  std::vector<int64_t> bytes;
  std::vector<char>
      mark; ///< 1: before a reader; 2: after the maker; 4: touches
};

void Waiting::spread(std::vector<NodeId> stack, const Csr &edges, char bit) {
  for (NodeId n : stack)
    mark[n] |= bit;
  while (!stack.empty()) {
    NodeId n = stack.back();
    stack.pop_back();
    for (NodeId next : edges[n])
      if (!(mark[next] & bit)) {
        mark[next] |= bit;
        stack.push_back(next);
      }
  }
}

void Waiting::add(ValueId storage, const std::vector<NodeId> &readers) {
  std::fill(mark.begin(), mark.end(), 0);
  spread(readers, problem.preds, 1);
  NodeId maker = problem.producer[storage];
  if (maker >= 0) {
    spread({maker}, problem.succs, 2);
    mark[maker] |= 4;
  }
  for (NodeId n : readers)
    mark[n] |= 4;
  char wanted = maker >= 0 ? 3 : 1;
  for (NodeId n = 0; n < problem.numNodes; ++n)
    if (mark[n] == wanted)
      bytes[n] += problem.bytes[storage];
}

std::vector<int64_t> Waiting::run() {
  std::vector<std::vector<NodeId>> readers(problem.numValues);
  for (NodeId n = 0; n < problem.numNodes; ++n)
    for (ValueId v : problem.reads[n]) {
      std::vector<NodeId> &list = readers[problem.root[v]];
      if (list.empty() || list.back() != n)
        list.push_back(n);
    }
  std::vector<std::pair<int64_t, ValueId>> storages;
  for (ValueId v = 0; v < problem.numValues; ++v) {
    NodeId maker = problem.producer[v];
    bool once = problem.initial[v] ? !problem.endLive[v]
                                   : maker >= 0 && !problem.recompute[maker];
    if (problem.root[v] == v && once && problem.bytes[v] > 0 &&
        !readers[v].empty())
      storages.push_back({-problem.bytes[v], v});
  }
  std::sort(storages.begin(), storages.end());
  size_t most = size_t(1e8 / double(problem.reads.items.size() + 1)) + 1;
  for (size_t i = 0; i < std::min(storages.size(), most); ++i)
    add(storages[i].second, readers[storages[i].second]);
  return bytes;
}

} // namespace

int64_t ckopt::planner::memoryBound(const Graph &graph) {
  Problem problem(graph);
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
  std::vector<int64_t> waiting = Waiting(problem).run();
  std::vector<ValueId> roots;
  for (NodeId node = 0; node < problem.numNodes; ++node) {
    int64_t sum = always + problem.ownBytes(node) + waiting[node];
    roots.clear();
    for (ValueId v : problem.reads[node])
      roots.push_back(problem.root[v]);
    std::sort(roots.begin(), roots.end());
    roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
    for (ValueId r : roots)
      if (!problem.initial[r] || !problem.endLive[r])
        sum += problem.bytes[r];
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
  GapProblem gaps(problem, order);
  double extra = GapRelaxation(gaps, budget).solve(prices);
  // Rounding of the sums above never turns the bound into a lie.
  return problem.baseCost + std::max(0.0, extra * (1 - 1e-9));
}
