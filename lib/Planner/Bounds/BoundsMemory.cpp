//===- BoundsMemory.cpp - proven bounds on memory -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: below which budget is there no plan? While a node first runs, what
// it reads, makes and needs for scratch is resident; so is every persistent
// value, every input that it or a node after it reads, and every result that
// cannot be made again, was made before it and is needed after it. All of these
// had to come to be resident at once, which may take more (BoundsResidency.h),
// and more must be there so that the rest can run at all (BoundsCut.h). That is
// searched for each node's first run, in program order, where what is proven
// for a node holds for all sets with its results, and for the end; the largest
// bound holds. Gives up: searches get equal shares of the work limit, then what
// is left goes to those that ended early, the highest first. Which values wait
// for which node takes the transitive closure, as bits, for up to 4,096 nodes;
// beyond, a traversal for each of the largest waiting values, and only their
// bytes count.
//
// Guarantee: no valid plan in any order has a smaller load. Complexity: the
// limit, plus n^2 / 64 or 10^8 steps.
//
//===----------------------------------------------------------------------===//
#include "Bounds/BoundsCut.h"
#include "Bounds/BoundsResidency.h"
#include "ckopt/Planner/Bounds.h"

#include <algorithm>
#include <limits>
#include <memory>

using namespace ckopt::planner;

namespace {

constexpr int32_t closureLimit = 4096;

/// The transitive closure: which nodes come before which.
class Ancestors {
public:
  explicit Ancestors(const Problem &problem)
      : words(size_t(problem.numNodes + 63) / 64),
        bits(words * problem.numNodes, 0) {
    for (NodeId n = 0; n < problem.numNodes; ++n)
      for (NodeId p : problem.preds[n]) {
        for (size_t w = 0; w < words; ++w)
          bits[n * words + w] |= bits[p * words + w];
        bits[n * words + size_t(p) / 64] |= uint64_t(1) << (p % 64);
      }
  }
  bool before(NodeId a, NodeId b) const {
    return bits[b * words + size_t(a) / 64] >> (a % 64) & 1;
  }

private:
  size_t words;
  std::vector<uint64_t> bits;
};

/// Returns storages that are never made twice, because they are there at the
/// start, or their makers run once. Persistent ones are left out.
std::vector<ValueId> madeOnce(const Problem &problem) {
  std::vector<ValueId> list;
  for (ValueId v = 0; v < problem.numValues; ++v) {
    NodeId maker = problem.producer[v];
    bool once = problem.initial[v] ? !problem.endLive[v]
                                   : maker >= 0 && !problem.recompute[maker];
    if (once && problem.root[v] == v)
      list.push_back(v);
  }
  return list;
}

class LoadBound {
public:
  explicit LoadBound(const Problem &problem);
  int64_t run(int64_t units);

private:
  struct Goal {
    NodeId node; ///< its first run; -1: the end
    int64_t bound = 0;
  };
  std::vector<ValueId> waitingAt(NodeId node) const;
  int64_t cutAll(int64_t units, int64_t &work);
  int64_t settle(Goal &goal, int64_t units, int64_t &work);
  void spread(std::vector<NodeId> stack, const Csr &edges, char bit);
  void addWaitingBytes(ValueId storage);

