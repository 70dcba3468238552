//===- Order.cpp - memory-aware list scheduling ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A good order often makes recomputation unnecessary: if a weight's update runs
// right after its gradient, it frees the gradient; if two gradients are added
// early, their sum takes the place of both. Finding the best order is NP-hard
// (register sufficiency); these are list schedules in the manner of Liu's and
// Kayaaslan et al.'s greedy rules: take a ready node that does not raise the
// load as soon as there is one, otherwise follow a base order. Run forwards,
// they hoist nodes that free bytes; run backwards, they sink nodes that
// allocate. O(m log n) each.
//
//===----------------------------------------------------------------------===//
#include "Model/Order.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

using namespace ckopt::planner;

namespace {

/// How ready nodes are ranked.
enum class Rule {
  Eager,  ///< nodes that do not raise the load first, then the base order
  Greedy, ///< least growth of the load first, then the base order
};

/// One list schedule. Run forwards, it tracks how many readers of each storage
/// remain; run backwards, a storage starts to live with its last reader and
/// ends with its producer.
class ListScheduler {
public:
  ListScheduler(const Problem &problem, bool backwards, Rule rule)
      : problem(problem), backwards(backwards), rule(rule),
        waiting(problem.numNodes), remaining(problem.numValues, 0),
        readersOf(problem.numValues) {}
  std::vector<NodeId> run(const std::vector<NodeId> &baseOrder);

private:
  using Key = std::pair<int64_t, int32_t>;
  int64_t growth(NodeId node) const;
  Key key(NodeId node) const;
  void retire(NodeId node);
  void refresh(ValueId storage);

  const Problem &problem;
  bool backwards;
  Rule rule;
  std::vector<int32_t> rank; ///< by node: position in the base order
  std::vector<int32_t> waiting;
  std::vector<int32_t> remaining; ///< by storage
  std::vector<std::vector<NodeId>> readersOf;
  std::vector<char> ready, done, alive;
  std::vector<Key> keyOf;
  std::set<std::pair<Key, NodeId>> queue;
};

int64_t ListScheduler::growth(NodeId node) const {
  int64_t sum = 0;
  ValueId previous = -1;
  if (!backwards) {
    for (ValueId v : problem.outputs[node])
      if (!problem.readers[v].empty() || problem.endLive[v])
        sum += problem.bytes[v];
    for (ValueId v : problem.reads[node]) {
      ValueId r = problem.root[v];
      if (r != previous && remaining[r] == 1 && !problem.endLive[r])
        sum -= problem.bytes[r];
      previous = r;
    }
    return sum;
  }
  for (ValueId v : problem.outputs[node])
    sum -= problem.bytes[v];
  for (ValueId v : problem.reads[node]) {
    ValueId r = problem.root[v];
    if (r != previous && !alive[r] && !problem.initial[r])
      sum += problem.bytes[r];
    previous = r;
  }
  return sum;
}

ListScheduler::Key ListScheduler::key(NodeId node) const {
  int64_t grows = growth(node);
  if (rule == Rule::Greedy)
    return {grows, rank[node]};
  return {grows <= 0 ? 0 : 1, rank[node]};
}

void ListScheduler::refresh(ValueId storage) {
  for (NodeId reader : readersOf[storage]) {
    if (!ready[reader] || done[reader])
      continue;
    queue.erase({keyOf[reader], reader});
    keyOf[reader] = key(reader);
    queue.insert({keyOf[reader], reader});
  }
}

void ListScheduler::retire(NodeId node) {
  ValueId previous = -1;
  for (ValueId v : problem.reads[node]) {
    ValueId r = problem.root[v];
    if (r == previous)
      continue;
    previous = r;
    bool changed = backwards ? !alive[r] : remaining[r] == 2;
    alive[r] = 1;
    --remaining[r];
    if (changed)
      refresh(r);
  }
  auto next = backwards ? problem.preds[node] : problem.succs[node];
  for (NodeId other : next)
    if (--waiting[other] == 0) {
      ready[other] = 1;
      keyOf[other] = key(other);
      queue.insert({keyOf[other], other});
    }
}

std::vector<NodeId> ListScheduler::run(const std::vector<NodeId> &baseOrder) {
  int32_t n = problem.numNodes;
  rank.resize(n);
  for (int32_t i = 0; i < n; ++i)
    rank[baseOrder[i]] = backwards ? n - 1 - i : i;
  ready.assign(n, 0);
  done.assign(n, 0);
  alive.assign(problem.numValues, 0);
  keyOf.resize(n);
  for (NodeId node = 0; node < n; ++node) {
    waiting[node] = int32_t(backwards ? problem.succs[node].size()
                                      : problem.preds[node].size());
    for (ValueId v : problem.reads[node]) {
      std::vector<NodeId> &list = readersOf[problem.root[v]];
      if (list.empty() || list.back() != node) {
        list.push_back(node);
        ++remaining[problem.root[v]];
      }
    }
  }
  for (NodeId node = 0; node < n; ++node)
    if (waiting[node] == 0) {
      ready[node] = 1;
      keyOf[node] = key(node);
      queue.insert({keyOf[node], node});
    }
  std::vector<NodeId> order;
  order.reserve(n);
  while (!queue.empty()) {
    NodeId node = queue.begin()->second;
    queue.erase(queue.begin());
    done[node] = 1;
    order.push_back(node);
    retire(node);
  }
  if (backwards)
    std::reverse(order.begin(), order.end());
  return order;
}

} // namespace

