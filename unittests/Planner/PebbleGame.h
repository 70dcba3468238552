//===- PebbleGame.h - exhaustive search over tiny graphs --------*- C++ -*-===//
//
// The planning problem as a pebble game: a state is what ran and what is
// resident. Dijkstra's algorithm over all states gives the least cost within a
// budget. For graphs without views and alternatives and with at most 31 nodes
// and values; in practice about 9.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_PLANNER_PEBBLEGAME_H
#define CKOPT_UNITTESTS_PLANNER_PEBBLEGAME_H

#include "ckopt/Planner/Graph.h"

#include <algorithm>
#include <map>
#include <queue>

namespace ckopt::planner::test {

class PebbleGame {
public:
  PebbleGame(const Graph &graph, bool programOrder)
      : graph(graph), programOrder(programOrder) {
    for (size_t v = 0; v < graph.values.size(); ++v) {
      ValueKind kind = graph.values[v].kind;
      bool read = false;
      for (const Node &node : graph.nodes)
        read |= std::find(node.inputs.begin(), node.inputs.end(), ValueId(v)) !=
                node.inputs.end();
      if (kind == ValueKind::Persistent || (kind == ValueKind::Input && read))
        start |= 1u << v;
      if (kind == ValueKind::Persistent || kind == ValueKind::Output)
        finish |= 1u << v;
    }
  }
  /// Least cost within the budget; negative: infeasible.
  double solve(int64_t budget);

private:
  using State = std::pair<uint32_t, uint32_t>;
  bool allowed(uint32_t ran, uint32_t resident, NodeId n) const;
  int64_t usage(uint32_t resident, uint32_t dropped, NodeId n) const;
  int64_t bytes(uint32_t resident) const {
    int64_t sum = 0;
    for (size_t v = 0; v < graph.values.size(); ++v)
      if (resident >> v & 1)
        sum += graph.values[v].bytes;
    return sum;
  }

  const Graph &graph;
  bool programOrder;
  uint32_t start = 0, finish = 0;
};

inline bool PebbleGame::allowed(uint32_t ran, uint32_t resident,
                                NodeId n) const {
  const Node &node = graph.nodes[n];
  bool again = ran >> n & 1;
  if (again && (!node.recompute || !node.mutates.empty()))
    return false;
  if (!again && programOrder && (ran >> n || ran != (1u << n) - 1))
    return false;
  for (ValueId v : node.inputs)
    if (!(resident >> v & 1))
      return false;
  for (NodeId p : node.after)
    if (!(ran >> p & 1))
      return false;
  for (size_t w = 0; w < graph.nodes.size(); ++w)
    for (ValueId v : graph.nodes[w].mutates) {
      bool reads = std::find(node.inputs.begin(), node.inputs.end(), v) !=
                   node.inputs.end();
      bool done = ran >> w & 1;
      if (reads && int32_t(w) < n && !done)
        return false;
      if (reads && int32_t(w) > n && done)
        return false;
    }
  return true;
}

inline int64_t PebbleGame::usage(uint32_t resident, uint32_t dropped,
                                 NodeId n) const {
  const Node &node = graph.nodes[n];
  int64_t sum = node.workspace;
  uint32_t during = resident, taken = 0, given = 0;
  for (ValueId v : node.outputs)
    during |= 1u << v;
  sum += bytes(during);
  for (auto [i, o] : node.reuse) {
    bool can = (dropped >> i & 1) && !(taken >> o & 1) && !(given >> i & 1) &&
               graph.values[i].kind != ValueKind::Input &&
               graph.values[i].kind != ValueKind::Persistent &&
               graph.values[o].bytes <= graph.values[i].bytes;
    if (!can)
      continue;
    taken |= 1u << o;
    given |= 1u << i;
    sum -= graph.values[o].bytes;
  }
  return sum;
}

inline double PebbleGame::solve(int64_t budget) {
  std::map<State, double> best;
  std::priority_queue<std::pair<double, State>,
                      std::vector<std::pair<double, State>>, std::greater<>>
      queue;
  uint32_t all = (1u << graph.nodes.size()) - 1;
  auto push = [&](double cost, State state) {
    auto [it, fresh] = best.insert({state, cost});
    if (!fresh && it->second <= cost)
      return;
    it->second = cost;
    queue.push({cost, state});
  };
  push(0, {0, start});
  while (!queue.empty()) {
    auto [cost, state] = queue.top();
    queue.pop();
    if (best[state] < cost)
      continue;
    auto [ran, resident] = state;
    if (ran == all && (resident & finish) == finish)
      return cost;
    for (size_t v = 0; v < graph.values.size(); ++v)
      if ((resident >> v & 1) && graph.values[v].kind != ValueKind::Persistent)
        push(cost, {ran, resident & ~(1u << v)});
    for (NodeId n = 0; n < int32_t(graph.nodes.size()); ++n) {
      if (!allowed(ran, resident, n))
        continue;
      const Node &node = graph.nodes[n];
      for (uint32_t pick = 0; pick < 1u << node.inputs.size(); ++pick) {
        uint32_t dropped = 0;
        for (size_t k = 0; k < node.inputs.size(); ++k)
          if ((pick >> k & 1) &&
              graph.values[node.inputs[k]].kind != ValueKind::Persistent)
            dropped |= 1u << node.inputs[k];
        // A new copy replaces the old one, which ended before.
        uint32_t before = resident;
        for (ValueId v : node.outputs)
          before &= ~(1u << v);
        if (usage(before, dropped, n) > budget)
          continue;
        uint32_t after = before & ~dropped;
        for (ValueId v : node.outputs)
          after |= 1u << v;
        push(cost + node.cost, {ran | 1u << n, after});
      }
    }
  }
  return -1;
}

} // namespace ckopt::planner::test

#endif // CKOPT_UNITTESTS_PLANNER_PEBBLEGAME_H
