//===- BoundsMemory.cpp - proven bounds on memory -------------------------===//
//
// Any order: while a node runs, what it reads, makes and needs for scratch is
// resident, and so is every persistent value, every input that the node or
// something after it reads, and every result that cannot be made again and
// waits for something after it.
//
//===----------------------------------------------------------------------===//
#include "GapProblem.h"
#include "ckopt/Planner/Bounds.h"

#include <algorithm>

using namespace ckopt::planner;

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

/// Bytes while the node runs beside what it reads: its results, less all that
/// could at best be written over inputs, and scratch.
static int64_t leastOwnBytes(const Problem &problem, NodeId node) {
  int64_t sum = problem.workspace[node];
  const auto pairs = sharingPairs(problem, node);
  for (ValueId v : problem.outputs[node]) {
    bool mayShare = false;
    for (auto [i, o] : pairs)
      mayShare |= o == v;
    sum += mayShare ? 0 : problem.bytes[v];
  }
  return sum;
}

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
    int64_t sum = always + leastOwnBytes(problem, node) + waiting[node];
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
