//===- BoundsCut.cpp - what must be resident for the rest to run ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objective: the bytes that wait while a node first runs, in every plan (why:
// BoundsCut.h). Method: a minimum vertex cut, each storage an arc of its bytes;
// maximum flow by Dinic's algorithm. Gives up: never. Complexity: O(V E) at
// most, mostly a few times E.
//
//===----------------------------------------------------------------------===//
#include "Bounds/BoundsCut.h"
#include "Math/MaximumFlow.h"

using namespace ckopt::planner;

int64_t ckopt::planner::leastWaitingBytes(
    const Problem &problem, NodeId node,
    const std::function<bool(NodeId, NodeId)> &before, int64_t &work) {
  // Storage v has the vertices 2 v (needed) and 2 v + 1 (resident).
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
      flow.connect(2 * problem.root[v] + 1, sink, MaximumFlow::unlimited);
    if (problem.root[v] != v || persistent(v))
      continue;
    flow.connect(2 * v, 2 * v + 1, read[v] ? 0 : problem.bytes[v]);
    NodeId maker = problem.producer[v];
    if (maker < 0 || (!problem.recompute[maker] && before(maker, node)))
      flow.connect(source, 2 * v, MaximumFlow::unlimited);
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
        flow.connect(2 * input + 1, sink, MaximumFlow::unlimited);
      else
        for (ValueId v : problem.outputs[n])
          if (problem.root[v] == v && v != input)
            flow.connect(2 * input + 1, 2 * v, MaximumFlow::unlimited);
    }
  }
  work += problem.numNodes + problem.numValues;
  return flow.run(source, sink, work);
}