  const Problem &problem;
  ResidencySearch search;
  std::vector<ValueId> once;
  std::vector<std::vector<NodeId>> readers;  ///< by storage
  std::vector<char> atEnd;                   ///< by storage
  std::unique_ptr<Ancestors> ancestors;      ///< small graphs only
  std::vector<std::vector<ValueId>> waiting; ///< by node; small graphs only
  std::vector<int64_t> waitingBytes;         ///< by node; large graphs only
  std::vector<char>
      mark; ///< 1: before a reader; 2: after the maker; 4: touches
};

LoadBound::LoadBound(const Problem &problem)
    : problem(problem), search(problem), once(madeOnce(problem)),
      readers(problem.numValues), atEnd(problem.numValues, 0),
      waitingBytes(problem.numNodes, 0), mark(problem.numNodes, 0) {
  for (NodeId n = 0; n < problem.numNodes; ++n)
    for (ValueId v : problem.reads[n]) {
      std::vector<NodeId> &list = readers[problem.root[v]];
      if (list.empty() || list.back() != n)
        list.push_back(n);
    }
  for (ValueId v = 0; v < problem.numValues; ++v)
    if (problem.endLive[v])
      atEnd[problem.root[v]] = 1;
  if (problem.numNodes <= closureLimit) {
    ancestors = std::make_unique<Ancestors>(problem);
    for (NodeId n = 0; n < problem.numNodes; ++n)
      waiting.push_back(waitingAt(n));
    search.setOrder(
        [this](NodeId a, NodeId b) { return ancestors->before(a, b); },
        waiting);
    return;
  }
  std::sort(once.begin(), once.end(), [&](ValueId a, ValueId b) {
    return problem.bytes[a] != problem.bytes[b]
               ? problem.bytes[a] > problem.bytes[b]
               : a < b;
  });
  size_t most = size_t(1e8 / double(problem.reads.items.size() + 1)) + 1;
  for (size_t i = 0; i < std::min(once.size(), most); ++i)
    if (problem.bytes[once[i]] > 0 && !readers[once[i]].empty())
      addWaitingBytes(once[i]);
}

void LoadBound::spread(std::vector<NodeId> stack, const Csr &edges, char bit) {
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

void LoadBound::addWaitingBytes(ValueId storage) {
  std::fill(mark.begin(), mark.end(), 0);
  spread(readers[storage], problem.preds, 1);
  NodeId maker = problem.producer[storage];
  if (maker >= 0) {
    spread({maker}, problem.succs, 2);
    mark[maker] |= 4;
  }
  for (NodeId n : readers[storage])
    mark[n] |= 4;
  char wanted = maker >= 0 ? 3 : 1;
  for (NodeId n = 0; n < problem.numNodes; ++n)
    if (mark[n] == wanted)
      waitingBytes[n] += problem.bytes[storage];
}

/// Returns values that are resident while the node first runs because they
/// cannot be made again and are needed afterwards.
std::vector<ValueId> LoadBound::waitingAt(NodeId node) const {
  std::vector<ValueId> list;
  for (ValueId v : once) {
    NodeId maker = problem.producer[v];
    if (maker >= 0 && !ancestors->before(maker, node))
      continue;
    bool later = atEnd[v];
    for (NodeId reader : readers[v])
      later |= ancestors->before(node, reader);
    if (later)
      list.push_back(v);
  }
  return list;
}

int64_t LoadBound::settle(Goal &goal, int64_t units, int64_t &work) {
  std::vector<ValueId> set;
  int64_t atLeast = 0;
  if (goal.node < 0) {
    for (ValueId v = 0; v < problem.numValues; ++v)
      if (problem.root[v] == v && atEnd[v] &&
          !(problem.initial[v] && problem.endLive[v]))
        set.push_back(v);
  } else {
    if (ancestors)
      set = waiting[goal.node];
    atLeast = search.loadAt(goal.node, set);
    if (!ancestors)
      atLeast += waitingBytes[goal.node];
    std::vector<ValueId> kept = set;
    set.clear();
    const std::vector<ValueId> &reads = search.needs(goal.node);
    std::set_union(kept.begin(), kept.end(), reads.begin(), reads.end(),
                   std::back_inserter(set));
  }
  goal.bound =
      std::max(goal.bound, search.leastPeak(set, atLeast,
                                            std::numeric_limits<int64_t>::max(),
                                            units, work));
  if (goal.node >= 0)
    search.learn(goal.node, goal.bound);
  return goal.bound;
}

/// Bounds the load by minimum cuts of the values that the remaining nodes need,
/// the nodes of the highest load first.
int64_t LoadBound::cutAll(int64_t units, int64_t &work) {
  std::vector<std::pair<int64_t, NodeId>> nodes;
  std::vector<std::vector<ValueId>> kept(problem.numNodes);
  for (NodeId n = 0; n < problem.numNodes; ++n) {
    const std::vector<ValueId> &reads = search.needs(n);
    std::set_intersection(waiting[n].begin(), waiting[n].end(), reads.begin(),
                          reads.end(), std::back_inserter(kept[n]));
    nodes.push_back({-search.loadAt(n, kept[n]), n});
  }
  std::sort(nodes.begin(), nodes.end());
  int64_t bound = 0;
  auto before = [&](NodeId a, NodeId b) { return ancestors->before(a, b); };
  for (auto [load, n] : nodes) {
    if (work >= units)
      break;
    int64_t here = leastWaitingBytes(problem, n, before, work) - load;
    search.learn(n, here);
    bound = std::max(bound, here);
  }
  return bound;
}

int64_t LoadBound::run(int64_t units) {
  std::vector<Goal> goals;
  for (NodeId n = 0; n < problem.numNodes; ++n)
    goals.push_back({n});
  goals.push_back({-1});
  int64_t atStart = problem.persistentBytes;
  for (ValueId v = 0; v < problem.numValues; ++v)
    if (problem.initial[v] && !problem.endLive[v] &&
        (!readers[v].empty() || atEnd[v]))
      atStart += problem.bytes[v];
  int64_t bound = atStart, work = 0;
  if (ancestors)
    bound = std::max(bound, cutAll(units / 3, work));
  int64_t share = units / 3 / int64_t(goals.size());
  for (Goal &goal : goals)
    bound = std::max(bound, settle(goal, share, work));
  // Work on the highest goals first; each round doubles the work that one goal
  // may take.
  std::sort(goals.begin(), goals.end(), [](const Goal &a, const Goal &b) {
    return a.bound != b.bound ? a.bound > b.bound : a.node < b.node;
  });
  for (size_t k = 0; k < goals.size() && work < units; ++k)
    bound = std::max(
        bound, settle(goals[k], std::max(share, (units - work) / 8), work));
  return bound;
}

} // namespace

int64_t ckopt::planner::memoryBound(const Graph &graph, int64_t workUnits) {
  Problem problem(graph, Rules::Format);
  return LoadBound(problem).run(workUnits);
}

int64_t ckopt::planner::orderOnlyBound(const Graph &graph, int64_t workUnits) {
  Graph once = graph;
  for (Node &node : once.nodes)
    node.recompute = false;
  Problem problem(once, Rules::Format);
  return LoadBound(problem).run(workUnits);
}

int64_t ckopt::planner::memoryBoundInOrder(const Graph &graph,
                                           const std::vector<NodeId> &order) {
  Problem problem(graph, Rules::Format);
  GapProblem gaps(problem, order);
  return *std::max_element(gaps.dropped.begin(), gaps.dropped.end());
}
