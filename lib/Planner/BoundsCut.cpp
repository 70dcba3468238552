//===- BoundsCut.cpp - what must be resident for the rest to run ----------===//
#include "BoundsCut.h"

#include <algorithm>
#include <limits>

using namespace ckopt::planner;

namespace {

constexpr int64_t unlimited = std::numeric_limits<int64_t>::max() / 4;

class MaximumFlow {
public:
  explicit MaximumFlow(int32_t vertices) : first(vertices, -1) {}
  void connect(int32_t from, int32_t to, int64_t capacity) {
    arcs.push_back({to, first[from], capacity});
    first[from] = int32_t(arcs.size()) - 1;
    arcs.push_back({from, first[to], 0});
    first[to] = int32_t(arcs.size()) - 1;
  }
  int64_t run(int32_t source, int32_t sink, int64_t &work);

private:
  struct Arc {
    int32_t to, next;
    int64_t rest;
  };
  bool layer(int32_t source, int32_t sink);
  int64_t augment(int32_t source, int32_t sink, int64_t &work);

  std::vector<int32_t> first, level, current;
  std::vector<Arc> arcs;
};

bool MaximumFlow::layer(int32_t source, int32_t sink) {
  level.assign(first.size(), -1);
  std::vector<int32_t> queue{source};
  level[source] = 0;
  for (size_t k = 0; k < queue.size(); ++k)
    for (int32_t a = first[queue[k]]; a >= 0; a = arcs[a].next)
      if (arcs[a].rest > 0 && level[arcs[a].to] < 0) {
        level[arcs[a].to] = level[queue[k]] + 1;
        queue.push_back(arcs[a].to);
      }
  return level[sink] >= 0;
}

/// One path of the layered graph; 0 if none is left.
int64_t MaximumFlow::augment(int32_t source, int32_t sink, int64_t &work) {
  std::vector<int32_t> path;
  int32_t at = source;
  while (at != sink) {
    int32_t &a = current[at];
    while (a >= 0 && (arcs[a].rest == 0 || level[arcs[a].to] != level[at] + 1))
      a = arcs[a].next;
    ++work;
    if (a >= 0) {
      path.push_back(a);
      at = arcs[a].to;
      continue;
    }
    if (path.empty())
      return 0;
    level[at] = -1; // A dead end.
    at = arcs[path.back() ^ 1].to;
    path.pop_back();
  }
  int64_t amount = unlimited;
  for (int32_t a : path)
    amount = std::min(amount, arcs[a].rest);
  for (int32_t a : path) {
    arcs[a].rest -= amount;
    arcs[a ^ 1].rest += amount;
  }
  return amount;
}

int64_t MaximumFlow::run(int32_t source, int32_t sink, int64_t &work) {
  int64_t flow = 0;
  work += int64_t(arcs.size()) * 2;
  while (layer(source, sink)) {
    work += int64_t(arcs.size());
    current = first;
    while (int64_t amount = augment(source, sink, work)) {
      flow += amount;
      work += 8;
    }
  }
  return flow;
}

} // namespace

int64_t ckopt::planner::leastWaitingBytes(
    const Problem &problem, NodeId node,
    const std::function<bool(NodeId, NodeId)> &before, int64_t &work) {
  // Storage v is the vertices 2 v (needed) and 2 v + 1 (there).
  int32_t source = 2 * problem.numValues, sink = source + 1;
  MaximumFlow flow(sink + 1);
  auto persistent = [&](ValueId root) {
    return problem.initial[root] && problem.endLive[root];
  };
  std::vector<char> read(problem.numValues, 0);
  for (ValueId v : problem.reads[node])
    read[problem.root[v]] = 1;
  for (ValueId v = 0; v < problem.numValues; ++v) {
    if (problem.endLive[v] && !persistent(problem.root[v]))
      flow.connect(2 * problem.root[v] + 1, sink, unlimited);
    if (problem.root[v] != v || persistent(v))
      continue;
    flow.connect(2 * v, 2 * v + 1, read[v] ? 0 : problem.bytes[v]);
    NodeId maker = problem.producer[v];
    if (maker < 0 || (!problem.recompute[maker] && before(maker, node)))
      flow.connect(source, 2 * v, unlimited);
  }
  for (NodeId n = 0; n < problem.numNodes; ++n) {
    bool later = n == node || before(node, n);
    bool past = !problem.recompute[n] && before(n, node);
    if (past)
      continue;
    for (ValueId u : problem.reads[n]) {
      ValueId input = problem.root[u];
      if (persistent(input))
        continue;
      if (later)
        flow.connect(2 * input + 1, sink, unlimited);
      else
        for (ValueId v : problem.outputs[n])
          if (problem.root[v] == v && v != input)
            flow.connect(2 * input + 1, 2 * v, unlimited);
    }
  }
  work += problem.numNodes + problem.numValues;
  return flow.run(source, sink, work);
}
