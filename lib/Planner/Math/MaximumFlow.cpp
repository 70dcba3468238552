//===- MaximumFlow.cpp - flows and cuts -----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Method: Dinic's algorithm (1970): shortest augmenting paths, a layer at a
// time. Exact in integers. O(V^2 E), mostly a few times E.
//
//===----------------------------------------------------------------------===//
#include "Math/MaximumFlow.h"

#include <algorithm>

using namespace ckopt::planner;

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

/// Augments along one path of the layered graph; returns 0 if none is left.
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
    level[at] = -1; // a dead end
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