std::vector<NodeId> ckopt::planner::programOrder(const Problem &problem) {
  std::vector<NodeId> order(problem.numNodes);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

bool ckopt::planner::isValidOrder(const Problem &problem,
                                  const std::vector<NodeId> &order) {
  if (int32_t(order.size()) != problem.numNodes)
    return false;
  std::vector<int32_t> place(problem.numNodes, -1);
  for (size_t i = 0; i < order.size(); ++i)
    place[order[i]] = int32_t(i);
  for (NodeId n = 0; n < problem.numNodes; ++n) {
    if (place[n] < 0)
      return false;
    for (NodeId p : problem.preds[n])
      if (place[p] > place[n])
        return false;
  }
  return true;
}

std::vector<std::vector<NodeId>>
ckopt::planner::candidateOrders(const Problem &problem) {
  std::vector<std::vector<NodeId>> orders{programOrder(problem)};
  auto add = [&](std::vector<NodeId> order) {
    if (isValidOrder(problem, order) &&
        std::find(orders.begin(), orders.end(), order) == orders.end())
      orders.push_back(std::move(order));
    return orders.size() - 1;
  };
  auto schedule = [&](size_t from, bool backwards, Rule rule) {
    std::vector<NodeId> base = orders[from];
    return add(ListScheduler(problem, backwards, rule).run(base));
  };
  size_t eager = schedule(0, false, Rule::Eager);
  size_t lazy = schedule(0, true, Rule::Eager);
  schedule(eager, true, Rule::Eager);
  schedule(lazy, false, Rule::Eager);
  schedule(0, false, Rule::Greedy);
  schedule(0, true, Rule::Greedy);
  std::vector<std::pair<int64_t, size_t>> peaks;
  for (size_t i = 0; i < orders.size(); ++i)
    peaks.push_back({simulate(problem, orders[i], true).peak, i});
  std::sort(peaks.begin(), peaks.end());
  std::vector<std::vector<NodeId>> sorted;
  for (auto [peak, i] : peaks)
    sorted.push_back(std::move(orders[i]));
  return sorted;
}

bool ckopt::planner::isProgramOrder(const Problem &problem,
                                    const std::vector<NodeId> &steps) {
  std::vector<char> seen(problem.numNodes, 0);
  NodeId next = 0;
  for (NodeId n : steps)
    if (!seen[n]) {
      if (n != next)
        return false;
      seen[n] = 1;
      ++next;
    }
  return next == problem.numNodes;
}
